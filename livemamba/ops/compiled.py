"""The compiled form of the scan and the convolution, for float32 on a CPU, with their gradients.

Letters: B batch, L positions, D inner width, S states of each inner channel, K taps, P parts of the channels.

Memory for gradients is that of the plain torch form: one state for each chunk of positions. Nothing depends on the
number of threads, since every sum is taken in a fixed order.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from livemamba.ops.native import Kernels, view


@dataclass(frozen=True, kw_only=True, eq=False)
class Compiled:
    """The kernels with one of the instruction sets that the processor has.

    Attributes:
        kernels: the loaded file.
        instruction_set: one of its.
    """

    kernels: Kernels
    instruction_set: str

    def describe(self) -> str:
        """For a log line."""
        threads = "torch's threads" if self.kernels.has_pool else "one thread, torch's were not found"
        return f"compiled kernels, {self.instruction_set}, {threads}"

    def selective_scan(
        self,
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
        """Arguments, which `fits` must accept, and results as `livemamba.ops.selective_scan`."""
        inputs = (x, dt, A, B, C, D, z, initial_state)
        if _wants_gradients(*inputs):
            outputs: tuple[Tensor, Tensor] = _Scan.apply(*inputs, reset, self)
            return outputs
        y, final, _ = _scan_forward(self, *inputs, reset, keep_starts=False)
        return y, final

    def causal_conv(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        *,
        window: Tensor,
        reset: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Arguments, which `fits` must accept, and results as `livemamba.ops.causal_conv`."""
        if _wants_gradients(x, weight, bias, window):
            outputs: tuple[Tensor, Tensor] = _Conv.apply(x, weight, bias, window, reset, lengths, self)
            return outputs
        return _conv_forward(self, x, weight, bias, window, reset, lengths)


_READ = (torch.float32, torch.bool, torch.int64)


def fits(*tensors: Tensor | None) -> bool:
    """Whether the kernels can read these: dense float32 (flags and lengths apart) in this machine's memory.

    A traced or compiled model must see torch's operations, and so must subclasses of a tensor.
    """
    if torch.compiler.is_compiling() or torch._C._is_tracing():
        return False
    return all(
        tensor is None
        or (
            tensor.dtype in _READ
            and tensor.device.type == "cpu"
            and tensor.layout == torch.strided
            and type(tensor) in (Tensor, torch.nn.Parameter)
        )
        for tensor in tensors
    )


def _wants_gradients(*tensors: Tensor | None) -> bool:
    return torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _side_by_side(tensor: Tensor) -> Tensor:
    """With the channels next to each other; rows and positions may lie as they like."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _whole(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def _scan_inputs(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor,
    z: Tensor | None,
    reset: Tensor | None,
) -> dict[str, Tensor | None]:
    """What both directions read; whoever holds the result keeps the memory alive."""
    rows = {"x": x, "dt": dt, "B": B, "C": C, "z": z}
    inputs = {name: None if tensor is None else _side_by_side(tensor) for name, tensor in rows.items()}
    return {**inputs, "A": A.contiguous(), "D": D.contiguous(), "reset": _whole(reset)}


def _run_scan(
    compiled: Compiled, function: str, inputs: dict[str, Tensor | None], grad_y: Tensor | None, **more: Tensor | None
) -> None:
    x, A = inputs["x"], inputs["A"]
    assert x is not None and A is not None
    batch, length, width = x.shape
    views = {name: view(inputs[name]) for name in ("x", "dt", "B", "C", "z")}
    compiled.kernels.run(
        function,
        compiled.instruction_set,
        batch=batch,
        length=length,
        width=width,
        states=A.shape[1],
        **{**inputs, **views, **more},
        grad_y=view(grad_y),
    )


def _scan_forward(
    compiled: Compiled,
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor,
    z: Tensor | None,
    initial: Tensor | None,
    reset: Tensor | None,
    *,
    keep_starts: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Outputs (B, L, D), the final state (B, D, S) and, if asked for, the state before each chunk."""
    batch, length, width = x.shape
    states, kernels = A.shape[1], compiled.kernels
    y, final = x.new_empty(batch, length, width), x.new_empty(batch, width, states)
    starts = None
    if keep_starts:
        chunks, lines = -(-length // kernels.chunk), -(-width // kernels.line)
        starts = x.new_empty(batch, chunks, lines, states, kernels.line)
    inputs = _scan_inputs(x, dt, A, B, C, D, z, reset)
    _run_scan(compiled, "scan_forward", inputs, None, initial=_whole(initial), y=y, final=final, starts=starts)
    return y, final, starts


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        dt: Tensor,
        A: Tensor,
        B: Tensor,
        C: Tensor,
        D: Tensor,
        z: Tensor | None,
        initial: Tensor | None,
        reset: Tensor | None,
        compiled: Compiled,
    ) -> tuple[Tensor, Tensor]:
        y, final, starts = _scan_forward(compiled, x, dt, A, B, C, D, z, initial, reset, keep_starts=True)
        ctx.save_for_backward(x, dt, A, B, C, D, z, reset, starts)
        ctx.compiled = compiled
        return y, final

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_final: Tensor) -> tuple[Tensor | None, ...]:
        *saved, starts = ctx.saved_tensors
        x, A, z = saved[0], saved[2], saved[6]
        (batch, length, width), states = x.shape, A.shape[1]
        parts = -(-width // ctx.compiled.kernels.part)
        grads = {
            "grad_x": x.new_empty(x.shape),
            "grad_dt": x.new_empty(x.shape),
            "grad_z": None if z is None else x.new_empty(x.shape),
            "grad_initial": x.new_empty(batch, width, states),
            "grad_A": x.new_empty(batch, width, states),
            "grad_D": x.new_empty(batch, width),
            "grad_B": x.new_empty(parts, batch, length, states),
            "grad_C": x.new_empty(parts, batch, length, states),
        }
        _run_scan(
            ctx.compiled,
            "scan_backward",
            _scan_inputs(*saved),
            _side_by_side(grad_y),
            starts=starts,
            grad_final=grad_final.contiguous(),
            **grads,
        )
        for name in ("grad_A", "grad_D", "grad_B", "grad_C"):
            grads[name] = grads[name].sum(0)
        order = ("grad_x", "grad_dt", "grad_A", "grad_B", "grad_C", "grad_D", "grad_z", "grad_initial")
        wanted = zip(order, ctx.needs_input_grad, strict=False)  # autograd refuses one for an input that was None
        return (*(grads[name] if needed else None for name, needed in wanted), None, None)


def _conv_inputs(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    window: Tensor,
    reset: Tensor | None,
    lengths: Tensor | None,
) -> dict[str, Tensor | None]:
    """What both directions read; whoever holds the result keeps the memory alive."""
    return {
        "x": _side_by_side(x),
        "window": _side_by_side(window),
        "weight": weight.contiguous(),
        "bias": _whole(bias),
        "reset": _whole(reset),
        "lengths": _whole(lengths),
    }


def _run_conv(
    compiled: Compiled, function: str, inputs: dict[str, Tensor | None], grads: dict[str, Tensor | None]
) -> None:
    x, weight = inputs["x"], inputs["weight"]
    assert x is not None and weight is not None
    batch, length, width = x.shape
    views = {name: view(tensor) for name, tensor in (inputs | grads).items() if name in _CONV_VIEWS}
    compiled.kernels.run(
        function,
        compiled.instruction_set,
        batch=batch,
        length=length,
        width=width,
        taps=weight.shape[1],
        **{**inputs, **grads, **views},
    )


_CONV_VIEWS = ("x", "window", "grad_y", "grad_last")


def _conv_forward(
    compiled: Compiled,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    window: Tensor,
    reset: Tensor | None,
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor]:
    y, last = x.new_empty(x.shape), x.new_empty(window.shape)
    inputs = _conv_inputs(x, weight, bias, window, reset, lengths)
    _run_conv(compiled, "conv_forward", inputs, {"y": y, "last": last})
    return y, last


class _Conv(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        window: Tensor,
        reset: Tensor | None,
        lengths: Tensor | None,
        compiled: Compiled,
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight, bias, window, reset, lengths)
        ctx.compiled = compiled
        return _conv_forward(compiled, x, weight, bias, window, reset, lengths)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_last: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, bias, window, _, _ = ctx.saved_tensors
        batch, _, width = x.shape
        grads = {
            "grad_x": x.new_empty(x.shape),
            "grad_window": x.new_empty(window.shape),
            "grad_weight": x.new_empty(batch, *weight.shape),
            "grad_bias": x.new_empty(batch, width),
        }
        given = {"grad_y": _side_by_side(grad_y), "grad_last": _side_by_side(grad_last)}
        _run_conv(ctx.compiled, "conv_backward", _conv_inputs(*ctx.saved_tensors), grads | given)
        grad_bias = None if bias is None else grads["grad_bias"].sum(0)
        return grads["grad_x"], grads["grad_weight"].sum(0), grad_bias, grads["grad_window"], None, None, None
