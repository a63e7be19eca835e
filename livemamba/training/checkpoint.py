"""A run's folder, and the checkpoints in it.

    RUN/
      config.yaml                 resolved
      metrics.jsonl
      checkpoints/step_000500/
        model/                    as `LiveMamba.save_pretrained` writes it: what one loads and serves
        config.yaml               resolved: what this checkpoint was trained with
        training.json             step, world size
        training.safetensors      optimiser, and modules that only training has (a head)
      model/                      a copy of the last one's, once the run is over

Batches, augmentations and whatever is drawn follow from seed and step alone, so no order and no generator has to be
stored: a resumed run equals the unbroken one bit for bit.
"""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor, nn

from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file, whole_folder
from livemamba.json_files import read_json
from livemamba.model.livemamba import CHECKPOINT_FILES, LiveMamba
from livemamba.model.livemamba import CONFIG_FILE as MODEL_CONFIG_FILE
from livemamba.model.weights import load_strictly, read_safetensors, write_safetensors
from livemamba.texts import listed
from livemamba.yaml_files import read_yaml

CONFIG_FILE = "config.yaml"
CHECKPOINTS = "checkpoints"
MODEL = "model"
_STATE_FILE = "training.json"
_TENSORS_FILE = "training.safetensors"
_NAME = re.compile(r"step_(\d{6,})")
_HALF_WRITTEN = re.compile(r"\.step_\d{6,}\.(partial|old)-.+")  # what `whole_folder` left when the machine went down
_FORMAT = 1
LIVE = "live."
"""Names of the network's own weights in a training module start so: they are saved in `model/` alone."""


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """Where a run goes on.

    Attributes:
        step: how many steps are done.
        world_size: processes that it had.
        folder: of the checkpoint.
        config: that it was trained with.
    """

    step: int
    world_size: int
    folder: Path
    config: Mapping[str, Any]


def save_checkpoint(
    run: Path,
    *,
    step: int,
    module: nn.Module,
    live: LiveMamba,
    optimizer: torch.optim.Optimizer,
    world_size: int,
    config: Mapping[str, Any],
) -> Path:
    """Write a checkpoint, whole or not at all. The main process's business alone.

    Args:
        run: the run's folder.
        step: how many steps are done.
        module: what is trained, with the network as its `live`.
        live: that network.
        optimizer: its parameters are the module's.
        world_size: processes.
        config: the whole config, as plain values.
    """
    folder = run / CHECKPOINTS / f"step_{step:06d}"
    extra = {name: value for name, value in module.state_dict().items() if not name.startswith(LIVE)}
    tensors = {f"module.{name}": value for name, value in extra.items()}
    tensors |= {f"optimizer.{name}": value for name, value in _optimizer_tensors(module, optimizer).items()}
    with whole_folder(folder, replaces=_STATE_FILE) as partial:
        live.save_pretrained(partial / MODEL)
        write_safetensors(partial / _TENSORS_FILE, tensors)
        write_config(partial, config)
        state = {"format": _FORMAT, "step": step, "world_size": world_size}
        (partial / _STATE_FILE).write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
    return folder


def write_config(folder: Path, config: Mapping[str, Any]) -> None:
    """The resolved config, beside what was made by it."""
    with whole_file(folder / CONFIG_FILE) as partial:
        partial.write_text(yaml.safe_dump(dict(config), sort_keys=False, allow_unicode=True), encoding="utf-8")


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """What differs between two configs, each as "section.key: before, now after"."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        keys = dict.fromkeys([*before, *now])
        return [
            line
            for key in keys
            for line in differences(before.get(key), now.get(key), f"{place}.{key}" if place else str(key))
        ]
    return [] if before == now else [f"{place}: {before}, now {now}"]


def checkpoints(run: Path) -> list[Path]:
    """The run's whole checkpoints, oldest first."""
    found = [path for path in (run / CHECKPOINTS).glob("step_*") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.name.removeprefix("step_")))


def prune_checkpoints(run: Path, keep: int) -> None:
    """Remove all but the newest, and what killed writings left. To be called after a checkpoint was written."""
    for folder in checkpoints(run)[:-keep]:
        shutil.rmtree(folder)
    for folder in (run / CHECKPOINTS).iterdir():
        if _HALF_WRITTEN.fullmatch(folder.name):
            shutil.rmtree(folder)


def find_resumed(run: Path) -> Resumed:
    """The newest checkpoint.

    Raises:
        MissingError: if there is none.
        InputError: if it is of another format.
    """
    found = checkpoints(run)
    if not found:
        raise MissingError(f"{run} has no checkpoint to resume from; start the run without --resume")
    state = read_json(found[-1] / _STATE_FILE, what="state of a checkpoint")
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise InputError(f"{found[-1]} is no checkpoint of format {_FORMAT}; resume it with its own version")
    config = read_yaml(_config_of(found[-1]), what="config of a checkpoint")
    return Resumed(step=state["step"], world_size=state["world_size"], folder=found[-1], config=config)


def _config_of(folder: Path) -> Path:
    """The checkpoint's config; its run's, for one that was written before checkpoints held their own."""
    own = folder / CONFIG_FILE
    return own if own.is_file() else folder.parent.parent / CONFIG_FILE


def load_checkpoint(resumed: Resumed, *, module: nn.Module, live: LiveMamba, optimizer: torch.optim.Optimizer) -> None:
    """Weights and optimiser as they were saved; every process does it.

    Raises:
        InputError: if they don't fit.
    """
    folder = resumed.folder
    load_strictly(live, read_safetensors(folder / MODEL / "model.safetensors"), source=str(folder / MODEL))
    tensors = read_safetensors(folder / _TENSORS_FILE)
    extra = {name.removeprefix("module."): value for name, value in tensors.items() if name.startswith("module.")}
    missing, unexpected = module.load_state_dict(extra, strict=False)
    missing = [name for name in missing if not name.startswith(LIVE)]
    if missing or unexpected:
        raise InputError(f"{folder}: weights {missing or unexpected} don't fit; resume with the run's own config")
    _load_optimizer(module, optimizer, tensors, folder)


def publish_model(run: Path) -> Path:
    """`RUN/model`, a copy of the newest checkpoint's."""
    newest = checkpoints(run)[-1]
    with whole_folder(run / MODEL, replaces=MODEL_CONFIG_FILE, only=CHECKPOINT_FILES) as partial:
        for name in CHECKPOINT_FILES:
            shutil.copyfile(newest / MODEL / name, partial / name)
    return run / MODEL


def _names(module: nn.Module) -> dict[Tensor, str]:
    return {parameter: name for name, parameter in module.named_parameters()}


def _optimizer_tensors(module: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    names = _names(module)
    return {
        f"{names[parameter]}.{key}": value
        for parameter, state in optimizer.state.items()
        for key, value in state.items()
    }


def _load_optimizer(
    module: nn.Module, optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], folder: Path
) -> None:
    names = _names(module)
    states: dict[Tensor, dict[str, Any]] = {}
    trained = {names[parameter] for group in optimizer.param_groups for parameter in group["params"]}
    saved = {name.removeprefix("optimizer.").rpartition(".")[0] for name in tensors if name.startswith("optimizer.")}
    if untrained := sorted(saved - trained):
        raise InputError(
            f"{folder}: its run trained {listed(untrained, 3)} too; resume with the run's own config, "
            f"or start another run with init: {folder / MODEL}"
        )
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            prefix = f"optimizer.{names[parameter]}."
            state = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
            moments = {key: value for key, value in state.items() if value.dim() or key != "step"}
            if any(value.shape != parameter.shape for value in moments.values() if value.dim()):
                raise InputError(f"{folder}: the optimiser's state of {names[parameter]} has another shape")
            if state:
                states[parameter] = {key: value.clone() for key, value in state.items()}
    optimizer.state.clear()
    optimizer.state.update(states)
