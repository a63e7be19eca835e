"""What the backbone remembers of everything it has taken in: a few MB, the same however long that was.

Letters: N layers, B batch (independent streams), D inner width, S states of each inner channel, K taps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from livemamba.config import MambaConfig
from livemamba.errors import InputError


@dataclass(frozen=True, kw_only=True, eq=False)
class MambaState:
    """The state of a batch of streams after a position. The tensors are never changed in place.

    Attributes:
        conv: the last K-1 inputs of each layer's convolution (N, B, K-1, D), oldest first, float32.
        ssm: each layer's recurrent state (N, B, D, S), float32.
    """

    conv: Tensor
    ssm: Tensor

    @classmethod
    def zeros(
        cls,
        config: MambaConfig,
        batch: int,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> "MambaState":
        """The state before the first position.

        Args:
            config: of the backbone it is for.
            batch: number of streams.
            device: where it is kept.
            dtype: float32, or float64 for a backbone converted to that.
        """
        conv, ssm = _shapes(config, batch)
        return cls(conv=torch.zeros(conv, dtype=dtype, device=device), ssm=torch.zeros(ssm, dtype=dtype, device=device))

    @property
    def batch(self) -> int:
        """Number of streams, B."""
        return self.ssm.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.ssm.device

    @property
    def num_bytes(self) -> int:
        """Memory of the tensors, in bytes; 2.8 MB for one stream of Mamba-130M."""
        return sum(tensor.numel() * tensor.element_size() for tensor in (self.conv, self.ssm))

    def clone(self) -> "MambaState":
        """A copy that shares no memory; gradients still flow through it."""
        return replace(self, conv=self.conv.clone(), ssm=self.ssm.clone())

    def detach(self) -> "MambaState":
        """The same values, cut from the graph: nothing before this is trained through it."""
        return replace(self, conv=self.conv.detach(), ssm=self.ssm.detach())

    def to(self, device: torch.device | str) -> "MambaState":
        """The same state on another device."""
        return replace(self, conv=self.conv.to(device), ssm=self.ssm.to(device))

    def row(self, index: int) -> "MambaState":
        """One stream of the batch, as a state of batch 1 with memory of its own.

        Raises:
            InputError: if there is no such row.
        """
        if not 0 <= index < self.batch:
            raise InputError(f"row {index} of a state of {self.batch} streams; rows are 0 to {self.batch - 1}")
        rows = slice(index, index + 1)
        return replace(self, conv=self.conv[:, rows].clone(), ssm=self.ssm[:, rows].clone())

    @classmethod
    def stack(cls, states: Sequence["MambaState"]) -> "MambaState":
        """Several streams as one batch, in the order given; `row` takes them apart again.

        Raises:
            InputError: if there is none, or they are of different models, dtypes or devices.
        """
        if not states:
            raise InputError("no states to stack; give at least one")
        kinds = {state._kind() for state in states}
        if len(kinds) > 1:
            raise InputError(f"states of different models, dtypes or devices can't be one batch: {sorted(kinds)}")
        return cls(conv=torch.cat([s.conv for s in states], dim=1), ssm=torch.cat([s.ssm for s in states], dim=1))

    def _kind(self) -> str:
        layers, _, past, width = self.conv.shape
        dtype = str(self.ssm.dtype).removeprefix("torch.")
        return f"{layers} layers, width {width}, {self.ssm.shape[3]} states, {past + 1} taps, {dtype} on {self.device}"

    def reset_rows(self, rows: Tensor) -> "MambaState":
        """The state with some streams back at zero.

        Args:
            rows: (B,), bool: those to start afresh.

        Raises:
            InputError: if `rows` is not one flag for each stream.
        """
        if rows.shape != (self.batch,) or rows.dtype != torch.bool:
            raise InputError(f"rows is {tuple(rows.shape)} of {rows.dtype}; it must be ({self.batch},) of bool")
        chosen = rows.to(self.device)[None, :, None, None]
        return replace(self, conv=self.conv.masked_fill(chosen, 0), ssm=self.ssm.masked_fill(chosen, 0))

    def to_tensors(self) -> dict[str, Tensor]:
        """The tensors by name, for a file; `from_tensors` reads them back."""
        return {"conv": self.conv.detach(), "ssm": self.ssm.detach()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], config: MambaConfig) -> "MambaState":
        """A state from what `to_tensors` gave.

        Raises:
            InputError: if names, shapes or dtypes are not those of a state of this model.
        """
        if set(tensors) != {"conv", "ssm"}:
            raise InputError(f"a state holds the tensors conv and ssm, not {sorted(tensors)}; it is no saved state")
        state = cls(conv=tensors["conv"], ssm=tensors["ssm"])
        state.check(config)
        return state

    def check(self, config: MambaConfig) -> None:
        """Make sure that this state belongs to a model of this config.

        Raises:
            InputError: naming what the model needs and what this is.
        """
        batch = self.ssm.shape[1] if self.ssm.dim() == 4 else 1
        for name, tensor, shape in zip(("conv", "ssm"), (self.conv, self.ssm), _shapes(config, batch), strict=True):
            if tensor.shape != shape:
                raise InputError(
                    f"the state's {name} is {tuple(tensor.shape)}, this model's is {shape}; it is another model's state"
                )
            if tensor.dtype not in (torch.float32, torch.float64) or tensor.dtype != self.ssm.dtype:
                raise InputError(f"the state's {name} is {tensor.dtype}; a state is kept in float32")


def _shapes(config: MambaConfig, batch: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    layers, width = config.num_hidden_layers, config.intermediate_size
    return (layers, batch, config.conv_kernel - 1, width), (layers, batch, width, config.state_size)
