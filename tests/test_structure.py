"""Which room may use which: data flows one way (see the README's map)."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "livemamba"
WORDS = {
    "config", "conversation", "errors", "files", "hub", "json_files", "recipe", "texts", "ticks", "timeline", "wording",
    "yaml_files",
}  # fmt: skip
# What each room may import beside the words and itself.
MAY_USE = {
    "ops": set(),
    "dialogue": set(),
    "video": set(),
    "model": {"ops", "dialogue", "video"},
    "coaching": {"dialogue", "model"},
    "data": {"dialogue"},
    "evaluation": {"coaching", "data"},
    "simkitchen": {"data", "evaluation", "video"},
    "training": {"coaching", "data", "dialogue", "evaluation", "model", "simkitchen", "video"},
    "commands": {"coaching", "data", "dialogue", "evaluation", "model", "simkitchen", "video"},
}
TORCH_FREE = WORDS | {"coaching", "data", "evaluation", "simkitchen", "cli"}
HOLDS_TENSORS = {"data/cache.py", "data/collate.py", "data/sources.py"}  # of the torch-free rooms


def _imports(path: Path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _room(path: Path) -> str:
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else inside.stem


FILES = sorted(path for path in PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_import_goes_down(path):
    room = _room(path)
    if room in ("cli", "__init__", "__main__"):
        return
    used = {name.split(".")[1] for name in _imports(path) if name.startswith("livemamba.")}
    allowed = WORDS if room in WORDS else WORDS | {room} | MAY_USE[room]
    assert used <= allowed, f"{room} must not use {sorted(used - allowed)}"


def test_the_coaching_room_touches_the_model_in_one_place():
    touching = {
        path.name
        for path in (PACKAGE / "coaching").glob("*.py")
        if any(name.startswith("livemamba.model") for name in _imports(path))
    }
    assert touching == {"model_watcher.py", "runner.py"}  # the runner only to make the watcher, or for its type


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if _room(path) in TORCH_FREE and str(path.relative_to(PACKAGE)) not in HOLDS_TENSORS],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_torch_free_rooms_name_no_torch(path):
    named = {name.split(".")[0] for name in _imports(path)}
    assert not named & {"torch", "transformers", "timm"}
