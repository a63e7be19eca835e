"""LiveMamba: a streaming vision-language model that guides a person through a task, live.

Importing this package loads neither torch nor any kernel package; the names below are loaded when first used.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "LiveMamba": "livemamba.model.livemamba",
    "Stream": "livemamba.model.stream",
    "coach_video": "livemamba.coaching.runner",
    "load_recipe": "livemamba.recipe",
    "open_source": "livemamba.video.source",
}

__all__ = ["LiveMamba", "Stream", "coach_video", "load_recipe", "open_source"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
