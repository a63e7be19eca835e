"""One instructed step of a video, and the instructions under which it would have been another thing. No torch.

What training samples and the pair test are made of; any corpus with instructions, feedback and times gives such clips.
Source: paper 4.2 and D.2 (fine-tuning on single recipe steps), spec/simkitchen.md (the pair test).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from livemamba.config import DialogueConfig
from livemamba.conversation import Conversation, coaching_step
from livemamba.data.sentences import mistake_text, success_text
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe
from livemamba.ticks import tick_at_or_after, tick_to_s
from livemamba.timeline import Message, MistakeCategory, Timeline


@dataclass(frozen=True, kw_only=True)
class Counterfactual:
    """An instruction that was not given, and that what is seen does not follow.

    Attributes:
        asked: the opposite action, imperative: with another count, spoon, heat, object.
        field: what is opposite: "count", "tool", "what"...
        category: of the mistake that the clip then shows.
        notes: ways to say what went wrong, in an annotator's words.
        time_s: moment by which it can be seen.
    """

    asked: str
    field: str
    category: MistakeCategory
    notes: tuple[str, ...]
    time_s: float

    @property
    def message(self) -> Message:
        """What is to be said, in the first of the ways."""
        return self.said(0)

    def said(self, way: int) -> Message:
        """What is to be said, in one of the ways."""
        text = mistake_text(self.notes[way % len(self.notes)], self.asked)
        return Message(time_s=self.time_s, kind="mistake", text=text, category=self.category)


@dataclass(frozen=True, kw_only=True)
class StepClip:
    """A step: the instruction, the frames until it ends, what is to be said and when.

    Attributes:
        video_id: whose frames.
        recipe: texts of all steps.
        plan: what was left to do when the instruction was given, its step in front.
        instruction: the sentence.
        first_tick: of the frames: when the instruction was given.
        end_tick: the tick after the last frame that may be shown; the one before shows the step's end.
        messages: success and mistake messages with their exact times.
        done: the action that was done, imperative: asked for, the clip is right. None where nothing is (the manner
            is wrong, or several actions are one step).
        counterfactuals: opposites of what was done.
        ends: whether the last frame shows the step's end; not in a clip that was cut before it.
    """

    video_id: str
    recipe: Recipe
    plan: Plan
    instruction: str
    first_tick: int
    end_tick: int
    messages: tuple[Message, ...]
    done: str | None = None
    counterfactuals: tuple[Counterfactual, ...] = ()
    ends: bool = True

    def __post_init__(self) -> None:
        if self.end_tick <= self.first_tick:
            raise InputError(f"{self.video_id}: a step from tick {self.first_tick} to {self.end_tick} has no frame")

    @property
    def end_s(self) -> float:
        """When the last frame is shown: the step is over by then."""
        return tick_to_s(self.end_tick - 1)

    @property
    def is_right(self) -> bool:
        """Whether what was done is what was asked for."""
        return self.done is not None and self.done == self.recipe.text(self.plan.current)

    def right(self) -> "StepClip":
        """The same frames under the instruction for which they are right.

        Raises:
            InputError: if there is none.
        """
        if self.done is None:
            raise InputError(f"{self.video_id}: no instruction makes the step at tick {self.first_tick} right")
        success = Message(time_s=self.end_s, kind="success", text=success_text(self.done), aligned=True)
        return replace(self._asking(self.done), messages=(success,))

    def under(self, counterfactual: Counterfactual, *, way: int = 0) -> "StepClip":
        """The same frames under an opposite instruction: a mistake, and no success at the end.

        Args:
            counterfactual: one of the clip's.
            way: of saying it.
        """
        message = counterfactual.said(way)
        # The last frame shows all that there is to see.
        message = replace(message, time_s=min(message.time_s, self.end_s))
        return replace(self._asking(counterfactual.asked), messages=(message,))

    def _asking(self, action: str) -> "StepClip":
        """With another action asked for, also where the recipe lists it."""
        nodes = self.plan.current
        if len(nodes) != 1:
            raise InputError(f"{self.video_id}: a step of {len(nodes)} actions can't ask for a single other one")
        steps = tuple(
            replace(step, text=action, instruction=None) if step.id == nodes[0] else step for step in self.recipe.steps
        )
        recipe = replace(self.recipe, steps=steps)
        return replace(self, recipe=recipe, instruction=recipe.instruction(nodes))

    def cut(self, first_tick: int, end_tick: int) -> "StepClip":
        """Only some of the frames, and of the messages those whose cause they show.

        Args:
            first_tick: of the first frame; before the clip's own, the step before is shown.
            end_tick: the tick after the last frame, at most the clip's own.

        Raises:
            InputError: if no frame is left, or frames after the step's end are wanted.
        """
        if end_tick > self.end_tick:
            raise InputError(f"{self.video_id}: the step ends at tick {self.end_tick}, frames to {end_tick} are wanted")
        shown = tuple(message for message in self.messages if tick_at_or_after(message.time_s) < end_tick)
        ends = self.ends and end_tick == self.end_tick
        return replace(self, first_tick=first_tick, end_tick=end_tick, messages=shown, ends=ends)

    def conversation(self, dialogue: DialogueConfig) -> Conversation:
        """The sample: prompt, silence, messages when they are due, the end of the step.

        Args:
            dialogue: the prompts' templates.
        """
        return coaching_step(
            prompt=coaching_prompt(dialogue, self.recipe, self.plan, self.instruction),
            first_tick=self.first_tick,
            end_tick=self.end_tick,
            messages=self.messages,
            step_ends=self.ends,
            video_id=self.video_id,
        )


def clips_of(row: Timeline) -> Iterator[StepClip]:
    """Every step of a video that has an end.

    Args:
        row: ground truth with plans and a recipe.

    Raises:
        InputError: if it has none.
    """
    if row.recipe is None or not row.plans:
        raise InputError(f"{row.video_id}: the row has no plans; build it with its recipe")
    plans = [plan for message, plan in zip(row.messages, row.plans, strict=True) if message.kind == "instruction"]
    for segment, plan in zip(row.segments(), plans, strict=True):
        if segment.end_s is None:
            continue
        messages = tuple(message for message in segment.messages if message.kind != "finish")
        right = len(plan.current) == 1 and [message.kind for message in messages] == ["success"]
        yield StepClip(
            video_id=row.video_id,
            recipe=row.recipe,
            plan=plan,
            instruction=segment.instruction.text,
            first_tick=tick_at_or_after(segment.instruction.time_s),
            end_tick=tick_at_or_after(segment.end_s) + 1,
            messages=messages,
            done=row.recipe.text(plan.current) if right else None,
        )
