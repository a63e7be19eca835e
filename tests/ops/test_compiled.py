"""The compiled form against the reference in float64: values, gradients, cuts, threads, and everything at the edge.

Letters: B batch, L positions, D inner width, S states of each inner channel, K taps, W width of the residual stream.
"""

import logging
import math
import re
import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from livemamba.config import MambaConfig
from livemamba.errors import InputError, MissingError
from livemamba.model.mamba import MambaBackbone
from livemamba.model.state import MambaState
from livemamba.ops import FORMS, causal_conv, current_form, dispatch, native, selective_scan, set_form, use_form

SETS = ("plain", "avx2", "avx512")
VALUES = {"rtol": 1e-5, "atol": 1e-5}
GRADIENTS = {"rtol": 1e-4, "atol": 1e-4}
SAME = {"rtol": 1e-6, "atol": 1e-6}


@pytest.fixture(params=SETS)
def ops(request, kernels, monkeypatch) -> dispatch.Form:
    """The compiled form with each instruction set, picked by default as it would be if it were the fastest."""
    if request.param not in kernels.instruction_sets:
        pytest.skip(f"this processor has no {request.param}")
    form = dispatch.compiled_form(kernels, request.param)
    monkeypatch.setitem(dispatch.FORMS, "compiled", form)
    return form


@pytest.fixture
def best(kernels, monkeypatch) -> dispatch.Form:
    """The same with the fastest instruction set alone, for what does not depend on it."""
    monkeypatch.setitem(dispatch.FORMS, "compiled", dispatch.compiled_form(kernels))
    return dispatch.FORMS["compiled"]


def scan_arguments(length: int, *, batch: int = 2, width: int = 21, states: int = 8) -> dict[str, Tensor]:
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
    values = {name: torch.randn(shape) for name, shape in shapes.items()}
    values["dt"] = values["dt"].abs()
    values["A"] = -values["A"].abs() - 0.1
    return values


def conv_arguments(length: int, *, batch: int = 2, width: int = 21, taps: int = 4) -> dict[str, Tensor]:
    torch.manual_seed(length)
    return {
        "x": torch.randn(batch, length, width),
        "weight": torch.randn(width, taps),
        "bias": torch.randn(width),
        "window": torch.randn(batch, taps - 1, width),
    }


def some_resets(length: int, batch: int = 2) -> Tensor:
    torch.manual_seed(length + 7)
    return torch.rand(batch, length) < 0.2


def what_counts(**arguments: Tensor | None) -> tuple[Tensor, Tensor]:
    """`causal_conv` without the outputs of padding, which mean nothing."""
    y, window = causal_conv(**arguments)
    counts = torch.arange(y.shape[1]) < arguments["lengths"][:, None]
    return y.masked_fill(~counts[..., None], 0), window


def in_double(values: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
    return {name: None if value is None else value.double() for name, value in values.items()}


def wanted(operation, values: dict[str, Tensor | None], **more: Tensor | None) -> tuple[Tensor, Tensor]:
    with use_form("reference"):
        return operation(**in_double(values), **more)


def gradients(operation, values: dict[str, Tensor | None], **more: Tensor | None) -> dict[str, Tensor]:
    """Of a weighted sum of both results, so that an error in one place can't hide behind another."""
    leaves = {name: value.detach().clone().requires_grad_() for name, value in values.items() if value is not None}
    outputs = operation(**{**values, **leaves}, **more)
    torch.manual_seed(1)
    weights = [torch.randn(output.shape).to(output.dtype) for output in outputs]
    found = torch.autograd.grad(outputs, [*leaves.values()], weights, materialize_grads=True)
    return dict(zip(leaves, found, strict=True))


def assert_like_reference(operation, values: dict[str, Tensor | None], **more: Tensor | None) -> None:
    for got, right in zip(operation(**values, **more), wanted(operation, values, **more), strict=True):
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), right, **VALUES)


def assert_gradients_like_reference(operation, values: dict[str, Tensor | None], **more: Tensor | None) -> None:
    got = gradients(operation, values, **more)
    with use_form("reference"):
        right = gradients(operation, in_double(values), **more)
    for name, gradient in got.items():
        torch.testing.assert_close(gradient.double(), right[name], **GRADIENTS, msg=lambda m, n=name: f"{n}: {m}")


def test_it_is_the_form_for_float32(ops):
    assert current_form() == "compiled"
    assert dispatch._picked(torch.zeros(1)) is ops


@pytest.mark.parametrize("length", [0, *range(1, 66, 2), 16, 32, 64])
def test_the_scan_is_the_reference_at_every_length(ops, length):
    values = scan_arguments(length)
    for reset in (None, some_resets(length)):
        assert_like_reference(selective_scan, values, reset=reset)
    assert_like_reference(selective_scan, {**values, "z": None, "initial_state": None})


@pytest.mark.parametrize("states", [0, 1, 7, 8, 16, 17])
@pytest.mark.parametrize("width", [1, 7, 16, 33, 128, 150])
def test_the_scan_is_the_reference_at_every_size(ops, width, states):
    values = scan_arguments(19, width=width, states=states)
    assert_like_reference(selective_scan, values, reset=some_resets(19))
    assert_gradients_like_reference(selective_scan, values, reset=some_resets(19))


@pytest.mark.parametrize("length", [0, 1, 2, 15, 16, 17, 31, 32, 33, 65])
def test_gradients_of_the_scan_are_those_of_the_reference(ops, length):
    values = scan_arguments(length)
    for reset in (None, some_resets(length)):
        assert_gradients_like_reference(selective_scan, values, reset=reset)
    if length:  # else nothing that is left has anything to do with the results
        assert_gradients_like_reference(selective_scan, {**values, "z": None, "initial_state": None})


@pytest.mark.parametrize("taps", [1, 2, 4, 5, 20])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 9, 33])
def test_the_convolution_and_its_gradients_are_the_reference(ops, taps, length):
    lengths = torch.tensor([length, length // 2])
    for width in (3, 16, 150):
        values = conv_arguments(length, taps=taps, width=width)
        for reset in (None, some_resets(length)):
            for operation, more in ((causal_conv, {}), (what_counts, {"lengths": lengths})):
                assert_like_reference(operation, values, reset=reset, **more)
                assert_gradients_like_reference(operation, values, reset=reset, **more)
    assert_like_reference(causal_conv, {**values, "bias": None})
    assert_gradients_like_reference(causal_conv, {**values, "bias": None})


def test_padding_behind_leaves_no_trace_in_the_window(ops):
    values = conv_arguments(6)
    for length in range(7):
        x = values["x"].clone()
        x[0, length:] = math.nan
        _, window = causal_conv(**{**values, "x": x}, lengths=torch.tensor([length, 6]))
        _, alone = causal_conv(**{**values, "x": x[:, :length]})
        assert torch.equal(window[0], alone[0])


def test_lengths_beyond_the_positions_are_read_like_the_reference(ops):
    assert_like_reference(what_counts, conv_arguments(5), lengths=torch.tensor([-3, 2**62]))


@pytest.mark.parametrize("cuts", [(1,) * 65, (16, 16, 33), (7, 0, 58), (64, 1), (3, 1, 7, 54)])
def test_any_cut_gives_the_same(ops, cuts):
    scan, conv = scan_arguments(65), conv_arguments(65)
    whole, final = selective_scan(**scan)
    whole_conv, last = causal_conv(**conv)
    state, window, pieces, conv_pieces = scan["initial_state"], conv["window"], [], []
    for first, last_one in zip(torch.tensor((0, *cuts)).cumsum(0), torch.tensor(cuts).cumsum(0), strict=False):
        piece = {name: scan[name][:, first:last_one] for name in ("x", "dt", "B", "C", "z")}
        y, state = selective_scan(**{**scan, **piece, "initial_state": state})
        pieces.append(y)
        y, window = causal_conv(**{**conv, "x": conv["x"][:, first:last_one], "window": window})
        conv_pieces.append(y)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, **SAME)
    torch.testing.assert_close(state, final, **SAME)
    torch.testing.assert_close(torch.cat(conv_pieces, 1), whole_conv, **SAME)
    assert torch.equal(window, last)


def test_a_step_of_zero_leaves_the_state_exactly(ops):
    values = scan_arguments(5)
    _, final = selective_scan(**{**values, "dt": torch.zeros_like(values["dt"])})
    assert torch.equal(final, values["initial_state"])


def decays(exponents: Tensor) -> Tensor:
    """What a state of 1 decays to in a step of 1: the kernels' own exponential of `exponents` (D,)."""
    nothing = torch.zeros(1, 1, len(exponents))
    _, final = selective_scan(
        x=nothing,
        dt=nothing + 1,
        A=exponents[:, None],
        B=torch.zeros(1, 1, 1),
        C=torch.zeros(1, 1, 1),
        D=nothing[0, 0],
        initial_state=torch.ones(1, len(exponents), 1),
    )
    return final.flatten()


@pytest.mark.parametrize("sign", [-1, 1])  # a positive one takes another branch
def test_the_exponential_is_within_two_units_in_the_last_place(ops, sign):
    exponents = sign * torch.cat([torch.linspace(0, 87.3, 400_000), torch.logspace(-30, 0, 2000)])
    right = exponents.double().exp()
    step = torch.finfo(torch.float32).eps * 2 ** right.log2().floor()
    assert ((decays(exponents).double() - right).abs() / step).max() < 2


def test_the_exponential_at_the_ends_of_its_range(ops):
    inf = math.inf
    exponents = torch.tensor([-87.2, -87.4, -100, -1e30, -inf] * 16 + [88.7, 88.72, 88.73, 1e30, inf, math.nan])
    torch.testing.assert_close(decays(exponents), exponents.exp(), rtol=3e-7, atol=2e-38, equal_nan=True)
    gates = torch.tensor([-inf, -1e30, -100, -88.8, -87.5, 0, 90, 1e30, inf, math.nan])
    got, _ = causal_conv(gates[None, None], torch.ones(10, 1), None, window=torch.zeros(1, 0, 10))
    torch.testing.assert_close(got[0, 0], torch.nn.functional.silu(gates), rtol=1e-6, atol=2e-37, equal_nan=True)


def test_what_is_no_number_stays_where_it_is(ops):
    values = scan_arguments(20, width=40)
    for name in ("x", "dt", "z"):
        spoilt = {**values, name: values[name].clone()}
        spoilt[name][0, 7, 3] = math.nan
        y, final = selective_scan(**spoilt)
        right, right_final = wanted(selective_scan, spoilt)
        torch.testing.assert_close(y.double(), right, **VALUES, equal_nan=True)
        torch.testing.assert_close(final.double(), right_final, **VALUES, equal_nan=True)
    reset = torch.zeros(2, 20, dtype=torch.bool)
    reset[:, 9] = True
    spoilt["x"][:, 4] = math.nan
    y, final = selective_scan(**spoilt, reset=reset)
    assert not y[:, 9:].isnan().any() and not final.isnan().any()


@pytest.mark.parametrize("shape", [{"batch": 0}, {"width": 0}, {"states": 0}, {"batch": 0, "width": 0}])
@pytest.mark.parametrize("length", [0, 3])
def test_nothing_to_do_is_done(ops, shape, length):
    values = scan_arguments(length, **shape)
    assert_like_reference(selective_scan, values)
    assert_gradients_like_reference(selective_scan, values)
    if "states" not in shape:
        assert_like_reference(causal_conv, conv_arguments(length, **shape))
        assert_gradients_like_reference(causal_conv, conv_arguments(length, **shape))


def laid_out_oddly(tensor: Tensor) -> list[Tensor]:
    """The same numbers: every second of a wider row, transposed memory, and a start that is no multiple of 8 bytes."""
    wide = torch.full((*tensor.shape[:-1], 2 * tensor.shape[-1]), math.nan)
    wide[..., ::2] = tensor
    flat = torch.full((tensor.numel() + 1,), math.nan)
    flat[1:] = tensor.flatten()
    return [wide[..., ::2], tensor.mT.contiguous().mT if tensor.dim() > 1 else tensor, flat[1:].view(tensor.shape)]


def test_memory_may_be_laid_out_in_any_way(ops):
    for operation, values in ((selective_scan, scan_arguments(18)), (causal_conv, conv_arguments(18))):
        right, right_gradients = operation(**values), gradients(operation, values)
        for layout in range(3):
            odd = {name: laid_out_oddly(value)[layout] for name, value in values.items()}
            assert all(torch.equal(a, b) for a, b in zip(operation(**odd), right, strict=True))
            leaves = {name: value.requires_grad_() for name, value in odd.items()}
            y, final = operation(**leaves)
            torch.manual_seed(1)
            weights = [torch.randn(y.shape), torch.randn(final.shape)]
            found = torch.autograd.grad([y, final], [*leaves.values()], [laid_out_oddly(w)[layout] for w in weights])
            for name, gradient in zip(leaves, found, strict=True):
                torch.testing.assert_close(gradient, right_gradients[name], **SAME)


def test_expanded_gradients_and_inputs(best):
    values = scan_arguments(9)
    values["x"] = values["x"][:1, :1].expand(2, 9, -1)
    leaves = {name: value.requires_grad_() for name, value in values.items()}
    y, final = selective_scan(**leaves)
    got = torch.autograd.grad(y.sum() + final.sum(), leaves["dt"])[0]
    with use_form("torch"):
        y, final = selective_scan(**leaves)
    torch.testing.assert_close(got, torch.autograd.grad(y.sum() + final.sum(), leaves["dt"])[0], **GRADIENTS)


def test_a_second_derivative_is_refused(best):
    leaf = scan_arguments(3)["x"].requires_grad_()
    y, _ = selective_scan(**{**scan_arguments(3), "x": leaf})
    (gradient,) = torch.autograd.grad(y.square().sum(), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_memory_for_gradients_does_not_hold_every_state(best):
    leaves = {name: value.requires_grad_() for name, value in scan_arguments(256, batch=1, width=64, states=16).items()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        y, _ = selective_scan(**leaves)
    every_state = y.numel() * 16 * 4
    assert 0 < sum(kept.values()) < every_state / 2


def everything(values: dict[str, Tensor], conv: dict[str, Tensor]) -> list[Tensor]:
    results = [*selective_scan(**values), *causal_conv(**conv)]
    return [*results, *gradients(selective_scan, values).values(), *gradients(causal_conv, conv).values()]


def test_the_number_of_threads_changes_no_bit(best):
    values, conv = scan_arguments(70, batch=3, width=300, states=16), conv_arguments(700, batch=3, width=300)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(everything(values, conv))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_calls_from_several_threads_do_not_mix(best):
    """Inputs differ by thread, so anything that calls share would show."""
    inputs = [(scan_arguments(40 + i, width=140), conv_arguments(40 + i, width=140)) for i in range(4)]
    right, got = [everything(*each) for each in inputs], [[] for _ in inputs]

    def repeat(number: int) -> None:
        for _ in range(20):
            # The generator of random numbers is the process's, so no gradients here.
            got[number].append([*selective_scan(**inputs[number][0]), *causal_conv(**inputs[number][1])])

    threads = [threading.Thread(target=repeat, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for wanted_here, rounds in zip(right, got, strict=True):
        assert len(rounds) == 20
        assert all(torch.equal(a, b) for each in rounds for a, b in zip(each, wanted_here, strict=False))


CONFIG = MambaConfig(
    vocab_size=61, hidden_size=24, num_hidden_layers=3, intermediate_size=48, state_size=8, time_step_rank=2
)


@pytest.mark.parametrize("padded", [False, True])
def test_the_backbone_is_the_same_in_every_form(ops, padded):
    torch.manual_seed(0)
    model, embeds = MambaBackbone(CONFIG), torch.randn(4, 37, 24)
    valid = torch.rand(4, 37) < 0.7 if padded else torch.ones(4, 37, dtype=torch.bool)
    reset = (torch.rand(4, 37) < 0.1) & valid
    zeros, results = MambaState.zeros(CONFIG, 4), {}
    start = [torch.randn_like(zeros.conv).requires_grad_(), torch.randn_like(zeros.ssm).requires_grad_()]
    for form in ("reference", "torch", "compiled"):
        with use_form(form):
            hidden, final = model(embeds, state=MambaState(conv=start[0], ssm=start[1]), valid=valid, reset=reset)
        loss = model.logits(hidden).square().mean() + final.ssm.square().mean() + final.conv.square().mean()
        weights = [*model.parameters(), *start]
        results[form] = [hidden, final.conv, final.ssm, *torch.autograd.grad(loss, weights)]
    for form in ("torch", "compiled"):
        for got, right in zip(results[form], results["reference"], strict=True):
            torch.testing.assert_close(got, right, **GRADIENTS)


def test_other_numbers_and_places_run_in_torch(best, monkeypatch):
    calls = []
    spy = dispatch.Form(
        scan=lambda *a, **k: calls.append("scan"), conv=lambda *a, **k: calls.append("conv"), description=""
    )
    monkeypatch.setitem(dispatch.FORMS, "torch", spy)
    scan, conv = scan_arguments(4), conv_arguments(4)
    for form in ("auto", "compiled"):
        with use_form(form):
            selective_scan(**in_double(scan))
            selective_scan(**{**scan, "B": scan["B"].bfloat16()})
            selective_scan(**{**scan, "initial_state": scan["initial_state"].double()})
            selective_scan(**{name: value.to("meta") for name, value in scan.items()})
            causal_conv(**{**conv, "x": conv["x"].half()})
            with FakeTensorMode() as fake:
                causal_conv(**{name: fake.from_tensor(value) for name, value in conv.items()})
    assert calls == ["scan", "scan", "scan", "scan", "conv", "conv"] * 2


@pytest.mark.filterwarnings("ignore")  # tracing is deprecated, and old exporters do it
def test_a_traced_model_holds_operations_not_numbers(best):
    traced = torch.jit.trace(lambda x, weight, window: causal_conv(x, weight, None, window=window), tuple(
        conv_arguments(4)[name] for name in ("x", "weight", "window")
    ))  # fmt: skip
    other = {name: value + 1 for name, value in conv_arguments(4).items() if name != "bias"}
    torch.testing.assert_close(traced(*other.values()), causal_conv(**other, bias=None))


@pytest.mark.parametrize("name", ["reset", "lengths"])
def test_flags_on_another_device_are_refused(best, name):
    flags = {"reset": torch.zeros(2, 4, dtype=torch.bool), "lengths": torch.zeros(2, dtype=torch.int64)}[name]
    with pytest.raises(InputError, match=f"{name} is on meta"):
        causal_conv(**conv_arguments(4), **{name: flags.to("meta")})


def test_without_kernels_torch_does_it_and_says_so_once(monkeypatch, caplog, tmp_path):
    monkeypatch.delitem(dispatch.FORMS, "compiled", raising=False)
    monkeypatch.setattr(dispatch, "_why_not_compiled", dispatch._add_compiled(tmp_path))
    dispatch._announce.cache_clear()
    dispatch._announce_slow.cache_clear()
    assert current_form() == "torch"
    with caplog.at_level(logging.INFO, logger="livemamba.ops"):
        selective_scan(**in_double(scan_arguments(3)))  # which would not run in them anyway
        for _ in range(3):
            assert_like_reference(selective_scan, scan_arguments(3))
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [
        "selective scan and causal convolution are slow here: the compiled kernels are not there; "
        "reinstall livemamba where there is a C compiler"
    ]
    with pytest.raises(MissingError, match="not there; reinstall livemamba") as refusal:
        set_form("compiled")
    assert "\n" not in str(refusal.value)


def test_kernels_are_announced_with_their_instruction_set(ops, caplog):
    dispatch._announce.cache_clear()
    with caplog.at_level(logging.INFO, logger="livemamba.ops"):
        selective_scan(**scan_arguments(3))
    assert re.fullmatch(
        r".* run as 'compiled': compiled kernels, (plain|avx2|avx512), (torch's threads|one thread.*)",
        caplog.records[0].getMessage(),
    )


def test_a_file_that_is_no_library_or_of_another_version_is_not_used(kernels, tmp_path, monkeypatch):
    (tmp_path / f"_kernels{native.EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
    assert "do not load" in dispatch._add_compiled(tmp_path)
    monkeypatch.setattr(native, "INTERFACE", native.INTERFACE + 1)
    with pytest.raises(native.UnusableError, match="another version of livemamba"):
        native.load(Path(kernels.library._name))


def test_forms_that_are_there_have_names_that_can_be_set():
    for form in FORMS:
        with use_form(form):
            assert current_form() == form
