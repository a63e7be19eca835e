"""The backbone against transformers' Mamba, and against itself under every cut, padding and reset.

Letters: B batch, L positions, W width.
"""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
import transformers
from torch import Tensor

from livemamba.config import MambaConfig
from livemamba.errors import InputError
from livemamba.model.mamba import MambaBackbone
from livemamba.model.state import MambaState
from livemamba.ops import FORMS, use_form

CONFIG = MambaConfig(
    vocab_size=61, hidden_size=32, num_hidden_layers=3, intermediate_size=64, state_size=8, time_step_rank=2
)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
EXACT = {"rtol": 1e-10, "atol": 1e-10}  # for float64


@pytest.fixture(scope="module")
def original() -> transformers.MambaForCausalLM:
    """Transformers' model with every weight moved off its start, so that none can be mistaken for another."""
    torch.manual_seed(0)
    sizes = {name: getattr(CONFIG, name) for name in CONFIG.__dataclass_fields__ if name != "intermediate_size"}
    model = transformers.MambaForCausalLM(transformers.MambaConfig(**sizes, expand=2)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


@pytest.fixture(scope="module")
def backbone(original) -> MambaBackbone:
    model = MambaBackbone(CONFIG).eval()
    model.load_state_dict(original.state_dict(), strict=True)
    return model


@pytest.fixture(scope="module")
def double(original) -> MambaBackbone:
    """The same in float64, where what is equal is equal to ten places."""
    model = MambaBackbone(CONFIG)
    model.load_state_dict(original.state_dict(), strict=True)
    return model.double()


def some_ids(batch: int, length: int) -> Tensor:
    return torch.randint(CONFIG.vocab_size, (batch, length), generator=torch.Generator().manual_seed(length))


def some_embeds(batch: int, length: int) -> Tensor:
    return torch.randn(batch, length, CONFIG.hidden_size, dtype=torch.float64)


def some_state(batch: int, dtype: torch.dtype = torch.float64) -> MambaState:
    torch.manual_seed(5)
    zeros = MambaState.zeros(CONFIG, batch, dtype=dtype)
    return MambaState(conv=torch.randn_like(zeros.conv), ssm=torch.randn_like(zeros.ssm))


def assert_same_state(got: MambaState, wanted: MambaState, **tolerance: float) -> None:
    torch.testing.assert_close(got.conv, wanted.conv, **tolerance)
    torch.testing.assert_close(got.ssm, wanted.ssm, **tolerance)


def test_state_dict_has_the_keys_and_shapes_of_transformers(original, backbone):
    theirs = {name: tensor.shape for name, tensor in original.state_dict().items()}
    assert {name: tensor.shape for name, tensor in backbone.state_dict().items()} == theirs
    assert backbone.lm_head.weight is backbone.backbone.embeddings.weight


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cuts", [(24,), (12, 12), (1,) * 24, (3, 1, 7, 13), (1, 23), (2, 22), (3, 0, 21)])
@torch.no_grad()
def test_logits_are_those_of_transformers_however_the_sequence_is_cut(original, backbone, form, cuts):
    ids = some_ids(2, 24)
    wanted = original(ids).logits
    state, pieces = None, []
    with use_form(form):
        for piece in ids.split(cuts, dim=1):
            hidden, state = backbone(backbone.embed(piece), state=state)
            pieces.append(backbone.logits(hidden))
    torch.testing.assert_close(torch.cat(pieces, dim=1), wanted, **CLOSE)


@torch.no_grad()
def test_the_state_is_that_of_transformers_and_goes_on_like_it(original, backbone):
    ids = some_ids(1, 24)
    cached = original(ids[:, :9], use_cache=True).cache
    _, state = backbone(backbone.embed(ids[:, :9]))
    for layer in range(CONFIG.num_hidden_layers):
        torch.testing.assert_close(state.ssm[layer], cached.layers[layer].recurrent_states[0], **CLOSE)
        window = cached.layers[layer].conv_states[0][..., -3:].transpose(1, 2)
        torch.testing.assert_close(state.conv[layer], window, **CLOSE)
    steps = [original(ids[:, t : t + 1], cache=cached, use_cache=True).logits for t in range(9, 24)]
    hidden, _ = backbone(backbone.embed(ids[:, 9:]), state=state)
    torch.testing.assert_close(backbone.logits(hidden), torch.cat(steps, dim=1), **CLOSE)


@pytest.mark.parametrize("cuts", [(40,), (1,) * 40, (3, 1, 7, 29), (2, 38)])
@torch.no_grad()
def test_any_cut_onto_a_random_state_gives_the_same(double, cuts):
    embeds, start = some_embeds(2, 40), some_state(2)
    wanted, final = double(embeds, state=start)
    state, pieces = start, []
    for piece in embeds.split(cuts, dim=1):
        hidden, state = double(piece, state=state)
        pieces.append(hidden)
    torch.testing.assert_close(torch.cat(pieces, dim=1), wanted, **EXACT)
    assert_same_state(state, final, **EXACT)
    assert_same_state(start, some_state(2), rtol=0, atol=0)  # the state given is not changed


def scattered(lengths: tuple[int, ...], total: int, side: str) -> Tensor:
    valid = torch.zeros(len(lengths), total, dtype=torch.bool)
    for row, length in enumerate(lengths):
        order = {"right": range(total), "left": range(total - 1, -1, -1), "between": torch.randperm(total).tolist()}
        valid[row, list(order[side])[:length]] = True
    return valid


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("side", ["left", "right", "between"])
@pytest.mark.parametrize("onto_state", [False, True])
@pytest.mark.parametrize("with_resets", [False, True])
@torch.no_grad()
def test_a_padded_batch_gives_what_each_row_gives_alone(double, form, side, onto_state, with_resets):
    torch.manual_seed(3)
    lengths, total = (19, 7, 1, 2, 0, 22), 22
    valid = scattered(lengths, total, side)
    embeds = some_embeds(len(lengths), total)
    embeds[~valid] = math.nan  # padding is not even looked at
    reset = (torch.rand(valid.shape) < 0.15) & valid if with_resets else None
    state = some_state(len(lengths)) if onto_state else None
    with use_form(form):
        hidden, final = double(embeds, state=state, valid=valid, reset=reset)
        for row, length in enumerate(lengths):
            kept = valid[row]
            alone, alone_final = double(
                embeds[row : row + 1, kept],
                state=state.row(row) if state else None,
                reset=None if reset is None else reset[row : row + 1, kept],
            )
            assert alone.shape[1] == length
            torch.testing.assert_close(hidden[row : row + 1, kept], alone, **EXACT)
            assert_same_state(final.row(row), alone_final, **EXACT)
    assert torch.equal(hidden[~valid], torch.zeros_like(hidden[~valid]))


@torch.no_grad()
def test_two_padded_prompts_give_the_logits_of_transformers_run_alone(original, backbone):
    ids, lengths = some_ids(2, 11), (11, 4)
    for side in ("left", "right"):
        valid = scattered(lengths, 11, side)
        hidden, _ = backbone(backbone.embed(ids), valid=valid)
        for row in range(2):
            wanted = original(ids[row : row + 1, valid[row]]).logits[0]
            torch.testing.assert_close(backbone.logits(hidden[row, valid[row]]), wanted, **CLOSE)


def test_gradients_of_a_padded_batch_are_those_of_the_rows_alone(double):
    torch.manual_seed(3)
    valid = scattered((9, 4), 9, "between")
    embeds, weights = some_embeds(2, 9).requires_grad_(), some_embeds(2, 9)
    hidden, final = double(embeds, valid=valid)
    (got,) = torch.autograd.grad((hidden * weights).sum() + final.ssm.sum() + final.conv.sum(), embeds)
    for row in range(2):
        alone = embeds.detach()[row : row + 1, valid[row]].requires_grad_()
        hidden, final = double(alone)
        loss = (hidden * weights[row : row + 1, valid[row]]).sum() + final.ssm.sum() + final.conv.sum()
        (wanted,) = torch.autograd.grad(loss, alone)
        torch.testing.assert_close(got[row : row + 1, valid[row]], wanted, **EXACT)
    assert torch.equal(got[~valid], torch.zeros_like(got[~valid]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("places", [[0], [5], [5, 6], [5, 7], [5, 8], [0, 1, 2, 3], [19], [4, 18]])
def test_resets_are_separate_runs_and_no_gradient_crosses_them(double, form, places):
    embeds, start = some_embeds(1, 20).requires_grad_(), some_state(1)
    reset = torch.zeros(1, 20, dtype=torch.bool)
    reset[0, places] = True
    with use_form(form):
        hidden, final = double(embeds, state=start, reset=reset)
        bounds = [*places, 20]
        if places[0] > 0:
            alone, _ = double(embeds[:, : places[0]], state=start)
            torch.testing.assert_close(hidden[:, : places[0]], alone, **EXACT)
        for first, last in pairwise(bounds):
            alone, alone_final = double(embeds[:, first:last])
            torch.testing.assert_close(hidden[:, first:last], alone, **EXACT)
    assert_same_state(final, alone_final, **EXACT)
    (grad,) = torch.autograd.grad(hidden[:, places[-1] :].sum() + final.ssm.sum() + final.conv.sum(), embeds)
    assert grad[:, : places[-1]].abs().sum() == 0
    assert grad[:, places[-1] :].abs().min() > 0


def test_gradients_reach_the_initial_state_and_every_weight_like_the_reference(double):
    embeds, grads = some_embeds(2, 35).requires_grad_(), {}
    for form in FORMS:
        start = some_state(2)
        leaves = {"embeds": embeds, "conv": start.conv.requires_grad_(), "ssm": start.ssm.requires_grad_()}
        leaves |= dict(double.named_parameters())
        with use_form(form):
            hidden, final = double(embeds, state=start)
        loss = double.logits(hidden).square().sum() + final.ssm.square().sum() + final.conv.square().sum()
        grads[form] = dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))
    for name, wanted in grads["reference"].items():
        torch.testing.assert_close(grads["torch"][name], wanted, rtol=1e-8, atol=1e-8, msg=name)
        assert wanted.abs().max() > 0, name


def test_training_in_two_pieces_through_the_state_is_training_in_one(double):
    embeds = some_embeds(1, 25).requires_grad_()
    hidden, _ = double(embeds)
    (wanted,) = torch.autograd.grad(hidden[:, -1].sum(), embeds)
    _, state = double(embeds[:, :14])
    hidden, _ = double(embeds[:, 14:], state=state)
    (got,) = torch.autograd.grad(hidden[:, -1].sum(), embeds)
    torch.testing.assert_close(got, wanted, **EXACT)


@torch.no_grad()
def test_no_positions_leave_the_state(double):
    start = some_state(2)
    hidden, final = double(some_embeds(2, 0), state=start)
    assert hidden.shape == (2, 0, CONFIG.hidden_size)
    assert_same_state(final, start, rtol=0, atol=0)


@torch.no_grad()
def test_half_precision_weights_keep_residual_stream_and_state_in_float32(original, backbone):
    half = MambaBackbone(CONFIG)
    half.load_state_dict(original.state_dict())
    half.bfloat16()
    assert half.lm_head.weight is half.backbone.embeddings.weight
    ids = some_ids(1, 24)
    hidden, state = half(half.embed(ids))
    seen = []
    hook = half.backbone.layers[-1].register_forward_hook(lambda _, inputs, outputs: seen.append(outputs[0].dtype))
    half(half.embed(ids), state=state)
    hook.remove()
    assert seen == [torch.float32]
    assert (hidden.dtype, state.ssm.dtype, state.conv.dtype) == (torch.bfloat16, torch.float32, torch.float32)
    wanted, _ = backbone(backbone.embed(ids))
    torch.testing.assert_close(hidden.float(), wanted, rtol=0.1, atol=0.15)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        hidden, _ = backbone(backbone.embed(ids))
    torch.testing.assert_close(hidden.float(), wanted, rtol=0.1, atol=0.15)


def test_random_weights_start_as_the_authors_of_mamba_start_them():
    torch.manual_seed(0)
    model = MambaBackbone(replace(CONFIG, num_hidden_layers=4))
    mixer = model.backbone.layers[1].mixer
    torch.testing.assert_close(mixer.A_log.exp(), torch.arange(1.0, 9.0).expand(64, 8))
    steps = torch.nn.functional.softplus(mixer.dt_proj.bias)
    assert 1e-3 <= steps.min() < 3e-3 and 3e-2 < steps.max() <= 1e-1 + 1e-6
    assert mixer.out_proj.weight.abs().max() <= 1 / math.sqrt(64) / math.sqrt(4)
    logits = model.logits(model(model.embed(some_ids(1, 50)))[0])
    uniform = math.log(CONFIG.vocab_size)
    loss = torch.nn.functional.cross_entropy(logits[0, :-1], some_ids(1, 50)[0, 1:])
    assert abs(loss.item() - uniform) < 0.3


@pytest.mark.parametrize(
    ("embeds", "more", "said"),
    [
        (torch.zeros(1, 4, 31), {}, "(1, 4, 31)"),
        (torch.zeros(4, 32), {}, "(4, 32)"),
        (torch.zeros(1, 4, 32, dtype=torch.long), {}, "int64"),
        (torch.zeros(1, 4, 32), {"valid": torch.ones(1, 3, dtype=torch.bool)}, "valid is (1, 3)"),
        (torch.zeros(1, 4, 32), {"valid": torch.ones(1, 4)}, "float32"),
        (torch.zeros(1, 4, 32), {"reset": torch.zeros(4, dtype=torch.bool)}, "reset is (4,)"),
        (torch.zeros(2, 4, 32), {"state": MambaState.zeros(CONFIG, 1)}, "1 streams"),
        (torch.zeros(1, 4, 32), {"state": MambaState.zeros(replace(CONFIG, state_size=4), 1)}, "another model"),
        (
            torch.zeros(1, 2, 32),
            {"valid": torch.tensor([[False, True]]), "reset": torch.tensor([[True, False]])},
            "a reset stands at padding",
        ),
    ],
)
def test_what_does_not_fit_is_refused(backbone, embeds, more, said):
    with pytest.raises(InputError) as refusal:
        backbone(embeds, **more)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)
