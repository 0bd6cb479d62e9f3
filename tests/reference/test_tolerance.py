"""Values are torch's in float64; good float32 arithmetic lies within the tolerance, planted faults above it."""

import math

import pytest
import torch

from quack_lite import reference
from quack_lite.reference import OPERATORS, Kind
from reference.arithmetic import (
    DTYPES,
    EPS,
    IGNORED,
    TORCH,
    derivative,
    error,
    factors,
    halved,
    in_float32,
    inputs,
    labels,
    rows,
    to,
    weights,
)
from reference.planted import FAULTS, NARROW

PAIRS = [(dtype, dtype) for dtype in DTYPES] + [(torch.bfloat16, torch.float32)]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n", [1, 7, 100])
def test_the_reference_is_torchs_in_float64(name, n):
    given = inputs(name, n, dtype=torch.bfloat16, residual=torch.float32)
    values = OPERATORS[name].values(*given)
    expected = TORCH[name](*to(torch.float64, given))
    assert len(values) == len(expected) == len(OPERATORS[name].outputs)
    for y, right in zip(values, expected, strict=True):
        assert y.dtype == torch.float64
        torch.testing.assert_close(y, right.double(), rtol=1e-6 if name == "add_rms_norm" else 1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_the_derivative_from_the_result_is_the_one_from_the_input(name):
    x, dy = rows(33).double(), rows(33, seed=2).double()
    (right,) = derivative(lambda x: OPERATORS[name].values(x)[0], dy, x)
    (y,) = OPERATORS[name].values(x)
    torch.testing.assert_close(OPERATORS[f"{name}_backward"].values(dy, y)[0], right)


def test_the_derivatives_of_the_losses_are_autograds():
    x, target, w = rows(33).double(), labels(4, 33), weights(33).abs().double()
    lse = torch.logsumexp(x, -1)
    scale, smooth = (f.double() for f in factors(4, 2))
    (right,) = derivative(lambda x: OPERATORS["cross_entropy"].values(x, target, IGNORED)[0], scale, x)
    torch.testing.assert_close(OPERATORS["cross_entropy_backward"].values(x, target, lse, scale)[0], right)
    loss_and_spread = OPERATORS["smoothed_cross_entropy"].values
    (right,) = derivative(lambda x: loss_and_spread(x, target, w, IGNORED)[::2], (scale, smooth), x)
    given = (x, target, w, lse, scale + smooth * w.sum(), scale, smooth)
    torch.testing.assert_close(OPERATORS["smoothed_cross_entropy_backward"].values(*given)[0], right)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype, residual", PAIRS, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("spread, offset", [(4.0, 0.0), (0.01, 0.0), (1.0, 1e4)])
def test_float32_arithmetic_passes(name, dtype, residual, spread, offset):
    for n in (1, 129, 1000):
        given = inputs(name, n, dtype, residual, spread=spread, offset=offset)
        assert error(name, given, in_float32(name, given, dtype, residual)) <= 1


@pytest.mark.parametrize("name", OPERATORS)
def test_no_rows_pass(name):
    given = inputs(name, 33, m=0)
    assert error(name, given, in_float32(name, given, torch.float32)) == 0


@pytest.mark.parametrize("name", [name for name in OPERATORS if Kind.COLUMNS in OPERATORS[name].outputs])
def test_partial_sums_are_summed(name):
    given = inputs(name, 100, m=8)
    right = in_float32(name, given, torch.float32)
    kinds = OPERATORS[name].outputs
    halves = [in_float32(name, halved(name, given, half), torch.float32) for half in (slice(0, 5), slice(5, 8))]
    partial = tuple(
        torch.stack(parts) if kind is Kind.COLUMNS else y for kind, y, *parts in zip(kinds, right, *halves, strict=True)
    )
    assert error(name, given, partial) <= 1
    lost = tuple(y[:1] if kind is Kind.COLUMNS else y for kind, y in zip(kinds, partial, strict=True))
    assert error(name, given, lost) > 1


@pytest.mark.parametrize("name", OPERATORS)
def test_the_error_does_not_depend_on_how_the_rows_are_cut(name, monkeypatch):
    given = inputs(name, 33, m=7)
    results = in_float32(name, given, torch.float32)
    whole = error(name, given, results)
    monkeypatch.setattr(reference, "CHUNK", 70)
    assert error(name, given, results) == pytest.approx(whole)
    results[0][-1] += 1
    assert error(name, given, results) > 1


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_fails(fault):
    assert error(*FAULTS[fault]()) > 1


@pytest.mark.parametrize("spread", [1.0, 40.0])
def test_peaked_logits_pass(spread):
    x = rows(1001, spread)
    x[torch.arange(4), labels(4, 1001)] += 60
    for name in ("softmax", "log_softmax"):
        assert error(name, (x,), in_float32(name, (x,), torch.float32)) <= 1
    given = (x, labels(4, 1001), IGNORED)
    assert error("cross_entropy", given, in_float32("cross_entropy", given, torch.float32)) <= 1


def test_the_hardwares_logarithm_passes():
    """2 ulp off, as CUDA states; of logits that are nearly equal, as an untrained model's, it is all of the loss."""
    x = rows(1000, 0.01)
    shifted = x - x.amax(-1, keepdim=True)
    log2 = torch.log2(shifted.exp().sum(-1, keepdim=True)).double()
    log2 += 2 * reference.ulp(log2, torch.float32)
    assert error("log_softmax", (x,), (shifted - log2.float() * math.log(2),)) <= 1


def test_a_large_offset_passes():
    w, b = torch.ones(4), torch.zeros(4)
    assert error("layer_norm", (NARROW, w, b, EPS), in_float32("layer_norm", (NARROW, w, b, EPS), torch.float32)) <= 1


def test_a_gate_whose_exponential_overflows_passes():
    gate, up = torch.tensor([[-87.5, -88.5, -90.0, -100.0, -1000.0, 100.0]]), torch.full((1, 6), 1e30)
    given = (gate, up)
    assert error("swiglu", given, in_float32("swiglu", given, torch.float32)) <= 1
    assert error("swiglu", given, (torch.where(gate < -87, 0.0, gate * up),)) <= 1
    assert error("swiglu", given, (torch.where(gate < -80, 0.0, gate * up * 1.001),)) > 1


@pytest.mark.parametrize("name, dtype", [("copy", torch.float32), ("add_rms_norm", torch.bfloat16)])
def test_what_is_not_computed_must_be_equal(name, dtype):
    given = inputs(name, 64, dtype)
    results = in_float32(name, given, dtype)
    assert error(name, given, results) <= 1
    nearly = results[-1]
    nearly.view(-1)[0] = torch.nextafter(nearly.view(-1)[0], torch.tensor(math.inf, dtype=dtype))
    assert error(name, given, results) == math.inf


def test_no_operator_has_more_than_eight_roundings():
    assert all(0 <= operator.roundings <= 8 for operator in OPERATORS.values())
