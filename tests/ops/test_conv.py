"""The causal convolution: both forms against torch's own convolution of the whole sequence.

Letters: B batch, L positions, D inner width, K taps.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from livemamba.errors import InputError
from livemamba.ops import FORMS, causal_conv, use_form

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def arguments(length: int, *, batch: int = 2, width: int = 5, taps: int = 4, dtype: torch.dtype = torch.float64):
    torch.manual_seed(length)
    return {
        "x": torch.randn(batch, length, width, dtype=dtype),
        "weight": torch.randn(width, taps, dtype=dtype),
        "bias": torch.randn(width, dtype=dtype),
        "window": torch.randn(batch, taps - 1, width, dtype=dtype),
    }


def run(form: str, values: dict[str, Tensor | None], **more: Tensor | None):
    with use_form(form):
        return causal_conv(**{**values, **more})


def torch_conv(x: Tensor, weight: Tensor, bias: Tensor | None, window: Tensor) -> Tensor:
    inputs = torch.cat([window, x], dim=1).transpose(1, 2)
    return F.silu(F.conv1d(inputs, weight[:, None], bias, groups=weight.shape[0])).transpose(1, 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("taps", [2, 4, 5])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 9])
def test_both_forms_are_the_convolution(form, taps, length):
    values = arguments(length, taps=taps)
    y, window = run(form, values)
    torch.testing.assert_close(y, torch_conv(**values), **EXACT)
    assert torch.equal(window, torch.cat([values["window"], values["x"]], dim=1)[:, -(taps - 1) :])
    without, _ = run(form, values, bias=None)
    torch.testing.assert_close(without, torch_conv(**{**values, "bias": None}), **EXACT)


@pytest.mark.parametrize("form", FORMS)
def test_no_positions_change_nothing(form):
    values = arguments(0)
    y, window = run(form, values)
    assert y.shape == (2, 0, 5)
    assert torch.equal(window, values["window"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cuts", [(1, 1, 1, 1, 5), (2, 7), (3, 6), (4, 0, 5)])
def test_any_cut_gives_the_same(form, cuts):
    values = arguments(9)
    whole, last = run(form, values)
    window, pieces = values["window"], []
    for piece in values["x"].split(cuts, dim=1):
        y, window = run(form, values, x=piece, window=window)
        pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, **EXACT)
    assert torch.equal(window, last)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("places", [[0], [8], [3], [3, 4], [2, 4], [1, 4], [5, 7, 8]])
def test_a_reset_lets_nothing_across(form, places):
    values = arguments(9, batch=1)
    x = values["x"].clone().requires_grad_()
    reset = torch.zeros(1, 9, dtype=torch.bool)
    reset[0, places] = True
    y, window = run(form, values, x=x, reset=reset)
    zeros = torch.zeros_like(values["window"])
    for first, last in zip(places, [*places[1:], 9], strict=True):
        alone, alone_window = run(form, values, x=values["x"][:, first:last], window=zeros)
        torch.testing.assert_close(y[:, first:last], alone, **EXACT)
    assert torch.equal(window, alone_window)
    (y[:, places[-1] :].sum() + window.sum()).backward()
    assert x.grad[:, : places[-1]].abs().sum() == 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("with_reset", [False, True])
def test_padding_behind_leaves_no_trace_in_the_window(form, with_reset):
    values = arguments(6)
    reset = torch.zeros(2, 6, dtype=torch.bool)
    reset[:, 1] = with_reset
    for length in range(7):
        lengths = torch.tensor([length, 6 - length])
        y, window = run(form, values, reset=reset, lengths=lengths)
        for row, count in enumerate(lengths.tolist()):
            rows = slice(row, row + 1)
            alone, alone_window = run(
                form, values, x=values["x"][rows, :count], window=values["window"][rows], reset=reset[rows, :count]
            )
            torch.testing.assert_close(y[rows, :count], alone, **EXACT)
            assert torch.equal(window[rows], alone_window)


@pytest.mark.parametrize("with_reset", [False, True])
def test_gradients_of_the_fast_form_are_those_of_the_reference(with_reset):
    reset = torch.tensor([[False, True, False, False, True], [False] * 5]) if with_reset else None
    grads = []
    for form in ("reference", "torch"):
        values = {name: value.requires_grad_() for name, value in arguments(5).items()}
        y, window = run(form, values, reset=reset, lengths=torch.tensor([5, 2]))
        torch.manual_seed(1)
        y = torch.cat([y[0], y[1, :2]])  # what counts
        loss = (y * torch.randn(y.shape, dtype=y.dtype)).sum() + (
            window * torch.randn(window.shape, dtype=window.dtype)
        ).sum()
        grads.append(torch.autograd.grad(loss, list(values.values())))
    for got, wanted in zip(*grads, strict=True):
        torch.testing.assert_close(got, wanted, **EXACT)


@pytest.mark.parametrize("form", FORMS)
def test_half_precision_keeps_the_window_in_float32(form):
    values = arguments(5, dtype=torch.float32)
    y, window = run(form, {**values, "x": values["x"].bfloat16()})
    wanted = torch_conv(**{**values, "x": values["x"].bfloat16().float()})
    assert (y.dtype, window.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(y, wanted.bfloat16(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("x", lambda t: t[0], "x is (4, 5)"),
        ("weight", lambda t: t[:1], "weight is (1, 4)"),
        ("weight", lambda t: t[:, None], "weight is (5, 1, 4)"),
        ("bias", lambda t: t[:1], "bias is (1,)"),
        ("window", lambda t: t[:, :2], "window is (2, 2, 5)"),
        ("window", lambda t: t[:1], "window is (1, 3, 5)"),
        ("window", lambda t: t.half(), "float16"),
    ],
)
def test_what_does_not_fit_is_refused_not_broadcast(name, change, said):
    values = arguments(4)
    values[name] = change(values[name])
    with pytest.raises(InputError) as refusal:
        causal_conv(**values)
    assert said in str(refusal.value) and "\n" not in str(refusal.value)


def test_lengths_are_one_number_a_row():
    with pytest.raises(InputError, match="lengths is"):
        causal_conv(**arguments(4), lengths=torch.tensor([4]))
