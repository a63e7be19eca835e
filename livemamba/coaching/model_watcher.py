"""LiveMamba as a judge of steps. The only place where coaching touches the model, behind `StepWatcher`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from livemamba.coaching.events import Event
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.recipe import Plan, Recipe
from livemamba.ticks import Frame

if TYPE_CHECKING:  # whoever hands in a stream has loaded torch; the coaching room doesn't need it
    from livemamba.dialogue.decode import Response
    from livemamba.model.livemamba import LiveMamba
    from livemamba.model.stream import Stream


class LiveMambaWatcher:
    """Watches each step with a stream that starts afresh at the step's prompt (paper D.3).

    Args:
        stream: of a model, with reset policy "per_step".
        recipe: gives the prompt its texts.
    """

    def __init__(self, stream: "Stream", recipe: Recipe) -> None:
        self.stream = stream
        self.recipe = recipe

    @classmethod
    def of(cls, model: "LiveMamba", recipe: Recipe) -> "LiveMambaWatcher":
        """A watcher with a stream of its own, thresholds and caps as the model has them."""
        from livemamba.model.stream import Stream  # here, as this file loads no torch

        return cls(Stream(model), recipe)

    def start(self, plan: Plan, instruction: str, tick: int) -> None:
        """Watch for this instruction from now on."""
        self.stream.prompt(coaching_prompt(self.stream.model.config.dialogue, self.recipe, plan, instruction))

    def see(self, frame: Frame) -> Sequence[Event]:
        """What the model says after this frame. Once the step is over it says nothing until the next start."""
        if self.stream.step_over:
            return ()
        return tuple(event for response in self.stream.see(frame) for event in _events(response, frame.tick))


def _events(response: "Response", tick: int) -> list[Event]:
    """A response that closes with `<next>` is two events: what was said, and the end of the step.

    One that was cut before its first word says nothing.
    """
    said = []
    if response.kind in ("success", "mistake", "divergence") and response.text:
        said.append(Event(kind=response.kind, tick=tick, text=response.text, confidence=response.confidence))
    if response.ends_step:
        said.append(Event(kind="advance", tick=tick, confidence=response.confidence))
    return said
