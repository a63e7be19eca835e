"""LiveMamba: the whole network in one place.

pixels -> vision encoder -> token pruning -> Q-Former -> a frame's embeddings; those and tokens -> backbone
(state in, state out) -> logits. Source: paper 4.1 and figure 2; spec/model.md.
Letters: B batch, H size of the input in pixels, L positions, Q embeddings of a frame, T frames,
W backbone width, V vocabulary rows.
"""

import hashlib
import json
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
from torch import Tensor, nn

import livemamba
from livemamba.config import DecodingConfig, LiveMambaConfig, config_from_dict, config_to_dict
from livemamba.dialogue.tokens import TOKENIZER_FILE, Tokens
from livemamba.errors import InputError, MissingError
from livemamba.files import whole_folder
from livemamba.hub import resolve_folder
from livemamba.json_files import read_json
from livemamba.model.mamba import MambaBackbone
from livemamba.model.pruning import prune_tokens
from livemamba.model.qformer import QFormer
from livemamba.model.state import MambaState
from livemamba.model.vision import VisionEncoder, VisionTokens
from livemamba.model.weights import (
    check_fit,
    load_mamba_weights,
    load_strictly,
    read_safetensors,
    write_safetensors,
)

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
FORMAT = 1
PARTS = ("vision", "qformer", "backbone")
CHECKPOINT_FILES = (CONFIG_FILE, WEIGHTS_FILE, TOKENIZER_FILE)


class RandomWeightsWarning(UserWarning):
    """Some part of the network has never been trained."""


class LiveMamba(nn.Module):
    """Embeddings onto an explicit `MambaState`, logits out.

    Built this way its weights are random; `from_pretrained` is how to get trained ones.

    Args:
        config: every size, the protocol and how to decode.
        tokens: the tokenizer with the special ids.
        seed: for the random weights.

    Attributes:
        provenance: for each of vision, qformer, backbone, where its weights came from.

    Raises:
        InputError: if the parts don't fit each other or the tokenizer.
    """

    def __init__(self, config: LiveMambaConfig, tokens: Tokens, *, seed: int = 0) -> None:
        super().__init__()
        if tokens.config != config.dialogue:
            raise InputError("the tokenizer was set up with other special ids than the config's; make it from that")
        self.config = config
        self.tokens = tokens
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.vision = VisionEncoder(config.vision)
            self.qformer = QFormer(
                config.qformer, encoder_width=self.vision.width, output_width=config.backbone.hidden_size
            )
            self.backbone = MambaBackbone(config.backbone)
        self.provenance: dict[str, str] = dict.fromkeys(PARTS, f"random, seed {seed}")

    # --- the network ---------------------------------------------------------------------------------

    def encode_frames(self, pixels: Tensor) -> Tensor:
        """Frames as the backbone reads them.

        Args:
            pixels: (T, 3, H, H), from `livemamba.video.preprocess.preprocess`.

        Returns:
            (T, Q, W).
        """
        embeddings: Tensor = self.qformer(self.vision_tokens(pixels))
        return embeddings

    def vision_tokens(self, pixels: Tensor) -> Tensor:
        """What encoder and pruning leave of frames: what a cache of features keeps while they are frozen.

        Args:
            pixels: as `encode_frames` takes them.

        Returns:
            (T, K, vision width).
        """
        return self.pruned(self.vision(pixels))

    def pruned(self, seen: VisionTokens) -> Tensor:
        """What pruning leaves of encoded frames: (T, K, vision width)."""
        kept = prune_tokens(
            seen.features,
            seen.cls_attention,
            seen.keys,
            keep=self.config.pruning.keep,
            dominant=self.config.pruning.dominant,
        )
        return kept.tokens

    def embed(self, ids: Tensor, *, visual: Tensor | None = None, frames: Tensor | None = None) -> Tensor:
        """Token embeddings with the frames' put in where they belong.

        Args:
            ids: (B, L); what stands at visual positions doesn't count.
            visual: (B, L) bool, True at the visual positions; None for text alone.
            frames: (T, Q, W), all frames of the batch, row by row in order.

        Returns:
            (B, L, W).

        Raises:
            InputError: for a wrong shape or dtype, or if the visual positions aren't exactly the frames'
                embeddings: shifted by one, a run would train on nonsense.
        """
        if ids.dim() != 2 or ids.dtype not in (torch.int64, torch.int32):
            raise InputError(f"ids are {tuple(ids.shape)} of {ids.dtype}; needed: (B, L) of int64")
        if visual is not None and (visual.shape != ids.shape or visual.dtype != torch.bool):
            raise InputError(
                f"visual is {tuple(visual.shape)} of {visual.dtype}; it must be {tuple(ids.shape)} of bool"
            )
        embeds = self.backbone.embed(ids)
        if frames is not None and (frames.dim() != 3 or frames.shape[2] != embeds.shape[2]):
            raise InputError(f"frames are {tuple(frames.shape)}; needed: (T, Q, {embeds.shape[2]}) from encode_frames")
        given = 0 if frames is None else frames.shape[0] * frames.shape[1]
        wanted = 0 if visual is None else int(visual.sum())
        if given != wanted:
            raise InputError(f"{wanted} visual positions for {given} embeddings of frames; they must be equal")
        if visual is None or frames is None:
            return embeds
        return embeds.masked_scatter(visual[..., None], frames.to(embeds.dtype))

    def forward(
        self,
        ids: Tensor,
        *,
        visual: Tensor | None = None,
        frames: Tensor | None = None,
        state: MambaState | None = None,
        valid: Tensor | None = None,
        reset: Tensor | None = None,
    ) -> tuple[Tensor, MambaState]:
        """Positions onto a state.

        Args:
            ids: (B, L); what stands at visual positions doesn't count.
            visual: (B, L) bool, True at the visual positions; None for text alone.
            frames: (T, Q, W), all frames of the batch, row by row in order.
            state: of B streams; None for zeros.
            valid: (B, L) bool, False at padding, wherever it stands.
            reset: (B, L) bool, where a row starts afresh (packed samples).

        Returns:
            logits (B, L, V), float32, and the state after the last position of each row.
        """
        embeds = self.embed(ids, visual=visual, frames=frames)
        hidden, state = self.backbone(embeds, state=state, valid=valid, reset=reset)
        return self.backbone.logits(hidden), state

    # --- what decoding needs (livemamba.dialogue.decode.LanguageModel) -------------------------------------

    def read(self, ids: Tensor, state: MambaState, *, valid: Tensor | None = None) -> tuple[Tensor, MambaState]:
        """As `forward`, for tokens made elsewhere: they and their mask may be on another device."""
        valid = None if valid is None else valid.to(self.device)
        logits, state = self(ids.to(self.device), state=state, valid=valid)
        return logits, state

    def repeat_state(self, state: MambaState, rows: int) -> MambaState:
        """The state of one stream, copied to some rows."""
        return MambaState.stack([state] * rows)

    def state_row(self, state: MambaState, row: int) -> MambaState:
        """One row of a state, as a batch of one."""
        return state.row(row)

    def new_state(self, batch: int = 1) -> MambaState:
        """The state before the first position, on the model's device."""
        return MambaState.zeros(self.config.backbone, batch, self.device)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.backbone.backbone.embeddings.weight.device

    # --- weights in and out --------------------------------------------------------------------------------

    @property
    def random_parts(self) -> tuple[str, ...]:
        """Parts whose weights have never been trained."""
        return tuple(part for part in PARTS if self.provenance[part].startswith("random"))

    def load_vision(self, source: str | Path) -> None:
        """The vision encoder's weights as timm saves them, strictly and by name.

        Args:
            source: a safetensors file, a folder with one, or a hub id such as
                "timm/vit_intern300m_patch14_448.ogvl_2pt5".
        """
        path = Path(source)
        tensors = read_safetensors(path if path.is_file() else resolve_folder(source))
        load_strictly(self.vision.vit, tensors, source=str(source))
        self.provenance["vision"] = f"timm weights from {Path(source).name}"

    def load_backbone(self, source: str | Path) -> None:
        """The backbone's weights as transformers' MambaForCausalLM saves them, strictly and by name.

        The rows of the special tokens start at the mean of the trained rows (spec/model.md, training).

        Args:
            source: a folder, or a hub id such as "state-spaces/mamba-130m-hf".
        """
        load_mamba_weights(self.backbone, resolve_folder(source))
        table = self.backbone.backbone.embeddings.weight
        with torch.no_grad():
            mean = table[: self.tokens.size].mean(0)
            for name in ("vision_id", "response_id", "next_id"):
                table[getattr(self.config.dialogue, name)] = mean
        self.provenance["backbone"] = f"transformers weights from {Path(source).name}"

    def load_part(self, part: str, source: str | Path) -> None:
        """One part's weights from another LiveMamba checkpoint, strictly: same sizes, and for the backbone same tokens.

        Args:
            part: vision, qformer or backbone.
            source: that checkpoint: a folder or a hub id.

        Raises:
            MissingError: if there is no such checkpoint.
            InputError: if the part is unknown or doesn't fit.
        """
        if part not in PARTS:
            raise InputError(f"part {part!r} is not one of {', '.join(PARTS)}")
        folder = resolve_folder(source)
        card = _read_card(folder)
        if part == "backbone" and not self.tokens.same_as(Tokens.load(folder, self.config.dialogue)):
            raise InputError(f"{source}: its backbone was trained with another tokenizer; take that one too")
        prefix = f"{part}."
        tensors = read_safetensors(folder / WEIGHTS_FILE)
        own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
        load_strictly(getattr(self, part), own, source=f"{source}: {part}")
        self.provenance[part] = card["provenance"][part]

    def with_decoding(self, decoding: DecodingConfig) -> "LiveMamba":
        """This model, with other thresholds or caps from now on."""
        self.config = replace(self.config, decoding=decoding)
        return self

    def fingerprint(self) -> str:
        """A short text that differs between models: of their shapes and of a sample of every weight.

        Sessions carry it, so that a state isn't continued by another network. Thresholds don't count.
        """
        settings = config_to_dict(self.config)
        del settings["decoding"]
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name, weight in sorted(self.state_dict().items()):
            flat = weight.detach().reshape(-1)
            sample = flat[:: max(1, flat.numel() // 16)][:32].float().cpu().numpy()
            digest.update(name.encode() + sample.tobytes())
        return digest.hexdigest()[:16]

    def save_pretrained(self, folder: str | Path, *, overwrite: bool = False, half: bool = False) -> Path:
        """Write a checkpoint: `config.json`, `model.safetensors`, `tokenizer.json`. There whole, or not at all.

        Args:
            folder: made anew.
            overwrite: replace what is there, if it is a checkpoint and nothing else.
            half: store the weights as float16, for half the size; they are loaded as float32, with what was lost.

        Raises:
            InputError: if the folder exists (without `overwrite`) or is something else than a checkpoint; if a
                weight doesn't fit into float16.
        """
        with whole_folder(folder, replaces=CONFIG_FILE if overwrite else None, only=CHECKPOINT_FILES) as partial:
            weights = self.state_dict()
            write_safetensors(partial / WEIGHTS_FILE, _as_half(weights) if half else weights)
            self.tokens.save(partial)
            (partial / CONFIG_FILE).write_text(json.dumps(self._card(), indent=2) + "\n", encoding="utf-8")
        return Path(folder)

    def _card(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "livemamba_version": livemamba.__version__,
            "provenance": self.provenance,
            "model": config_to_dict(self.config),
        }

    @classmethod
    def from_pretrained(
        cls, name_or_path: str | Path, *, revision: str | None = None, device: torch.device | str = "cpu"
    ) -> "LiveMamba":
        """A checkpoint from a folder, or from the hub if the name is no folder and looks like organisation/name.

        The model is in evaluation mode. A warning says so if a part of it was never trained.

        Args:
            name_or_path: a folder that `save_pretrained` wrote, or a hub id.
            revision: branch, tag or commit on the hub.
            device: where the weights go.

        Raises:
            MissingError: if there is no such folder, or a file of it is missing.
            InputError: if config, tokenizer and weights aren't exactly those of one model.
        """
        folder = resolve_folder(name_or_path, revision=revision)
        card = _read_card(folder)
        config = config_from_dict(LiveMambaConfig, card["model"], where=f"{folder / CONFIG_FILE}: model")
        tokens, tensors = Tokens.load(folder, config.dialogue), read_safetensors(folder / WEIGHTS_FILE)
        with torch.device("meta"):  # a config of a size that its weights don't have must not fill the memory
            check_fit(cls(config, tokens), tensors, source=str(folder / WEIGHTS_FILE))
        model = cls(config, tokens)
        load_strictly(model, tensors, source=str(folder / WEIGHTS_FILE))
        model.provenance = dict(card["provenance"])
        if model.random_parts:
            warnings.warn(
                f"{name_or_path}: RANDOM WEIGHTS in {', '.join(model.random_parts)}; what it says means nothing",
                RandomWeightsWarning,
                stacklevel=2,
            )
        return model.to(device).eval()

    def push_to_hub(self, repo_id: str, *, private: bool = True, message: str = "Upload LiveMamba") -> str:
        """Upload this model as a checkpoint; nothing else in the package calls this.

        Args:
            repo_id: organisation/name.
            private: for a repository that has to be made.
            message: of the commit.

        Returns:
            the commit's address.
        """
        with tempfile.TemporaryDirectory() as temporary:
            folder = self.save_pretrained(Path(temporary) / "checkpoint")
            api = huggingface_hub.HfApi()
            api.create_repo(repo_id, private=private, exist_ok=True)
            return str(api.upload_folder(repo_id=repo_id, folder_path=folder, commit_message=message))


def _as_half(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    halved = {name: value.half() if value.dtype == torch.float32 else value for name, value in weights.items()}
    for name, value in halved.items():
        if not torch.isfinite(value).all():
            raise InputError(f"weight {name} doesn't fit into float16; store the checkpoint in full")
    return halved


def _read_card(folder: Path) -> Mapping[str, Any]:
    missing = [name for name in CHECKPOINT_FILES if not (folder / name).is_file()]
    if missing:
        raise MissingError(f"{folder} is no LiveMamba checkpoint: {', '.join(missing)} missing")
    path = folder / CONFIG_FILE
    card = read_json(path, what="config")
    wanted = {"format", "livemamba_version", "provenance", "model"}
    if not isinstance(card, dict) or set(card) != wanted:
        keys = sorted(card) if isinstance(card, dict) else type(card).__name__
        raise InputError(f"{path} is no LiveMamba config: expected {', '.join(sorted(wanted))}, found {keys}")
    if card["format"] != FORMAT:
        raise InputError(f"{path} has format {card['format']!r}; this livemamba reads {FORMAT}, install a newer one")
    provenance = card["provenance"]
    texts = isinstance(provenance, dict) and all(isinstance(source, str) for source in provenance.values())
    if not texts or set(provenance) != set(PARTS):
        raise InputError(f"{path}: provenance must say where {', '.join(PARTS)} come from")
    return card
