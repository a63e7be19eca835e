"""The causal depthwise convolution of a Mamba block, with SiLU, onto an explicit window of past inputs.

Letters: B batch, L positions, D inner width, K taps.

The window (B, K-1, D) holds the last K-1 inputs, oldest first, zeros where there were none yet. Call it through
`livemamba.ops.causal_conv`, which checks the arguments and picks the form.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from livemamba.ops.scan import working_dtype


def causal_conv_reference(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    window: Tensor,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The definition, position by position; arguments and results as `livemamba.ops.causal_conv`."""
    work = working_dtype(x)
    window = window.to(work)
    outputs = [x[:, :0].to(work)]
    for t in range(x.shape[1]):
        past = window if reset is None else torch.where(reset[:, t, None, None], torch.zeros_like(window), window)
        seen = torch.cat([past, x[:, t : t + 1].to(work)], dim=1)  # (B, K, D)
        total = (seen * weight.to(work).t()).sum(1, keepdim=True)
        outputs.append(total if bias is None else total + bias.to(work))
        taken_in = seen[:, 1:]
        window = taken_in if lengths is None else torch.where((t < lengths)[:, None, None], taken_in, window)
    return F.silu(torch.cat(outputs, dim=1)).to(x.dtype), window


def causal_conv_torch(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    window: Tensor,
    reset: Tensor | None = None,
    lengths: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The fast form in plain torch: one shifted product for each tap; as `livemamba.ops.causal_conv`."""
    work = working_dtype(x)
    past, length = window.shape[1], x.shape[1]
    inputs = torch.cat([window.to(work), x.to(work)], dim=1)  # (B, K-1+L, D)
    segments = None if reset is None else F.pad(reset.long().cumsum(1), (past, 0))  # (B, K-1+L)
    taps = weight.to(work).t().contiguous()  # (K, D)
    total = inputs[:, past:] * taps[past]
    if bias is not None:
        total = total + bias.to(work)
    for tap in range(past):
        shifted = inputs[:, tap : tap + length]
        if segments is not None:
            other = segments[:, tap : tap + length] != segments[:, past:]
            shifted = shifted.masked_fill(other[..., None], 0)
        total = torch.addcmul(total, shifted, taps[tap])
    return F.silu(total).to(x.dtype), _last_inputs(inputs, segments, lengths, past)


def _last_inputs(inputs: Tensor, segments: Tensor | None, lengths: Tensor | None, past: int) -> Tensor:
    """The window (B, K-1, D) that `inputs` (B, K-1+L, D) leave behind, zeros before the last reset."""
    if lengths is None:
        lengths = torch.full((inputs.shape[0],), inputs.shape[1] - past, device=inputs.device)
    places = lengths[:, None] + torch.arange(past, device=inputs.device)  # (B, K-1)
    window = inputs.gather(1, places[..., None].expand(-1, -1, inputs.shape[2]))
    if segments is None:
        return window
    owners = segments.gather(1, places)
    return window.masked_fill((owners != owners[:, -1:])[..., None], 0)
