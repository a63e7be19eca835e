"""The selective scan of Mamba-1, from a given state to the state after the last position.

Letters: B batch, L positions, D inner width, S states of each inner channel, T positions of one chunk.

With h the state (B, D, S), at every position t, for every channel d and state s:

    h[d, s] = exp(dt[t, d] * A[d, s]) * h[d, s] + dt[t, d] * x[t, d] * B[t, s]
    y[t, d] = sum over s of C[t, s] * h[d, s], plus D[d] * x[t, d], all times silu(z[t, d])

Source: Mamba (arXiv 2312.00752), section 3.2 and algorithm 2. Two forms of one function stand here; call it
through `livemamba.ops.selective_scan`, which checks the arguments and picks the form.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 16
"""Positions whose states are held at a time when there are gradients. As many as Mamba has states a channel, so that
those kept for the backward pass, one for each chunk, take no more memory than an input does."""

INFERENCE_CHUNK = 8
"""The same without gradients: few enough for the memory to be reused from chunk to chunk, not asked for again."""


def working_dtype(x: Tensor) -> torch.dtype:
    """The precision to calculate in: float32, or float64 for inputs of float64."""
    return torch.promote_types(x.dtype, torch.float32)


def _started(x: Tensor, A: Tensor, initial_state: Tensor | None) -> Tensor:
    if initial_state is None:
        return torch.zeros(x.shape[0], *A.shape, dtype=working_dtype(x), device=x.device)
    return initial_state.to(working_dtype(x))


def selective_scan_reference(
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
    """The definition, position by position; arguments and results as `livemamba.ops.selective_scan`."""
    state = _started(x, A, initial_state)
    out_dtype, work = x.dtype, state.dtype
    x, dt, A, B, C, D = (tensor.to(work) for tensor in (x, dt, A, B, C, D))
    outputs = [torch.zeros_like(x[:, :0])]
    for t in range(x.shape[1]):
        if reset is not None:
            state = torch.where(reset[:, t, None, None], torch.zeros_like(state), state)
        decay = torch.exp(dt[:, t, :, None] * A)
        inflow = (dt[:, t] * x[:, t])[:, :, None] * B[:, t, None, :]
        state = decay * state + inflow
        outputs.append(((state * C[:, t, None, :]).sum(-1) + D * x[:, t])[:, None])
    y = torch.cat(outputs, dim=1)
    if z is not None:
        y = y * F.silu(z.to(work))
    return y.to(out_dtype), state


def selective_scan_torch(
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
    """The fast form in plain torch; arguments and results as `livemamba.ops.selective_scan`.

    All that does not depend on the state is calculated for a chunk of positions at once, which leaves one
    operation a position. For gradients only the states between chunks are kept; the backward pass, which can't
    itself be differentiated, calculates the others again.
    """
    state = _started(x, A, initial_state)
    work = state.dtype
    # Autocast would put the products of this function, which is calculated in full precision, into half.
    with torch.autocast(x.device.type, enabled=False):
        y, final_state = _scan(x, dt, A.to(work), B, C, state, reset)
        y = torch.addcmul(y, x.to(work), D.to(work))
        if z is not None:
            y = y * F.silu(z.to(work))
    return y.to(x.dtype), final_state


def _scan(
    x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor, reset: Tensor | None
) -> tuple[Tensor, Tensor]:
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, dt, A, B, C, state)):
        outputs: tuple[Tensor, Tensor] = _ScanWithGradients.apply(x, dt, A, B, C, state, reset)
        return outputs
    y, final_state, _ = _forward(x, dt, A, B, C, state, reset, keep_starts=False)
    return y, final_state


class _Chunk(NamedTuple):
    """T consecutive positions, position first, channels last: broadcasts then run along long rows."""

    x: Tensor  # (T, B, D)
    dt: Tensor  # (T, B, D)
    B: Tensor  # (T, B, S)
    C: Tensor  # (T, B, S)
    decay: Tensor  # (T, B, S, D), what is left of the state before, 0 at a reset
    states: Tensor  # (T, B, S, D), after each position


def _chunk(positions: slice, inputs: tuple[Tensor, ...], A: Tensor, start: Tensor, reset: Tensor | None) -> _Chunk:
    """The positions of `inputs` (x, dt, B, C) onto `start` (B, S, D); A is (S, D)."""
    x, dt, B, C = (tensor[:, positions].transpose(0, 1).to(A.dtype) for tensor in inputs)
    decay = (dt[:, :, None, :] * A).exp_()
    if reset is not None:
        decay.masked_fill_(reset[:, positions].t()[:, :, None, None], 0)
    states = B[..., None] * (dt * x)[:, :, None, :]
    before = start
    for inflow, kept in zip(states.unbind(), decay.unbind(), strict=True):
        before = inflow.addcmul_(kept, before)
    return _Chunk(x, dt, B, C, decay, states)


def _slices(length: int, chunk: int) -> Iterator[slice]:
    return (slice(first, min(first + chunk, length)) for first in range(0, length, chunk))


def _forward(
    x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor, reset: Tensor | None, *, keep_starts: bool
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Outputs without the skip (B, L, D), the final state (B, D, S) and, if asked for, each chunk's start."""
    channels_last = A.t().contiguous()
    start = state.transpose(1, 2).contiguous()
    y = torch.empty(x.shape[1], x.shape[0], x.shape[2], dtype=A.dtype, device=x.device)
    starts = []
    for positions in _slices(x.shape[1], CHUNK if keep_starts else INFERENCE_CHUNK):
        if keep_starts:
            starts.append(start.clone())  # a view would keep the whole chunk before it alive
        chunk = _chunk(positions, (x, dt, B, C), channels_last, start, reset)
        y[positions] = torch.matmul(chunk.C[:, :, None, :], chunk.states).squeeze(2)
        start = chunk.states[-1]
    return y.transpose(0, 1), start.transpose(1, 2).clone(memory_format=torch.contiguous_format), starts


class _ScanWithGradients(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, state: Tensor, reset: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        y, final_state, starts = _forward(x, dt, A, B, C, state, reset, keep_starts=True)
        ctx.save_for_backward(x, dt, A, B, C, reset, *starts)
        return y, final_state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_y: Tensor, grad_state: Tensor) -> tuple[Tensor | None, ...]:
        x, dt, A, B, C, reset, *starts = ctx.saved_tensors
        inputs, grads = (x, dt, B, C), tuple(torch.empty_like(tensor) for tensor in (x, dt, B, C))
        channels_last = A.t().contiguous()
        grad_A = torch.zeros_like(channels_last)
        grad_after = grad_state.transpose(1, 2).contiguous()
        with torch.autocast(x.device.type, enabled=False):
            for positions, start in reversed(list(zip(_slices(x.shape[1], CHUNK), starts, strict=True))):
                chunk = _chunk(positions, inputs, channels_last, start, reset)
                grad_out = grad_y[:, positions].transpose(0, 1).contiguous()
                grad_states = _grad_of_states(chunk, grad_out, grad_after)
                grad_after = chunk.decay[0] * grad_states[0]
                part, grad_A_part = _grad_of_inputs(chunk, channels_last, start, grad_states, grad_out)
                grad_A += grad_A_part
                for whole, piece in zip(grads, part, strict=True):
                    whole[:, positions] = piece.transpose(0, 1)
        grad_x, grad_dt, grad_B, grad_C = grads
        return grad_x, grad_dt, grad_A.t(), grad_B, grad_C, grad_after.transpose(1, 2), None


def _grad_of_states(chunk: _Chunk, grad_out: Tensor, grad_after: Tensor) -> Tensor:
    """Of each state of the chunk (T, B, S, D), from its outputs (T, B, D) and from what follows (B, S, D)."""
    grads = chunk.C[..., None] * grad_out[:, :, None, :]
    grads[-1] += grad_after
    for t in range(grads.shape[0] - 2, -1, -1):
        grads[t].addcmul_(chunk.decay[t + 1], grads[t + 1])
    return grads


def _grad_of_inputs(
    chunk: _Chunk, A: Tensor, start: Tensor, grad_states: Tensor, grad_out: Tensor
) -> tuple[tuple[Tensor, ...], Tensor]:
    """Of x, dt, B, C at the chunk's positions, and the chunk's share in that of A (S, D)."""
    before = torch.cat([start[None], chunk.states[:-1]])
    grad_exponent = before.mul_(grad_states).mul_(chunk.decay)  # of dt * A, the argument of the exponential
    grad_inflow = torch.matmul(chunk.B[:, :, None, :], grad_states).squeeze(2)  # of dt * x
    grad_B = torch.matmul(grad_states, (chunk.dt * chunk.x)[..., None]).squeeze(-1)
    grad_C = torch.matmul(chunk.states, grad_out[..., None]).squeeze(-1)
    grad_dt = torch.addcmul((grad_exponent * A).sum(2), grad_inflow, chunk.x)
    grad_A = grad_exponent.mul_(chunk.dt[:, :, None, :]).sum((0, 1))
    return (grad_inflow * chunk.dt, grad_dt, grad_B, grad_C), grad_A
