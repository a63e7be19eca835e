"""The one place that checks what goes into an operation and picks the form that does it.

Letters: B batch, L positions, D inner width, S states of each inner channel, K taps.
"""

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from livemamba.errors import InputError, MissingError
from livemamba.ops import compiled, conv, native, scan

logger = logging.getLogger("livemamba.ops")

_REMEDY = "reinstall livemamba where there is a C compiler"


@dataclass(frozen=True, kw_only=True)
class Form:
    """One way to do the operations.

    Attributes:
        scan: does what `selective_scan` promises.
        conv: does what `causal_conv` promises.
        description: for the log line.
    """

    scan: Callable[..., tuple[Tensor, Tensor]]
    conv: Callable[..., tuple[Tensor, Tensor]]
    description: str


FORMS: dict[str, Form] = {
    "reference": Form(
        scan=scan.selective_scan_reference,
        conv=conv.causal_conv_reference,
        description="the reference, position by position",
    ),
    "torch": Form(
        scan=scan.selective_scan_torch,
        conv=conv.causal_conv_torch,
        description="plain torch, no kernel package",
    ),
}


def compiled_form(kernels: native.Kernels, instruction_set: str | None = None) -> Form:
    """The form that these kernels make, with their fastest instruction set if none is named."""
    ops = compiled.Compiled(kernels=kernels, instruction_set=instruction_set or kernels.instruction_sets[-1])
    return Form(scan=ops.selective_scan, conv=ops.causal_conv, description=ops.describe())


def _add_compiled(folder: Path) -> str | None:
    """Add the compiled form if its kernels are in `folder`; else say why not."""
    try:
        FORMS["compiled"] = compiled_form(native.find(folder))
    except native.UnusableError as error:
        return str(error)
    return None


_why_not_compiled = _add_compiled(Path(__file__).parent)
_setting = "auto"


def set_form(name: str) -> None:
    """Choose the form for this process: "auto" (the fastest there is) or a name in `FORMS`.

    "compiled", there only if its kernels were built, is for float32 on a CPU; anything else runs as "torch" then.

    Raises:
        InputError: for another name.
        MissingError: if "compiled" is not there.
    """
    global _setting
    if name == "compiled" and name not in FORMS:
        raise MissingError(f"{_why_not_compiled}; {_REMEDY}")
    if name != "auto" and name not in FORMS:
        raise InputError(f"unknown form {name!r} of the scan; choose one of auto, {', '.join(FORMS)}")
    _setting = name


@contextmanager
def use_form(name: str) -> Iterator[None]:
    """Choose the form, for every thread of the process, until the block ends; arguments as `set_form`."""
    before = _setting
    set_form(name)
    try:
        yield
    finally:
        set_form(before)


def current_form() -> str:
    """The name in `FORMS` of the form that runs now, for float32 on a CPU."""
    if _setting == "auto":
        return "compiled" if "compiled" in FORMS else "torch"
    return _setting


@functools.cache
def _announce(name: str) -> None:
    logger.info("selective scan and causal convolution run as %r: %s", name, FORMS[name].description)


@functools.cache
def _announce_slow() -> None:
    logger.warning("selective scan and causal convolution are slow here: %s; %s", _why_not_compiled, _REMEDY)


def _picked(*tensors: Tensor | None) -> Form:
    """The form for an operation on these."""
    name = current_form()
    if name == "compiled" and not compiled.fits(*tensors):
        name = "torch"
    elif _setting == "auto" and "compiled" not in FORMS and compiled.fits(*tensors):
        _announce_slow()
    _announce(name)
    return FORMS[name]


def selective_scan(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor,
    *,
    z: Tensor | None = None,
    initial_state: Tensor | None = None,
    reset: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Take any number of positions, none included, into a state; every input and the state get gradients.

    It is calculated in float32 (in float64 if x is float64). A position with dt = 0 leaves the state exactly
    as it is: that is how padding is done, provided that x, B and C are finite there.

    Args:
        x: inputs (B, L, D).
        dt: step sizes (B, L, D), already through softplus.
        A: decay rates (D, S), negative.
        B: input weights (B, L, S).
        C: output weights (B, L, S).
        D: skip weights (D,).
        z: gates (B, L, D), put through SiLU here; None for no gate.
        initial_state: (B, D, S), float32 or float64; None for zeros.
        reset: (B, L), bool: there the state starts from zero before the position is taken in.

    Returns:
        y (B, L, D) in x's dtype, and the state after the last position (B, D, S).

    Raises:
        InputError: if a shape, dtype or device does not fit; nothing is broadcast.
    """
    _require_dims("x", x, "(B, L, D)", 3)
    _require_dims("A", A, "(D, S)", 2)
    batch, length, width = x.shape
    states = A.shape[1]
    expected: dict[str, tuple[Tensor | None, tuple[int, ...]]] = {
        "dt": (dt, (batch, length, width)),
        "A": (A, (width, states)),
        "B": (B, (batch, length, states)),
        "C": (C, (batch, length, states)),
        "D": (D, (width,)),
        "z": (z, (batch, length, width)),
        "initial_state": (initial_state, (batch, width, states)),
    }
    _require("selective_scan", x, expected, state="initial_state")
    _require_flags("selective_scan", x, reset)
    form = _picked(x, dt, A, B, C, D, z, initial_state, reset)
    return form.scan(x, dt, A, B, C, D, z=z, initial_state=initial_state, reset=reset)


def causal_conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    window: Tensor,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """A causal depthwise convolution and SiLU of any number of positions, none included, onto a window.

    Args:
        x: inputs (B, L, D).
        weight: taps (D, K), the oldest input's first.
        bias: (D,) or None.
        window: the last K-1 inputs before x (B, K-1, D), oldest first, float32 or float64; zeros at the start.
        reset: (B, L), bool: that position and those after it see nothing from before it.
        lengths: (B,), int64: positions in front that count; the rest of x is padding, which leaves no trace in
            the window and whose outputs mean nothing. None if all count.

    Returns:
        y (B, L, D) in x's dtype, and the window after the last position that counts (B, K-1, D).

    Raises:
        InputError: if a shape, dtype or device does not fit; nothing is broadcast.
    """
    _require_dims("x", x, "(B, L, D)", 3)
    _require_dims("weight", weight, "(D, K)", 2)
    batch, _, width = x.shape
    expected: dict[str, tuple[Tensor | None, tuple[int, ...]]] = {
        "weight": (weight, (width, weight.shape[1])),
        "bias": (bias, (width,)),
        "window": (window, (batch, weight.shape[1] - 1, width)),
    }
    _require("causal_conv", x, expected, state="window")
    _require_flags("causal_conv", x, reset)
    if lengths is not None and (lengths.shape != (batch,) or lengths.dtype != torch.int64):
        raise InputError(f"causal_conv: lengths is {_described(lengths)}; it must be ({batch},) of int64")
    _require_device("causal_conv", "lengths", lengths, x)
    form = _picked(x, weight, bias, window, reset, lengths)
    return form.conv(x, weight, bias, window=window, reset=reset, lengths=lengths)


def _described(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} of {str(tensor.dtype).removeprefix('torch.')}"


def _require_dims(name: str, tensor: Tensor, letters: str, dims: int) -> None:
    if tensor.dim() != dims:
        raise InputError(f"{name} is {_described(tensor)}; it must be {letters}")


def _require(
    operation: str, x: Tensor, expected: dict[str, tuple[Tensor | None, tuple[int, ...]]], *, state: str
) -> None:
    for name, (tensor, shape) in {"x": (x, tuple(x.shape)), **expected}.items():
        if tensor is None:
            continue
        if tensor.shape != shape or not tensor.dtype.is_floating_point:
            raise InputError(
                f"{operation}: {name} is {_described(tensor)}; with x of {tuple(x.shape)} it must be {shape} of floats"
            )
        _require_device(operation, name, tensor, x)
        if name == state and tensor.dtype not in (torch.float32, torch.float64):
            raise InputError(f"{operation}: {name} is {_described(tensor)}; what is carried on stays in float32")


def _require_flags(operation: str, x: Tensor, reset: Tensor | None) -> None:
    if reset is not None and (reset.shape != x.shape[:2] or reset.dtype != torch.bool):
        raise InputError(f"{operation}: reset is {_described(reset)}; it must be {tuple(x.shape[:2])} of bool")
    _require_device(operation, "reset", reset, x)


def _require_device(operation: str, name: str, tensor: Tensor | None, x: Tensor) -> None:
    if tensor is not None and tensor.device != x.device:
        raise InputError(f"{operation}: {name} is on {tensor.device}, x on {x.device}; move one of them")
