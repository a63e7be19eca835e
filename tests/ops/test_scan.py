"""The selective scan: the fast form against the definition, and the definition against sums worked out by hand.

Letters: B batch, L positions, D inner width, S states of each inner channel.
"""

import logging
import math

import pytest
import torch
from torch import Tensor

from livemamba.errors import InputError
from livemamba.ops import FORMS, current_form, dispatch, selective_scan, set_form, use_form
from livemamba.ops.scan import CHUNK

NAMES = ("x", "dt", "A", "B", "C", "D", "z", "initial_state")


def arguments(length: int, *, batch: int = 2, width: int = 5, states: int = 3, dtype: torch.dtype = torch.float64):
    torch.manual_seed(length)
    shapes = {
        "x": (batch, length, width),
        "dt": (batch, length, width),
        "A": (width, states),
        "B": (batch, length, states),
        "C": (batch, length, states),
        "D": (width,),
        "z": (batch, length, width),
        "initial_state": (batch, width, states),
    }
    values = {name: torch.randn(shape, dtype=dtype) for name, shape in shapes.items()}
    values["dt"] = values["dt"].abs()
    values["A"] = -values["A"].abs()
    return values


def run(form: str, values: dict[str, Tensor], reset: Tensor | None = None, **changes: Tensor | None):
    with use_form(form):
        return selective_scan(**{**values, **changes}, reset=reset)


def gradients(form: str, values: dict[str, Tensor], reset: Tensor | None = None) -> dict[str, Tensor]:
    """Of a weighted sum of both results, so that an error in one place can't hide behind another."""
    leaves = {name: value.clone().requires_grad_() for name, value in values.items()}
    y, final = run(form, leaves, reset)
    torch.manual_seed(1)
    loss = (y * torch.randn(y.shape, dtype=y.dtype)).sum() + (final * torch.randn(final.shape, dtype=final.dtype)).sum()
    return dict(zip(leaves, torch.autograd.grad(loss, [*leaves.values()], materialize_grads=True), strict=True))


def some_resets(length: int) -> Tensor:
    torch.manual_seed(length + 7)
    return torch.rand(2, length) < 0.2


@pytest.mark.parametrize("form", FORMS)
def test_two_positions_worked_out_by_hand(form):
    # One channel, one state. exp(dt*A) is 1/2, then 1/4. h: 8 -> 4 + 1*3*5 = 19 -> 19/4 + 2*1*2 = 8.75.
    tensor = lambda *values: torch.tensor(values, dtype=torch.float32).reshape(1, -1, 1)  # noqa: E731
    y, final = run(
        form,
        {"x": tensor(3, 1), "dt": tensor(1, 2), "B": tensor(5, 2), "C": tensor(1, 10), "z": tensor(1, -1)},
        A=torch.tensor([[-math.log(2)]]),
        D=torch.tensor([100.0]),
        initial_state=torch.tensor([[[8.0]]]),
    )
    gates = [1 / (1 + math.exp(-1)), -1 / (1 + math.exp(1))]
    torch.testing.assert_close(y.flatten(), torch.tensor([(19 + 300) * gates[0], (87.5 + 100) * gates[1]]))
    torch.testing.assert_close(final.flatten(), torch.tensor([8.75]))


@pytest.mark.parametrize("length", range(66))
def test_fast_form_is_the_reference_at_every_length(length):
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
        values = arguments(length, dtype=dtype)
        for reset in (None, some_resets(length)):
            for got, wanted in zip(run("torch", values, reset), run("reference", values, reset), strict=True):
                assert got.dtype == wanted.dtype == dtype
                torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("length", [0, 1, 2, 7, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
@pytest.mark.parametrize("with_resets", [False, True])
def test_gradients_of_the_fast_form_are_those_of_the_reference(length, with_resets):
    reset = some_resets(length) if with_resets else None
    for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
        values = arguments(length, dtype=dtype)
        wanted, got = gradients("reference", values, reset), gradients("torch", values, reset)
        for name in NAMES:
            torch.testing.assert_close(got[name], wanted[name], rtol=tolerance, atol=tolerance, msg=name)


def test_gradients_of_the_fast_form_are_slopes(length=CHUNK + 2):
    values = {name: value.requires_grad_() for name, value in arguments(length, batch=1, width=2, states=2).items()}
    assert torch.autograd.gradcheck(
        lambda *inputs: run("torch", dict(zip(NAMES, inputs, strict=True))), [*values.values()]
    )


@pytest.mark.parametrize("form", FORMS)
def test_any_cut_gives_the_same(form):
    values = arguments(37)
    whole, final = run(form, values)
    state, pieces = values["initial_state"], []
    for first, last in ((0, 1), (1, 3), (3, 3), (3, 20), (20, 37)):
        cut = {name: values[name][:, first:last] for name in ("x", "dt", "B", "C", "z")}
        piece, state = run(form, {**values, **cut}, initial_state=state)
        pieces.append(piece)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(state, final, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("place", [0, 1, 20])
def test_a_reset_starts_afresh_for_values_and_gradients(form, place):
    values = arguments(30, batch=1)
    before = {name: values[name].clone().requires_grad_() for name in ("x", "dt", "B", "initial_state")}
    reset = torch.zeros(1, 30, dtype=torch.bool)
    reset[0, place] = True
    y, final = run(form, {**values, **before}, reset)
    alone = {name: values[name][:, place:] for name in ("x", "dt", "B", "C", "z")}
    wanted, wanted_final = run(form, {**values, **alone}, initial_state=None)
    torch.testing.assert_close(y[:, place:], wanted, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(final, wanted_final, rtol=1e-12, atol=1e-12)
    (y[:, place:].sum() + final.sum()).backward()
    assert before["initial_state"].grad.abs().max() == 0
    for name in ("x", "dt", "B"):
        assert before[name].grad[:, :place].abs().sum() == 0
        assert before[name].grad[:, place:].abs().min() > 0


@pytest.mark.parametrize("form", FORMS)
def test_a_step_of_zero_leaves_the_state_exactly(form):
    values = arguments(5, dtype=torch.float32)
    _, final = run(form, values, dt=torch.zeros_like(values["dt"]))
    assert torch.equal(final, values["initial_state"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_calculated_in_float32(form, dtype):
    values = arguments(40, dtype=torch.float32)
    halves = {name: value.to(dtype) for name, value in values.items() if name not in ("A", "D", "initial_state")}
    y, final = run(form, {**values, **halves})
    wanted, wanted_final = run("reference", {**values, **{name: half.float() for name, half in halves.items()}})
    assert (y.dtype, final.dtype) == (dtype, torch.float32)
    torch.testing.assert_close(final, wanted_final, rtol=2e-5, atol=2e-5)  # rounded nowhere on the way
    torch.testing.assert_close(y, wanted.to(dtype), rtol=1e-2, atol=1e-3)
    grads = gradients(form, {**values, **halves})
    assert all(grad.dtype == {**values, **halves}[name].dtype for name, grad in grads.items())


def test_autocast_does_not_reach_the_scan():
    values = arguments(40, dtype=torch.float32)
    wanted, wanted_grads = run("torch", values), gradients("torch", values)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got, grads = run("torch", values), gradients("torch", values)
    assert all(torch.equal(a, b) for a, b in zip(got, wanted, strict=True))
    assert all(torch.equal(grads[name], wanted_grads[name]) for name in NAMES)


def test_memory_for_gradients_does_not_hold_every_state():
    values = arguments(256, batch=1, width=64, states=16, dtype=torch.float32)
    leaves = {name: value.requires_grad_() for name, value in values.items()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y, _ = run("torch", leaves)
    every_state = y.numel() * 16 * 4
    assert 0 < sum(kept.values()) < every_state


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("dt", lambda t: t[:, :, :1], "dt is (2, 4, 1)"),
        ("B", lambda t: t[:1], "B is (1, 4, 3)"),
        ("C", lambda t: t[..., :2], "C is (2, 4, 2)"),
        ("A", lambda t: t[:1], "A is (1, 3)"),
        ("A", lambda t: t[0], "A is (3,)"),
        ("D", lambda t: t[:1], "D is (1,)"),
        ("z", lambda t: t[:, :1], "z is (2, 1, 5)"),
        ("x", lambda t: t[0], "x is (4, 5)"),
        ("x", lambda t: t.long(), "x is (2, 4, 5) of int64"),
        ("initial_state", lambda t: t[:1], "initial_state is (1, 5, 3)"),
        ("initial_state", lambda t: t.bfloat16(), "bfloat16"),
        ("x", lambda t: t.to("meta"), "meta"),
    ],
)
def test_what_does_not_fit_is_refused_not_broadcast(name, change, said):
    values = arguments(4)
    values[name] = change(values[name])
    with pytest.raises(InputError) as refusal:
        selective_scan(**values)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("reset", [torch.zeros(2, 4), torch.zeros(2, 1, dtype=torch.bool)])
def test_resets_are_one_flag_a_position(reset):
    with pytest.raises(InputError, match="reset is"):
        selective_scan(**arguments(4), reset=reset)


def test_the_setting_picks_the_form(monkeypatch):
    calls = []
    picked = dispatch.Form(scan=lambda *a, **k: calls.append("scan"), conv=lambda *a, **k: None, description="spy")
    monkeypatch.setitem(dispatch.FORMS, "reference", picked)
    before = current_form()
    with use_form("reference"):
        assert current_form() == "reference"
        selective_scan(**arguments(4))
    assert calls == ["scan"]
    assert current_form() == before != "reference"
    selective_scan(**arguments(4))
    assert calls == ["scan"]


def test_the_setting_is_restored_after_an_error():
    before = current_form()
    with pytest.raises(RuntimeError), use_form("reference"):
        raise RuntimeError
    assert current_form() == before != "reference"


def test_an_unknown_form_is_refused():
    before = current_form()
    with pytest.raises(InputError, match=r"'cuda'.*auto, reference, torch"):
        set_form("cuda")
    assert current_form() == before


def test_the_form_is_said_once(caplog):
    dispatch._announce.cache_clear()
    with caplog.at_level(logging.INFO, logger="livemamba.ops"):
        for _ in range(3):
            selective_scan(**arguments(4))
    assert [record.getMessage() for record in caplog.records] == [
        "selective scan and causal convolution run as 'torch': plain torch, no kernel package"
    ]
