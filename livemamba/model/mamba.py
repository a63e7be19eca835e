"""The language backbone, Mamba-1: any number of positions onto an explicit state.

Letters: B batch, L positions, W width of the residual stream, D inner width, S states of each inner channel,
R rank of the step size, K taps of the convolution, V vocabulary.

There is one path: a whole sequence, a frame's positions and a single token are calls of different length with
the same weights, and any cut of a sequence gives the same results. Parameters bear the names that transformers'
`MambaForCausalLM` gives them, so that its files load by name. Source: Mamba (arXiv 2312.00752), section 3.4.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from livemamba.config import MambaConfig
from livemamba.errors import InputError
from livemamba.model.state import MambaState
from livemamba.ops import causal_conv, selective_scan

# Step sizes at the start of training lie between these, evenly on a log scale (Mamba, section 3.6).
_SMALLEST_STEP, _LARGEST_STEP = 1e-3, 1e-1


@dataclass(frozen=True, kw_only=True)
class Padding:
    """Which positions of a batch count, when all that count stand in front.

    Attributes:
        keep: (B, L), bool.
        lengths: (B,), the number of those in each row.
    """

    keep: Tensor
    lengths: Tensor


class RMSNorm(nn.Module):
    """Division by the root mean square over the width, then a weight for each channel; calculated in float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, hidden: Tensor) -> Tensor:
        """From (B, L, W) in float32 (or float64) to (B, L, W) in the weight's dtype."""
        normed = F.rms_norm(hidden, hidden.shape[-1:], eps=self.epsilon)
        return self.weight * normed.to(self.weight.dtype)


class StepProjection(nn.Linear):
    """From the rank to step sizes before softplus; the bias is added in float32.

    The bias decides the order of magnitude of a step, and half precision would move that by a percent. Being a
    linear layer, it takes an adapter like the others.
    """

    def forward(self, input: Tensor) -> Tensor:
        """From (B, L, R) to (B, L, D) in float32 (or float64)."""
        steps = F.linear(input, self.weight)
        return steps.to(torch.promote_types(steps.dtype, torch.float32)) + self.bias


class CausalConv(nn.Module):
    """Weights of the depthwise convolution, in the shapes that nn.Conv1d would give them.

    It is no nn.Conv1d because adapters for that class would wrap it, and their part would never be used here.
    """

    def __init__(self, width: int, taps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 1, taps))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.kaiming_uniform_(self.weight, a=math.sqrt(5))

    def forward(
        self, x: Tensor, window: Tensor, *, padding: Padding | None, reset: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """As `livemamba.ops.causal_conv`."""
        lengths = None if padding is None else padding.lengths
        return causal_conv(x, self.weight.squeeze(1), self.bias, window=window, reset=reset, lengths=lengths)


class MambaMixer(nn.Module):
    """Convolution, selective scan and gate between two projections."""

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        width, inner, states = config.hidden_size, config.intermediate_size, config.state_size
        self.splits = [config.time_step_rank, states, states]
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = CausalConv(inner, config.conv_kernel)
        self.x_proj = nn.Linear(inner, sum(self.splits), bias=False)
        self.dt_proj = StepProjection(config.time_step_rank, inner)
        self.A_log = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(inner, 1))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)
        self._start(config.num_hidden_layers)

    @torch.no_grad()
    def _start(self, num_layers: int) -> None:
        rank = self.splits[0]
        self.dt_proj.weight.uniform_(-(rank**-0.5), rank**-0.5)
        span = math.log(_LARGEST_STEP / _SMALLEST_STEP)
        steps = _SMALLEST_STEP * torch.exp(torch.rand_like(self.dt_proj.bias) * span)
        self.dt_proj.bias.copy_(steps + torch.log(-torch.expm1(-steps)))  # so that softplus gives the steps
        self.out_proj.weight.div_(math.sqrt(num_layers))  # the residual stream adds up one term for each layer

    def forward(
        self, hidden: Tensor, window: Tensor, state: Tensor, *, padding: Padding | None, reset: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From (B, L, W), a window (B, K-1, D) and a state (B, D, S) to the same three, further on."""
        x, gate = self.in_proj(hidden).chunk(2, dim=-1)
        x, window = self.conv1d(x, window, padding=padding, reset=reset)
        rank_steps, B, C = self.x_proj(x).split(self.splits, dim=-1)
        dt = F.softplus(self.dt_proj(rank_steps))
        if padding is not None:
            dt = dt.masked_fill(~padding.keep[..., None], 0)
        A = -torch.exp(self.A_log.to(torch.promote_types(self.A_log.dtype, torch.float32)))
        y, state = selective_scan(x, dt, A, B, C, self.D, z=gate, initial_state=state, reset=reset)
        return self.out_proj(y), window, state


class MambaBlock(nn.Module):
    """A mixer on a normed copy of the residual stream, which itself stays in float32."""

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.norm = RMSNorm(config.hidden_size, config.layer_norm_epsilon)
        self.mixer = MambaMixer(config)

    def forward(
        self, residual: Tensor, window: Tensor, state: Tensor, *, padding: Padding | None, reset: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As the mixer's, on the residual stream (B, L, W)."""
        mixed, window, state = self.mixer(self.norm(residual), window, state, padding=padding, reset=reset)
        return residual + mixed, window, state


class MambaTrunk(nn.Module):
    """Embedding table, blocks and the last norm: what bears the prefix `backbone.` in weight files."""

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        nn.init.normal_(self.embeddings.weight, std=0.02)
        self.layers = nn.ModuleList(MambaBlock(config) for _ in range(config.num_hidden_layers))
        self.norm_f = RMSNorm(config.hidden_size, config.layer_norm_epsilon)

    def forward(
        self, embeds: Tensor, state: MambaState, *, padding: Padding | None, reset: Tensor | None
    ) -> tuple[Tensor, MambaState]:
        """From embeddings (B, L, W) and a state to hidden (B, L, W) and the state after them."""
        residual = embeds.to(torch.promote_types(embeds.dtype, torch.float32))
        windows, states = [], []
        for block, window, ssm in zip(self.layers, state.conv, state.ssm, strict=True):
            residual, window, ssm = block(residual, window, ssm, padding=padding, reset=reset)
            windows.append(window)
            states.append(ssm)
        return self.norm_f(residual), MambaState(conv=torch.stack(windows), ssm=torch.stack(states))


class MambaBackbone(nn.Module):
    """Mamba-1 with its tied output table; `state_dict` has the keys of transformers' `MambaForCausalLM`.

    Random weights are drawn as the authors of Mamba do.

    Args:
        config: sizes.
    """

    def __init__(self, config: MambaConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = MambaTrunk(config)
        # On the meta device: the table made here is thrown away for the embedding's.
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False, device="meta")
        self.lm_head.weight = self.backbone.embeddings.weight

    def embed(self, ids: Tensor) -> Tensor:
        """From token ids (B, L) to embeddings (B, L, W)."""
        embeds: Tensor = self.backbone.embeddings(ids)
        return embeds

    def logits(self, hidden: Tensor) -> Tensor:
        """From hidden (..., W) to scores (..., V) of the next token, in float32 (or float64)."""
        scores: Tensor = self.lm_head(hidden.to(self.lm_head.weight.dtype))
        return scores.to(torch.promote_types(scores.dtype, torch.float32))

    def forward(
        self,
        embeds: Tensor,
        *,
        state: MambaState | None = None,
        valid: Tensor | None = None,
        reset: Tensor | None = None,
    ) -> tuple[Tensor, MambaState]:
        """Take positions into a state. Gradients flow from both results to weights, embeddings and state.

        Args:
            embeds: (B, L, W); L may be 0.
            state: of B streams; None for zeros. It is not changed.
            valid: (B, L), bool: False for padding, wherever it stands. It leaves no trace: results are those of
                each row without it, and hidden is 0 there. None if every position counts.
            reset: (B, L), bool: at such a position the row starts from a zero state, then takes the position in.

        Returns:
            hidden (B, L, W) after the last norm, for `logits`; and the state after the last position.

        Raises:
            InputError: if a shape or dtype does not fit, the state is another model's, or a reset is padding.
        """
        self._check(embeds, state, valid, reset)
        if state is None:
            dtype = torch.promote_types(embeds.dtype, torch.float32)
            state = MambaState.zeros(self.config, embeds.shape[0], embeds.device, dtype)
        if valid is None or bool(valid.all()):
            return self._run(embeds, state, None, reset)
        return self._run_padded(embeds, state, valid, reset)

    def _run(
        self, embeds: Tensor, state: MambaState, padding: Padding | None, reset: Tensor | None
    ) -> tuple[Tensor, MambaState]:
        results: tuple[Tensor, MambaState] = self.backbone(embeds, state, padding=padding, reset=reset)
        return results

    def _run_padded(
        self, embeds: Tensor, state: MambaState, valid: Tensor, reset: Tensor | None
    ) -> tuple[Tensor, MambaState]:
        """Bring the positions that count to the front, in their order, run, and put the outputs back."""
        lengths = valid.sum(1)
        longest = int(lengths.max()) if valid.numel() else 0
        order = torch.argsort((~valid).byte(), dim=1, stable=True)[:, :longest]
        keep = torch.arange(longest, device=valid.device) < lengths[:, None]
        places = order[..., None].expand(-1, -1, embeds.shape[2])
        packed = embeds.gather(1, places).masked_fill(~keep[..., None], 0)
        packed_reset = None if reset is None else reset.gather(1, order)
        hidden, state = self._run(packed, state, Padding(keep=keep, lengths=lengths), packed_reset)
        hidden = hidden.masked_fill(~keep[..., None], 0)
        spread = torch.zeros(embeds.shape, dtype=hidden.dtype, device=hidden.device)
        return spread.scatter(1, places, hidden), state

    def _check(self, embeds: Tensor, state: MambaState | None, valid: Tensor | None, reset: Tensor | None) -> None:
        width = self.config.hidden_size
        if embeds.dim() != 3 or embeds.shape[2] != width or not embeds.dtype.is_floating_point:
            raise InputError(
                f"embeddings are {tuple(embeds.shape)} of {embeds.dtype}; needed: (B, L, {width}) of floats"
            )
        for name, flags in (("valid", valid), ("reset", reset)):
            if flags is not None and (flags.shape != embeds.shape[:2] or flags.dtype != torch.bool):
                raise InputError(
                    f"{name} is {tuple(flags.shape)} of {flags.dtype}; it must be {tuple(embeds.shape[:2])} of bool"
                )
        if valid is not None and reset is not None and bool((reset & ~valid).any()):
            raise InputError("a reset stands at padding; set it at the first position that counts")
        if state is not None:
            state.check(self.config)
            if state.batch != embeds.shape[0] or state.device != embeds.device:
                raise InputError(
                    f"a state of {state.batch} streams on {state.device} for {embeds.shape[0]} rows "
                    f"on {embeds.device}; they must agree"
                )
