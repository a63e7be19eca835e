"""Metrics of a run: a local file always, wandb beside it when asked.

Rows are JSON objects, one a line, with a step that rises over the whole run, resumed or not.
"""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from livemamba.errors import InputError, MissingError
from livemamba.files import whole_file

METRICS_FILE = "metrics.jsonl"


class MetricsLog:
    """Writes metrics; the main process's business alone.

    Args:
        folder: of the run.
        from_step: rows after it are taken out: they belong to steps that a resumed run does again.
        project: of wandb; None for the local file alone.
        config: of the run, for wandb.

    Raises:
        MissingError: if wandb is asked for and not installed.
    """

    def __init__(
        self, folder: Path, *, from_step: int = 0, project: str | None = None, config: Mapping[str, Any] | None = None
    ) -> None:
        if project:
            import_wandb()
        self.path = folder / METRICS_FILE
        kept = [row for row in read_metrics(self.path) if row["step"] <= from_step] if self.path.exists() else []
        with whole_file(self.path) as partial:
            partial.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")
        self._wandb = _start_wandb(folder, project, config, resumed=from_step > 0) if project else None

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """One row.

        Args:
            step: how many steps are done.
            split: train, validation.
            values: by name.
        """
        row = {"step": step, "split": split, **{name: round(value, 6) for name, value in values.items()}}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        if self._wandb is not None:
            self._wandb.log({f"{split}/{name}": value for name, value in values.items()}, step=step)

    def close(self) -> None:
        """Finish the wandb run, if there is one."""
        if self._wandb is not None:
            self._wandb.finish()


def read_metrics(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a metrics file.

    Raises:
        InputError: naming a line that is no row.
    """
    rows = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            raise InputError(f"{path}: line {number} is no JSON; a row was cut, delete it") from None
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            raise InputError(f"{path}: line {number} is no row of metrics")
        rows.append(row)
    return rows


def import_wandb() -> Any:
    """The wandb package.

    Raises:
        MissingError: if it is not installed.
    """
    try:
        return importlib.import_module("wandb")
    except ImportError:
        raise MissingError("run.wandb is set, but wandb is not installed; pip install 'livemamba[wandb]'") from None


def _start_wandb(folder: Path, project: str, config: Mapping[str, Any] | None, *, resumed: bool) -> Any:
    # The folder's name is the run's id: a resumed run goes on in the same one.
    return import_wandb().init(
        project=project, id=folder.name, resume="allow" if resumed else None, dir=str(folder), config=dict(config or {})
    )
