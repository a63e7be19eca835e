"""The compiled kernels of `csrc/`: found, checked, and called on the memory of tensors.

They have a plain C interface, so they don't care which torch is there, and other threads run while they do. An
installation without a C compiler has none; then `livemamba.ops` does without, and says so.
"""

import ctypes
from collections.abc import Iterator
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

INTERFACE = 1
"""Of `csrc/calls.h`; a file built from another one is not called."""


class View(Structure):
    """A (B, L, channels) tensor whose channels lie side by side: address, and strides in floats."""

    _fields_ = (("data", c_void_p), ("row", c_int64), ("position", c_int64))


def _each(kind: type, names: str) -> Iterator[tuple[str, type]]:
    return ((name, kind) for name in names.split())


class ScanCall(Structure):
    """`scan_call` of `csrc/calls.h`, where the shapes stand."""

    _fields_ = (
        *_each(c_int64, "set threads batch length width states"),
        *_each(View, "x dt B C z"),
        *_each(c_void_p, "A D initial reset y final starts"),
        *_each(View, "grad_y"),
        *_each(c_void_p, "grad_final grad_x grad_dt grad_z grad_initial grad_A grad_D grad_B grad_C"),
    )


class ConvCall(Structure):
    """`conv_call` of `csrc/calls.h`, where the shapes stand."""

    _fields_ = (
        *_each(c_int64, "set threads batch length width taps"),
        *_each(View, "x window"),
        *_each(c_void_p, "weight bias reset lengths y last"),
        *_each(View, "grad_y grad_last"),
        *_each(c_void_p, "grad_x grad_window grad_weight grad_bias"),
    )


class Layout(Structure):
    """Sizes that the kernels work with: `csrc/calls.h`."""

    _fields_ = tuple(_each(c_int64, "scan_call conv_call line part chunk usable_sets has_pool"))


_FUNCTIONS: dict[str, type[Structure]] = {
    "scan_forward": ScanCall,
    "scan_backward": ScanCall,
    "conv_forward": ConvCall,
    "conv_backward": ConvCall,
}


class UnusableError(Exception):
    """There are no kernels that can be used; the message says why."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernels:
    """A loaded file of kernels.

    Attributes:
        library: the file.
        line: channels that are worked on together.
        part: channels of one task; tasks are what threads share out.
        chunk: positions between two states that are kept for the backward pass.
        has_pool: whether it found torch's threads; without them it runs in the caller's alone.
        instruction_sets: those that this processor has, the fastest last.
    """

    library: ctypes.CDLL
    line: int
    part: int
    chunk: int
    has_pool: bool
    instruction_sets: tuple[str, ...]

    def run(self, function: str, instruction_set: str, **values: Tensor | View | int | None) -> None:
        """Call `livemamba_<function>` with a structure of `values`.

        Args:
            function: "scan_forward", "scan_backward", "conv_forward" or "conv_backward".
            instruction_set: one of `instruction_sets`.
            values: the fields; a contiguous tensor for a pointer, None for one that is left out.

        Raises:
            MemoryError: if there was none to work with.
        """
        call = _FUNCTIONS[function](
            set=self.instruction_sets.index(instruction_set),
            threads=torch.get_num_threads(),
            **{name: value.data_ptr() if isinstance(value, Tensor) else value for name, value in values.items()},
        )
        if getattr(self.library, f"livemamba_{function}")(byref(call)) != 0:
            raise MemoryError(f"no memory for {function}")


def view(tensor: Tensor | None) -> View:
    """Of a tensor (B, L, channels) whose channels lie side by side; None gives a view of nothing."""
    return View() if tensor is None else View(tensor.data_ptr(), tensor.stride(0), tensor.stride(1))


def load(path: Path) -> Kernels:
    """Load a file of kernels.

    Raises:
        UnusableError: if it doesn't load or was built from another version of the source.
    """
    try:
        library = ctypes.CDLL(str(path))
        same = library.livemamba_interface() == INTERFACE
    except (OSError, AttributeError) as error:
        raise UnusableError(f"the compiled kernels do not load: {error}") from error
    if not same:
        raise UnusableError(f"the compiled kernels are of another version of livemamba: {path}")
    layout = Layout()
    library.livemamba_layout.argtypes = [POINTER(Layout)]
    library.livemamba_layout(byref(layout))
    assert (layout.scan_call, layout.conv_call) == (ctypes.sizeof(ScanCall), ctypes.sizeof(ConvCall))
    for function, structure in _FUNCTIONS.items():
        getattr(library, f"livemamba_{function}").argtypes = [POINTER(structure)]
        getattr(library, f"livemamba_{function}").restype = c_int
    library.livemamba_set_name.argtypes = [c_int64]
    library.livemamba_set_name.restype = c_char_p
    return Kernels(
        library=library,
        line=layout.line,
        part=layout.part,
        chunk=layout.chunk,
        has_pool=bool(layout.has_pool),
        instruction_sets=tuple(library.livemamba_set_name(number).decode() for number in range(layout.usable_sets)),
    )


def find(folder: Path = Path(__file__).parent) -> Kernels:
    """The kernels that the installation has put into `folder`.

    Raises:
        UnusableError: if there are none, or they can't be used.
    """
    for suffix in EXTENSION_SUFFIXES:
        path = folder / f"_kernels{suffix}"
        if path.exists():
            return load(path)
    raise UnusableError("the compiled kernels are not there")
