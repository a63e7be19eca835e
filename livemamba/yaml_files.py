"""Reading YAML that a person wrote: no silent duplicates, errors in one line. No torch."""

from pathlib import Path
from typing import Any

import yaml

from livemamba.errors import InputError, MissingError


class _StrictLoader(yaml.SafeLoader):
    """The safe loader, refusing keys that stand twice (YAML itself keeps the last one, silently)."""


def _mapping_without_duplicates(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise InputError(f"line {node.start_mark.line + 1}: key {key!r} stands twice; keep one")
    return loader.construct_mapping(node, deep=True)


_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping_without_duplicates)


def read_yaml(path: str | Path, *, what: str) -> Any:
    """What a YAML file holds.

    Args:
        path: the file.
        what: what it is to the user ("recipe", "config"), for errors.

    Raises:
        MissingError: if it isn't there or is a folder.
        InputError: if it is empty, not YAML, not text, or repeats a key.
    """
    path = Path(path)
    if not path.is_file():
        state = "is a folder" if path.is_dir() else "does not exist"
        raise MissingError(f"{what} {path} {state}; give the path of a YAML file")
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=_StrictLoader)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; a {what} is YAML in UTF-8") from None
    except (RecursionError, ValueError) as error:  # deep nesting; a number or date that is none
        problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{path}: not a {what} ({problem})") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise InputError(f"{path}: {line}not YAML ({problem})") from None
    if data is None:
        raise InputError(f"{path}: the {what} is empty")
    return data
