"""NaN, infinities, masks, labels outside the classes, numbers beyond a dtype."""

import math

import pytest
import torch

from quack_lite import reference
from quack_lite.reference import OPERATORS, Kind
from reference.arithmetic import (
    DTYPES,
    IGNORED,
    cross_entropy,
    error,
    in_float32,
    inputs,
    rms_norm,
    rows,
    statistics,
    weights,
)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "copy"])
@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("whole", [False, True], ids=["one element", "whole row"])
def test_nan_and_inf_give_what_torch_gives(name, special, whole):
    given = inputs(name, 33)
    x = given[1] if OPERATORS[name].inputs[1:2] == (Kind.MATRIX,) else given[0]
    x[1, slice(None) if whole else 5] = special
    given = after_forward(name, given)
    assert error(name, given, in_float32(name, given, torch.float32)) <= 1


def after_forward(name, given):
    """The inputs with the statistics of rows that were changed."""
    if name == "layer_norm_backward":
        return (*given[:3], *statistics(given[1]))
    if name.endswith("cross_entropy_backward"):
        lse = OPERATORS["cross_entropy"].values(*given[:2], IGNORED)[1].float()
        return tuple(lse if i == OPERATORS[name].inputs.index(Kind.ROWS) else t for i, t in enumerate(given))
    return given


@pytest.mark.parametrize("name", OPERATORS)
def test_nan_on_one_side_only_fails(name):
    for output in range(len(OPERATORS[name].outputs)):
        given = inputs(name, 33)
        results = in_float32(name, given, torch.float32)
        results[output].view(-1)[0] = math.nan
        assert error(name, given, results) == math.inf
    given[0].view(-1)[0] = math.nan
    assert error(name, given, in_float32(name, inputs(name, 33), torch.float32)) == math.inf


def test_a_row_of_nothing_but_minus_infinity_is_nan_and_masked_values_are_zero():
    x = rows(64)
    x[0] = -math.inf
    x[1, 32:] = -math.inf
    result = torch.softmax(x, -1)
    assert error("softmax", (x,), (result,)) <= 1
    result[1, 40] = 1e-3
    assert error("softmax", (x,), (result,)) > 1


def test_a_masked_row_has_a_finite_loss_and_an_infinite_one_at_a_masked_label():
    x = rows(64)
    x[:, 32:] = -math.inf
    target = torch.tensor([0, 31, 32, 63])
    loss, lse = OPERATORS["cross_entropy"].values(x, target, IGNORED)
    assert loss.isinf().tolist() == [False, False, True, True] and lse.isfinite().all()
    assert error("cross_entropy", (x, target, IGNORED), cross_entropy(x, target, IGNORED)) <= 1
    assert error("cross_entropy", (x, target, IGNORED), (loss.clamp(max=1e38).float(), lse.float())) == math.inf
    assert error("cross_entropy", (x, target, IGNORED), (loss.float(), lse.float() + 1e-4)) > 1


@pytest.mark.parametrize("ignored", [IGNORED, 255, 3])
def test_ignored_rows_are_zero_and_labels_outside_the_classes_nan(ignored):
    x, w = rows(8, m=5), weights(8).abs()
    target = torch.tensor([ignored, 8, -1, 0, 7])
    loss, lse, spread = OPERATORS["smoothed_cross_entropy"].values(x, target, w, ignored)
    for value in (loss, spread):
        assert value[0] == 0 and value[1:3].isnan().all() and value[3:].isfinite().all()
    assert lse.isfinite().all()
    (dx,) = OPERATORS["cross_entropy_backward"].values(x, target, lse, torch.ones(5), ignored)
    assert not dx[:3].any() and dx[3:].all()


def test_rows_without_factors_are_zero_whatever_is_in_them():
    x, target, w, lse, a, b, e = inputs("smoothed_cross_entropy_backward", 8)
    x[0], target[1] = math.nan, 8
    for factor in (a, b, e):
        factor[0] = 0.0
    (dx,) = OPERATORS["smoothed_cross_entropy_backward"].values(x, target, w, lse, a, b, e)
    assert not dx[0].any()
    right = a[1] * (x[1] - lse[1]).exp() - e[1] * w
    torch.testing.assert_close(dx[1], right.double(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_ulp_is_the_distance_to_the_next_number(dtype):
    y = torch.tensor([1.0, 1.5, 0.75, 3.0, 1000.0], dtype=dtype)
    step = torch.nextafter(y, torch.full_like(y, math.inf)) - y
    assert torch.equal(reference.ulp(y.double(), dtype), step.double())


def test_a_value_that_the_dtype_cannot_hold_is_infinite():
    x, w = torch.full((1, 4), 1.0), torch.tensor([1e5, -1e5, 65519.0, 65521.0])
    y = rms_norm(x, w, 0.0)[0].half()
    assert y.isinf().tolist() == [[True, True, False, True]]
    assert error("rms_norm", (x, w, 0.0), (y,)) <= 1
    assert error("rms_norm", (x, w, 0.0), (y.abs(),)) == math.inf
    assert error("rms_norm", (x, w, 0.0), (y.clamp(-65504, 65504),)) == math.inf
    assert error("rms_norm", (x, w / 4, 0.0), (y,)) > 1


def test_a_result_below_the_normal_numbers_may_be_zero():
    x = torch.tensor([[0.0, -89.5, -80.0]])
    y = torch.softmax(x, -1)
    assert 0 < y[0, 1] < torch.finfo(torch.float32).smallest_normal
    assert error("softmax", (x,), (y * torch.tensor([1, 0, 1]),)) <= 1
    assert error("softmax", (x,), (y * torch.tensor([1, 1, 0]),)) > 1
