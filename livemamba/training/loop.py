"""The loop: a timetable that says what is due, log, validate, save, and one function that makes a step.

The same for every stage; a `Task` brings the data and the loss. Run by `accelerate launch`, on one process or many.
Letters: none; a batch is whatever the task's module takes.
"""

import logging
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from tqdm import tqdm

from livemamba.config import config_to_dict
from livemamba.errors import InputError
from livemamba.model.livemamba import LiveMamba
from livemamba.training.checkpoint import (
    CONFIG_FILE,
    checkpoints,
    differences,
    find_resumed,
    load_checkpoint,
    prune_checkpoints,
    publish_model,
    save_checkpoint,
    write_config,
)
from livemamba.training.config import OptimConfig, RunConfig
from livemamba.training.metrics import MetricsLog, import_wandb

logger = logging.getLogger(__name__)

Sums = dict[str, Tensor]
"""Name -> (2,) float32: a sum and the count or weight that divides it. "loss" is what is minimised."""

INTERRUPTED = 130
SAME_INTERRUPT_S = 2.0
"""At Ctrl-C the terminal tells every process, and the launcher tells its own once more: so soon, it is the same one."""


class Task(Protocol):
    """What is trained, on what."""

    @property
    def module(self) -> nn.Module:
        """What is trained: its forward takes a batch and returns `Sums`; the network is its `live`."""

    @property
    def live(self) -> LiveMamba:
        """The network, saved as the model."""

    def batch(self, step: int, rank: int, world_size: int) -> Any:
        """The batch of a step on one process; a function of these numbers and the seed alone."""

    def validate(self, step: int) -> Mapping[str, float]:
        """Scores on validation data; called on the main process. Empty if there is nothing to score."""


def train(
    task: Task,
    *,
    run: RunConfig,
    optim: OptimConfig,
    config: Any,
    resume: bool = False,
    accelerator: Accelerator | None = None,
) -> Path:
    """Run to the end, from the start or from the newest checkpoint. Every process calls it.

    Args:
        task: module, batches, validation.
        run: timetable.
        optim: optimiser.
        config: the whole config, for the record.
        resume: go on from the newest checkpoint.
        accelerator: default a new one.

    Returns:
        the model's folder.

    Raises:
        InputError, MissingError: before anything costly starts, if the run's folder doesn't fit.
        SystemExit: status 130 after Ctrl-C, with a checkpoint saved.
    """
    accelerator = accelerator or Accelerator()
    return _Loop(task, run, optim, config, accelerator).run(resume=resume)


def check_folder(run: RunConfig, *, resume: bool) -> None:
    """Refuse to start where a run is, and to resume where none is; or to log to a wandb that isn't there.

    A run that ended before its first checkpoint can be resumed too: it begins again.

    Raises:
        InputError, MissingError: saying so.
    """
    folder = Path(run.out)
    if run.wandb:
        import_wandb()
    if resume:
        if not _ended_early(folder):
            find_resumed(folder)
    elif folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is there already; --resume goes on with it, or name another run.out")


def _ended_early(folder: Path) -> bool:
    """Whether a run was started there and has no checkpoint yet."""
    return (folder / CONFIG_FILE).is_file() and not checkpoints(folder)


class _Loop:
    def __init__(self, task: Task, run: RunConfig, optim: OptimConfig, config: Any, accelerator: Accelerator) -> None:
        self.task, self.config = task, config_to_dict(config)
        self.timetable, self.optim = run, optim
        self.accelerator = accelerator
        self.folder = Path(run.out)
        self.optimizer = make_optimizer(task.module, optim)
        self.module: nn.Module = task.module.to(accelerator.device)
        self._interrupted = False

    def run(self, *, resume: bool) -> Path:
        check_folder(self.timetable, resume=resume)
        start = self._resume() if resume else 0
        wrapped, optimizer = self.accelerator.prepare(self.module, self.optimizer)
        self.accelerator.wait_for_everyone()
        log = self._open_log(start) if self.accelerator.is_main_process else None
        sums = _Running()
        bar = tqdm(
            range(start, self.timetable.steps),
            initial=start,
            total=self.timetable.steps,
            unit="step",
            disable=None if self.accelerator.is_main_process else True,
            dynamic_ncols=True,
        )
        with _interrupts(self):
            for step in bar:
                sums.add(self._step(step, wrapped, optimizer))
                done = step + 1
                if self._due(done, self.timetable.log_every):
                    values = sums.means(self.accelerator)
                    bar.set_postfix({name: f"{value:.3f}" for name, value in values.items()})
                    self._write(log, done, "train", values)
                if self._due(done, self.timetable.validate_every) and log is not None:
                    self._validate(log, done)
                stop = self._anyone_interrupted()
                if stop or self._due(done, self.timetable.save_every):
                    self._save(done)
                if stop:
                    bar.close()
                    logger.warning("interrupted after step %d; the checkpoint is saved, --resume goes on", done)
                    sys.exit(INTERRUPTED)
        self.accelerator.wait_for_everyone()
        if log is not None:
            publish_model(self.folder)
            log.close()
        return self.folder / "model"

    def _step(self, step: int, wrapped: nn.Module, optimizer: Any) -> Sums:
        """One step: batch, loss, gradient, update."""
        world = self.accelerator.num_processes
        torch.manual_seed((self.timetable.seed * 1_000_003 + step) * 4099 + self.accelerator.process_index)
        for group in self.optimizer.param_groups:
            group["lr"] = self.optim.rate_at(step, self.timetable.steps)
        wrapped.train()
        batch = _to(self.task.batch(step, self.accelerator.process_index, world), self.accelerator.device)
        sums: Sums = wrapped(batch)
        total = self.accelerator.reduce(sums["loss"][1].detach(), reduction="sum")
        # Gradients are averaged over processes; the loss is to be the mean over all their targets.
        loss = sums["loss"][0] * world / total.clamp_min(1e-9)
        if not torch.isfinite(loss):
            raise InputError(
                f"the loss of step {step} is {float(loss.detach())}; lower optim.learning_rate, then --resume"
            )
        self.accelerator.backward(loss)
        self.accelerator.clip_grad_norm_(wrapped.parameters(), self.optim.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return {name: value.detach() for name, value in sums.items()}

    def _due(self, done: int, every: int) -> bool:
        return done == self.timetable.steps or (every > 0 and done % every == 0)

    def _validate(self, log: MetricsLog, done: int) -> None:
        self.module.eval()
        with torch.inference_mode():
            values = self.task.validate(done)
        if values:
            log.write(done, "validation", values)
            tqdm.write(f"step {done}: " + ", ".join(f"{name} {value:.3f}" for name, value in values.items()))

    def _write(self, log: MetricsLog | None, done: int, split: str, values: Mapping[str, float]) -> None:
        if log is not None:
            log.write(done, split, {**values, "learning_rate": self.optimizer.param_groups[0]["lr"]})

    def _save(self, done: int) -> None:
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            save_checkpoint(
                self.folder,
                step=done,
                module=self.module,
                live=self.task.live,
                optimizer=self.optimizer,
                world_size=self.accelerator.num_processes,
                config=self.config,
            )
            prune_checkpoints(self.folder, self.timetable.keep_checkpoints)
        self.accelerator.wait_for_everyone()

    def _resume(self) -> int:
        if _ended_early(self.folder):
            logger.warning("%s has no checkpoint yet: the run begins again", self.folder)
            return 0
        resumed = find_resumed(self.folder)
        load_checkpoint(resumed, module=self.module, live=self.task.live, optimizer=self.optimizer)
        if resumed.world_size != self.accelerator.num_processes:
            logger.warning(
                "the run had %d processes and goes on with %d: batches differ from the unbroken run's",
                resumed.world_size,
                self.accelerator.num_processes,
            )
        if changed := differences(resumed.config, self.config):
            logger.warning("resumed with another config than the checkpoint's: %s", "; ".join(changed))
        return resumed.step

    def _open_log(self, start: int) -> MetricsLog:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_config(self.folder, self.config)
        return MetricsLog(self.folder, from_step=start, project=self.timetable.wandb, config=self.config)

    def interrupt(self) -> None:
        """Stop after the step at hand."""
        self._interrupted = True

    def _anyone_interrupted(self) -> bool:
        if self.accelerator.num_processes == 1:
            return self._interrupted
        flag = torch.tensor(float(self._interrupted), device=self.accelerator.device)
        return bool(self.accelerator.reduce(flag, reduction="sum") > 0)


def make_optimizer(module: nn.Module, optim: OptimConfig) -> torch.optim.AdamW:
    """AdamW over what is trained: weight decay on matrices alone, and not on one of which only some rows learn."""
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    decays = [parameter.dim() > 1 and not getattr(parameter, "only_some_rows", False) for parameter in trained]
    groups = [
        {
            "params": [one for one, decay in zip(trained, decays, strict=True) if decay],
            "weight_decay": optim.weight_decay,
        },
        {"params": [one for one, decay in zip(trained, decays, strict=True) if not decay], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=optim.learning_rate, betas=(optim.beta1, optim.beta2))


class _Running:
    """Sums since the last row of metrics."""

    def __init__(self) -> None:
        self._sums: Sums = {}

    def add(self, sums: Sums) -> None:
        for name, value in sums.items():
            self._sums[name] = self._sums[name] + value if name in self._sums else value

    def means(self, accelerator: Accelerator) -> dict[str, float]:
        """Means over all processes; then it starts anew. A name that counted nothing is left out."""
        names = sorted(self._sums)
        total = accelerator.reduce(torch.stack([self._sums[name] for name in names]), reduction="sum")
        self._sums = {}
        return {name: float(row[0] / row[1]) for name, row in zip(names, total, strict=True) if row[1] > 0}


class _interrupts:  # noqa: N801 (a context manager)
    """While it lasts, Ctrl-C and a polite kill stop the loop after the step at hand; a later Ctrl-C stops at once."""

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop
        self._before: dict[signal.Signals, Any] = {}
        self._first_s: float | None = None

    def __enter__(self) -> None:
        for name in (signal.SIGINT, signal.SIGTERM):
            self._before[name] = signal.signal(name, self._hear)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        if self._first_s is None:
            self._first_s = now_s
            self._loop.interrupt()
        elif number == signal.SIGINT and now_s - self._first_s > SAME_INTERRUPT_S:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)


def _to(batch: Any, device: torch.device) -> Any:
    """A batch on a device: batches know how, or are tuples of tensors."""
    if hasattr(batch, "to"):
        return batch.to(device)
    return tuple(part.to(device) for part in batch)
