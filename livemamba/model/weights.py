"""The one door for weights: safetensors only, by exact name and shape, or a refusal that lists the differences."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from livemamba.config import MambaConfig
from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file
from livemamba.hub import first_line
from livemamba.json_files import read_json
from livemamba.model.mamba import MambaBackbone
from livemamba.texts import listed

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_NO_PICKLE = "a pickle can run any code when it is opened, so it is never read: convert it to safetensors"


def read_safetensors(path: str | Path) -> dict[str, Tensor]:
    """Every tensor of a safetensors file, or of a folder with one file or with shards and their index.

    Raises:
        MissingError: if the path, the weights in it, or shards that the index names are not there.
        InputError: if a file is damaged, index and shards disagree, or the weights are pickled.
    """
    path = Path(path)
    if path.is_file():
        return _read_file(path)
    if not path.is_dir():
        raise MissingError(f"weights {path} do not exist; give a safetensors file or a folder with {SINGLE_FILE}")
    if (path / SINGLE_FILE).is_file():
        return _read_file(path / SINGLE_FILE)
    if (path / INDEX_FILE).is_file():
        return _read_shards(path)
    pickles = sorted(file.name for file in path.iterdir() if file.suffix in _PICKLES)
    if pickles:
        raise InputError(f"{path} holds only pickled weights ({listed(pickles)}); {_NO_PICKLE}")
    raise MissingError(f"{path} holds neither {SINGLE_FILE} nor {INDEX_FILE}; give the folder of a saved model")


def _read_file(path: Path) -> dict[str, Tensor]:
    if path.suffix in _PICKLES:
        raise InputError(f"{path} is pickled; {_NO_PICKLE}")
    try:
        return load_file(path)
    except SafetensorError as error:
        raise InputError(f"{path} is damaged or no safetensors file ({first_line(error)}); copy it again") from None


def _read_shards(folder: Path) -> dict[str, Tensor]:
    index = folder / INDEX_FILE
    places = _read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places or not all(isinstance(name, str) for name in places.values()):
        raise InputError(f"{index}: weight_map must name a file for each tensor")
    names = sorted(set(places.values()))
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise InputError(f"{index} names files outside its folder ({listed(outside)}); they are not read")
    absent = [name for name in names if not (folder / name).is_file()]
    if absent:
        raise MissingError(f"{folder} lacks {len(absent)} of {len(names)} shards: {listed(absent)}; copy them too")
    found = {(name, tensor): value for name in names for tensor, value in _read_file(folder / name).items()}
    wrong = {(file, tensor) for tensor, file in places.items()} ^ set(found)
    if wrong:
        named = listed(f"{tensor} in {file}" for file, tensor in sorted(wrong))
        raise InputError(f"{index} and the shards disagree on {named}; they are not from one model")
    return {tensor: value for (_, tensor), value in found.items()}


def _read_json(path: Path) -> dict[str, Any]:
    data = read_json(path, what="model's file")
    if not isinstance(data, dict):
        raise InputError(f"{path}: expected a JSON object, got {type(data).__name__}")
    return data


@torch.no_grad()
def load_strictly(
    module: nn.Module,
    tensors: Mapping[str, Tensor],
    *,
    source: str,
    rename: Callable[[str], str] | None = None,
) -> None:
    """Copy weights into a module: every one it has and no other, or none at all.

    They are copied in place, so that tied parameters stay tied, and converted to the module's dtype and device.
    Of tied names one is enough; if there are several, they must be equal.

    Args:
        module: what is filled.
        tensors: weights by name.
        source: named in errors: where they came from.
        rename: from a name in `tensors` to the module's; None if they are the same.

    Raises:
        InputError: as `check_fit`.
    """
    renamed = check_fit(module, tensors, source=source, rename=rename)
    expected = module.state_dict(keep_vars=True)
    for name, tensor in renamed.items():
        assert not expected[name].is_meta, "a module on the meta device would swallow its weights"
        expected[name].copy_(tensor)


def check_fit(
    module: nn.Module,
    tensors: Mapping[str, Tensor],
    *,
    source: str,
    rename: Callable[[str], str] | None = None,
) -> dict[str, Tensor]:
    """Whether weights are a module's: every one it has and no other. The module may be on the meta device.

    Args:
        module: what they are for.
        tensors: see `load_strictly`.
        source: see `load_strictly`.
        rename: see `load_strictly`.

    Returns:
        The weights by the module's names.

    Raises:
        InputError: listing what is missing, unexpected, of another shape or kind, or tied but different.
    """
    renamed = {(rename(name) if rename else name): tensor for name, tensor in tensors.items()}
    if len(renamed) < len(tensors):
        raise InputError(f"{source}: several weights go by one name after renaming; they are not of this model")
    expected = module.state_dict(keep_vars=True)
    ties = _tied_names(expected)
    problems = {
        "missing": [names[0] for names in ties if not any(name in renamed for name in names)],
        "unexpected": sorted(set(renamed) - set(expected)),
        "wrong shape or kind": [
            f"{name} {_described(tensor)}, needed {_described(expected[name])}"
            for name, tensor in renamed.items()
            if name in expected and _differ_in_kind(tensor, expected[name])
        ],
        "tied but different": [" and ".join(names) for names in ties if not _agree(names, renamed)],
    }
    found = [f"{len(names)} {what} ({listed(names)})" for what, names in problems.items() if names]
    if found:
        raise InputError(f"{source}: the weights do not fit {type(module).__name__}: {'; '.join(found)}")
    return renamed


def _tied_names(expected: Mapping[str, Tensor]) -> list[list[str]]:
    groups: dict[int, list[str]] = defaultdict(list)
    for name, tensor in expected.items():
        groups[id(tensor)].append(name)
    return list(groups.values())


def _agree(names: list[str], tensors: Mapping[str, Tensor]) -> bool:
    given = [tensors[name] for name in names if name in tensors]
    return all(torch.equal(given[0], other) for other in given[1:])


def _differ_in_kind(tensor: Tensor, needed: Tensor) -> bool:
    return tensor.shape != needed.shape or tensor.is_floating_point() != needed.is_floating_point()


def _described(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"


def write_safetensors(
    path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors to a file that is either there in full or not at all; tied ones are stored once.

    Args:
        path: the file; one that is there is replaced. Its folder is made if need be.
        tensors: by name. Of those that are one and the same the first name is kept.
        metadata: texts for the file's header.

    Raises:
        InputError: if the file can't be written, for want of space for instance.
    """
    stored: dict[str, Tensor] = {}
    seen = set()
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and place in seen:
            continue
        seen.add(place)
        stored[name] = _alone(tensor.detach())
    with whole_file(path) as partial:
        partial.touch()
        mode = partial.stat().st_mode
        try:
            save_file(stored, partial, metadata={"format": "pt", **(metadata or {})})
        except SafetensorError as error:
            raise InputError(f"{path} can't be written ({first_line(error)}); check space and permissions") from None
        partial.chmod(mode)  # safetensors makes files that only their owner can read


def _alone(tensor: Tensor) -> Tensor:
    """On the CPU, contiguous, in memory of its own: a view into a larger tensor can't be stored."""
    tensor = tensor.cpu().contiguous()
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if whole else tensor.clone()


def load_mamba_weights(backbone: MambaBackbone, folder: str | Path) -> None:
    """Fill a backbone from a folder as transformers' `MambaForCausalLM.save_pretrained` writes it.

    Raises:
        MissingError: if the folder lacks its config or its weights.
        InputError: if its config is not the backbone's (naming each difference), or the weights do not fit.
    """
    folder = Path(folder)
    file = folder / "config.json"
    if not file.is_file():
        raise MissingError(f"{folder} has no config.json; give a folder with a saved Mamba model")
    found = _with_derived(_read_json(file))
    needed = _as_transformers_names(backbone.config)
    differences = [
        f"{name} is {found.get(name, 'absent')!r}, the backbone's is {value!r}"
        for name, value in needed.items()
        if found.get(name) != value
    ]
    if differences:
        raise InputError(f"{file} is of another model: {listed(differences)}; change the backbone's config")
    load_strictly(backbone, read_safetensors(folder), source=str(folder), rename=_current_name)


def _as_transformers_names(config: MambaConfig) -> dict[str, Any]:
    sizes = {name: getattr(config, name) for name in config.__dataclass_fields__}
    fixed = {"use_bias": False, "use_conv_bias": True, "hidden_act": "silu", "tie_word_embeddings": True}
    return {"model_type": "mamba", **sizes, **fixed}


def _with_derived(found: dict[str, Any]) -> dict[str, Any]:
    """A config as transformers reads it: what older files leave out or leave to be worked out, filled in."""
    found = {"use_bias": False, "use_conv_bias": True, "hidden_act": "silu", "tie_word_embeddings": True, **found}
    width = found.get("hidden_size")
    if isinstance(width, int):
        if found.get("time_step_rank", "auto") == "auto":
            found["time_step_rank"] = math.ceil(width / 16)
        if "expand" in found:  # transformers goes by this one, whatever intermediate_size says
            found["intermediate_size"] = int(found["expand"] * width)
    return found


def _current_name(name: str) -> str:
    """Files older than transformers' own class call the table `embedding`."""
    return name.replace("backbone.embedding.", "backbone.embeddings.")
