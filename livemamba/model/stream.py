"""A model that watches: network, state and clock together.

The cost of a frame doesn't depend on how long the stream has run: what was seen is in the state, a few MB,
which can be saved, moved and resumed. Source: paper 4.1 ("when to say"), D.3 (fresh state for each step).
Letters: Q embeddings of a frame, V vocabulary rows.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from livemamba.config import DecodingConfig, config_from_dict, config_to_dict
from livemamba.conversation import RESPONSE_KINDS, ResponseKind
from livemamba.dialogue.decode import COACHING_KINDS, Decoder, Reading, Response
from livemamba.errors import InputError, MissingError
from livemamba.files import whole_folder
from livemamba.json_files import read_json
from livemamba.model.livemamba import LiveMamba
from livemamba.model.state import MambaState
from livemamba.model.weights import read_safetensors, write_safetensors
from livemamba.ticks import Frame
from livemamba.video.preprocess import preprocess

ResetPolicy = Literal["per_step", "never"]

SESSION_FILE = "stream.json"
STATE_FILE = "state.safetensors"
FORMAT = 1


class Stream:
    """One stream of frames through a model.

    Give a prompt, then frames; each frame returns what the model says after it. Nothing is said before the
    first frame of a prompt has been seen, and after a response that ends the step the next prompt is due.
    Streams share the model and nothing else.

    Args:
        model: in evaluation mode.
        reset: "per_step": every prompt starts from an empty state (coaching, paper D.3); "never": the state
            goes on (memory).
        kinds: what may be said.
        decoding: thresholds and caps; None for the model's own.
        encode: a frame's embeddings (1, Q, W) from elsewhere, such as a cache of features; None to make them
            from its pixels.

    Raises:
        InputError: for an unknown policy or kind, or if the model is in training mode.
    """

    def __init__(
        self,
        model: LiveMamba,
        *,
        reset: ResetPolicy = "per_step",
        kinds: Sequence[ResponseKind] = COACHING_KINDS,
        decoding: DecodingConfig | None = None,
        encode: Callable[[Frame], Tensor] | None = None,
    ) -> None:
        if reset not in get_args(ResetPolicy):
            raise InputError(f"reset policy {reset!r} is neither per_step nor never")
        unknown = set(kinds) - set(RESPONSE_KINDS)
        if unknown or not kinds:
            raise InputError(f"kinds {tuple(kinds)} must be some of {', '.join(RESPONSE_KINDS)}")
        _check_evaluating(model)
        self.model = model
        self.reset: ResetPolicy = reset
        self.decoder = Decoder(model, model.tokens, decoding or model.config.decoding, kinds)
        self._encode = encode or self._encode_pixels
        self._state = model.new_state()
        self._logits: Tensor | None = None  # (V,) at the decision position; None where no frame may follow
        self._tick = -1

    @property
    def tick(self) -> int:
        """Tick of the last frame seen; -1 before the first."""
        return self._tick

    @property
    def state(self) -> MambaState:
        """What the model remembers; a value, never changed in place."""
        return self._state

    @property
    def step_over(self) -> bool:
        """Whether a prompt is due before the next frame."""
        return self._logits is None

    @torch.inference_mode()
    def prompt(self, text: str) -> None:
        """Tell the model what to watch for; by the reset policy it forgets everything before.

        Raises:
            InputError: for an empty text, or if the model is in training mode.
        """
        state = self.model.new_state() if self.reset == "per_step" else self._state
        hidden, self._state = self._read(text, state)
        # Of the last position alone: those of a whole prompt are hundreds of times what a stream remembers.
        self._logits = self._logits_after(hidden)

    @torch.inference_mode()
    def see(self, frame: Frame) -> list[Response]:
        """Take in a frame and say what is to be said, most often nothing.

        Raises:
            InputError: before a prompt, after a step has ended, for a frame that isn't later than the last, or
                if the model is in training mode.
        """
        _check_evaluating(self.model)
        if self._logits is None:
            raise InputError("the stream has no open step; give a prompt before the next frame")
        if frame.tick <= self._tick:
            raise InputError(f"frame of tick {frame.tick} after tick {self._tick}; frames go forward in time")
        vision_token = torch.tensor([[self.model.config.dialogue.vision_id]], device=self.model.device)
        embeds = torch.cat([self.model.backbone.embed(vision_token), self._encode(frame)], dim=1)
        hidden, state = self.model.backbone(embeds, state=self._state)
        logits: Tensor | None = self._logits_after(hidden)
        responses: list[Response] = []
        while logits is not None and len(responses) < self.decoder.config.max_responses_per_frame:
            decided = self.decoder.decide(logits, state)
            if decided is None:
                break
            response, state, logits = decided
            responses.append(response)
            if response.ends_step:
                logits = None
        self._state, self._logits, self._tick = state, logits, frame.tick
        return responses

    @torch.inference_mode()
    def ask(self, question: str) -> Response:
        """An answer from what the model remembers. The stream goes on as if nothing had been asked.

        Raises:
            InputError: for an empty question.
        """
        _, state = self._read(question, self._state)
        return self.decoder.answer(state)

    @torch.inference_mode()
    def peek(self) -> Reading:
        """How likely the model is to speak now, and of what kind. Changes nothing.

        Raises:
            InputError: if a prompt is due.
        """
        if self._logits is None:
            raise InputError("the stream has no open step; give a prompt first")
        return self.decoder.reading(self._logits, self._state)

    def _read(self, text: str, state: MambaState) -> tuple[Tensor, MambaState]:
        """Take in a text: hidden (1, L, W) and the state after it."""
        _check_evaluating(self.model)
        ids = self.model.tokens.encode(text)
        if not ids:
            raise InputError("a prompt or question needs a text")
        hidden, state = self.model.backbone(
            self.model.backbone.embed(torch.tensor([ids], device=self.model.device)), state=state
        )
        return hidden, state

    def _logits_after(self, hidden: Tensor) -> Tensor:
        """(V,) after the last of some positions."""
        logits: Tensor = self.model.backbone.logits(hidden[:, -1:])[0, 0]
        return logits

    def _encode_pixels(self, frame: Frame) -> Tensor:
        vision = self.model.vision
        pixels = preprocess([frame.pixels], size=self.model.config.vision.image_size, mean=vision.mean, std=vision.std)
        return self.model.encode_frames(pixels.to(self.model.device))

    # --- sessions on disk ----------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write the session: `stream.json` and `state.safetensors`. There whole, or not at all.

        A session that is there already is replaced.

        Raises:
            InputError: if the folder exists and holds something else.
        """
        tensors = self._state.to_tensors()
        if self._logits is not None:
            tensors["logits"] = self._logits
        settings = {
            "format": FORMAT,
            "model": self.model.fingerprint(),
            "reset": self.reset,
            "kinds": list(self.decoder.kinds),
            "decoding": config_to_dict(self.decoder.config),
            "tick": self._tick,
        }
        with whole_folder(folder, replaces=SESSION_FILE) as partial:
            write_safetensors(partial / STATE_FILE, tensors)
            (partial / SESSION_FILE).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
        return Path(folder)

    @classmethod
    def load(cls, folder: str | Path, model: LiveMamba) -> "Stream":
        """Continue a saved session exactly, in this or another process.

        Raises:
            MissingError: if there is none.
            InputError: if it is damaged or belongs to another model.
        """
        folder = Path(folder)
        settings, tensors = _read_session(folder)
        if settings["model"] != model.fingerprint():
            raise InputError(f"{folder} is a session of another model; load the checkpoint that it was made with")
        decoding = config_from_dict(DecodingConfig, settings["decoding"], where=str(folder / SESSION_FILE))
        stream = cls(model, reset=settings["reset"], kinds=settings["kinds"], decoding=decoding)
        logits = tensors.pop("logits", None)
        if logits is not None and logits.shape != (model.config.backbone.vocab_size,):
            raise InputError(f"{folder} is damaged: logits of shape {tuple(logits.shape)}; it can't be continued")
        stream._state = MambaState.from_tensors(tensors, model.config.backbone).to(model.device)
        if stream._state.batch != 1:
            raise InputError(f"{folder} is damaged: a state of {stream._state.batch} streams; it can't be continued")
        stream._logits = None if logits is None else logits.to(model.device)
        stream._tick = settings["tick"]
        return stream


def _check_evaluating(model: LiveMamba) -> None:
    if model.training:
        raise InputError("the model is in training mode, where dropout is random; call model.eval() first")


def _read_session(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    for name in (SESSION_FILE, STATE_FILE):
        if not (folder / name).is_file():
            raise MissingError(f"{folder} is no saved session: {name} is missing")
    settings = read_json(folder / SESSION_FILE, what="session")
    wanted = {"format", "model", "reset", "kinds", "decoding", "tick"}
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or set(settings) != wanted:
        raise InputError(f"{folder / SESSION_FILE} is no session of format {FORMAT}; continue it with its own version")
    kinds, tick = settings["kinds"], settings["tick"]
    if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds) or type(tick) is not int:
        raise InputError(f"{folder / SESSION_FILE} is damaged (kinds {kinds!r}, tick {tick!r}); it can't be continued")
    return settings, read_safetensors(folder / STATE_FILE)
