"""The state as a value: copies, rows, batches, tensors, and refusal of another model's."""

from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from livemamba.config import MambaConfig
from livemamba.errors import InputError
from livemamba.model.state import MambaState

CONFIG = MambaConfig(
    vocab_size=61, hidden_size=32, num_hidden_layers=3, intermediate_size=64, state_size=8, time_step_rank=2
)


def some_state(batch: int) -> MambaState:
    torch.manual_seed(batch)
    zeros = MambaState.zeros(CONFIG, batch)
    return MambaState(conv=torch.randn_like(zeros.conv), ssm=torch.randn_like(zeros.ssm))


def same(one: MambaState, other: MambaState) -> bool:
    return torch.equal(one.conv, other.conv) and torch.equal(one.ssm, other.ssm)


def test_a_stream_of_the_full_model_has_a_state_below_3_mb():
    state = MambaState.zeros(MambaConfig(), 1)
    assert (state.conv.shape, state.ssm.shape) == ((24, 1, 3, 1536), (24, 1, 1536, 16))
    assert state.num_bytes == 4 * 24 * 1536 * (3 + 16) < 3_000_000
    assert state.ssm.dtype == state.conv.dtype == torch.float32
    assert not state.ssm.any() and not state.conv.any()


def test_it_is_frozen():
    with pytest.raises(FrozenInstanceError):
        some_state(1).ssm = torch.zeros(1)


def test_a_clone_shares_no_memory():
    state = some_state(2)
    copy = state.clone()
    assert same(copy, state)
    copy.ssm.zero_()
    copy.conv.zero_()
    assert same(state, some_state(2))


def test_a_detached_state_is_cut_from_the_graph():
    state = some_state(1)
    grown = MambaState(conv=state.conv.requires_grad_() * 2, ssm=state.ssm.requires_grad_() * 2)
    cut = grown.detach()
    assert grown.ssm.requires_grad and not cut.ssm.requires_grad and not cut.conv.requires_grad
    assert same(cut, grown)


def test_it_moves_to_a_device():
    assert some_state(1).to("meta").device == torch.device("meta") == some_state(1).to("meta").conv.device


def test_rows_and_batches_are_inverse():
    state = some_state(3)
    rows = [state.row(index) for index in range(3)]
    assert [row.batch for row in rows] == [1, 1, 1]
    assert same(MambaState.stack(rows), state)
    swapped = MambaState.stack([rows[2], some_state(2)])
    assert swapped.batch == 3 and same(swapped.row(0), rows[2])
    rows[0].ssm.zero_()
    assert same(state, some_state(3))


@pytest.mark.parametrize("index", [-1, 3])
def test_a_row_that_is_not_there_is_refused(index):
    with pytest.raises(InputError, match="rows are 0 to 2"):
        some_state(3).row(index)


def test_only_states_of_one_kind_make_a_batch():
    other = MambaState.zeros(replace(CONFIG, num_hidden_layers=2), 1)
    with pytest.raises(InputError, match=r"2 layers.*3 layers"):
        MambaState.stack([some_state(1), other])
    with pytest.raises(InputError, match="at least one"):
        MambaState.stack([])


def test_reset_rows_touches_only_those():
    state = some_state(3)
    fresh = state.reset_rows(torch.tensor([False, True, False]))
    assert same(fresh.row(1), MambaState.zeros(CONFIG, 1))
    assert same(fresh.row(0), state.row(0)) and same(fresh.row(2), state.row(2))
    assert same(state, some_state(3))
    with pytest.raises(InputError, match=r"must be \(3,\) of bool"):
        state.reset_rows(torch.tensor([0, 1, 0]))


def test_a_state_survives_the_way_through_tensors():
    tensors = some_state(2).to_tensors()
    assert same(MambaState.from_tensors(tensors, CONFIG), some_state(2))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state_size": 16}, "ssm"),
        ({"num_hidden_layers": 2}, "conv"),
        ({"intermediate_size": 32}, "conv"),
        ({"conv_kernel": 3}, "conv"),
    ],
)
def test_the_state_of_another_model_is_refused(change, said):
    with pytest.raises(InputError, match=f"the state's {said} is .* another model's state"):
        MambaState.from_tensors(some_state(1).to_tensors(), replace(CONFIG, **change))


def test_tensors_that_are_no_state_are_refused():
    tensors = some_state(1).to_tensors()
    with pytest.raises(InputError, match="conv and ssm, not"):
        MambaState.from_tensors({"ssm": tensors["ssm"]}, CONFIG)
    with pytest.raises(InputError, match="conv and ssm, not"):
        MambaState.from_tensors({**tensors, "more": tensors["ssm"]}, CONFIG)
    with pytest.raises(InputError, match="float32"):
        MambaState.from_tensors({name: tensor.half() for name, tensor in tensors.items()}, CONFIG)
    with pytest.raises(InputError, match="another model"):
        MambaState.from_tensors({**tensors, "conv": tensors["conv"].repeat(1, 2, 1, 1)}, CONFIG)
    with pytest.raises(InputError, match="another model"):
        MambaState.from_tensors({**tensors, "ssm": tensors["ssm"][0]}, CONFIG)
