"""softmax and log_softmax: dimension, dtype, masked rows, unusual values."""

import math

import pytest
import torch
import torch.nn.functional as F

import quack_lite
from functional.problems import DTYPES, backward_error, forward_error, much_memory, normal, run
from quack_lite import reference

pytestmark = pytest.mark.hopper

BOTH = ["softmax", "log_softmax"]
WRONG_ELSEWHERE = [100352, 151936, 200064, 262208]  # a well-known library returns NaN for every row of these


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("dim", [0, 1, 2, -1, -2, -3])
def test_any_dimension(name, dim):
    x = normal(6, 50, 9)
    leaf = x.clone().requires_grad_()
    y = getattr(quack_lite, name)(leaf, dim)
    dy = normal(6, 50, 9, seed=1)
    (dx,) = torch.autograd.grad(y, leaf, dy)
    assert y.shape == dx.shape == x.shape
    x, y, dy, dx = (tensor.detach().movedim(dim, -1).reshape(-1, x.shape[dim]) for tensor in (x, y, dy, dx))
    assert reference.worst_error(name, (x,), (y,)) <= 1
    assert reference.worst_error(f"{name}_backward", (dy, y), (dx,)) <= 1


@pytest.mark.parametrize("name", BOTH)
def test_a_dimension_that_is_not_there(name):
    for dim in (2, -3):
        with pytest.raises(IndexError, match=f"dim={dim} was given for a tensor of 2 dimensions; allowed is -2 .. 1"):
            getattr(quack_lite, name)(normal(2, 3), dim)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("wanted", DTYPES)
def test_dtype_converts_before(name, wanted):
    function, wanted = getattr(quack_lite, name), getattr(torch, wanted)
    x = normal(3, 1000).requires_grad_()
    y = function(x, dtype=wanted)
    assert y.dtype == wanted and torch.equal(y, function(x.detach().to(wanted)))
    (dx,) = torch.autograd.grad(y, x, y.detach())
    assert dx.dtype == x.dtype


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("n", [5, 1000, 4096, 65536])
def test_unusual_values_are_as_in_torch(name, n, value):
    x = normal(4, n, dtype="float32")
    x[0, n // 2] = value
    x[1] = value
    x[2, 0] = x[3, -1] = value
    ours = getattr(quack_lite, name)(x)
    torchs = getattr(F, name)(x, -1)
    assert torch.equal(ours.isnan(), torchs.isnan()) and torch.equal(ours.isinf(), torchs.isinf())
    usual = torchs.isfinite().all(-1)
    assert forward_error(name, (x[usual],), (ours[usual],)) <= 1


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("n", [*WRONG_ELSEWHERE, 32768, 4096, 50257, 1000, 33])
def test_half_of_a_row_masked(name, n):
    x = normal(3, n)
    x[:, n // 2 :] = -math.inf
    x[1] = x[1].flip(0)
    y = getattr(quack_lite, name)(x)
    if name == "softmax":
        assert forward_error(name, (x,), (y,)) <= 1
        return
    masked = x == -math.inf
    assert (y[masked] == -math.inf).all()
    kept = x.masked_select(~masked).view(3, -1)
    assert forward_error(name, (kept,), (y.masked_select(~masked).view(3, -1),)) <= 1


@pytest.mark.parametrize("name", BOTH)
def test_a_masked_row_has_the_gradient_of_torch(name):
    x = normal(3, 1000, dtype="float32")
    x[:, 500:] = -math.inf
    ran = run(name, [x])
    wide = x.double().requires_grad_()
    (right,) = torch.autograd.grad(getattr(F, name)(wide, -1), wide, ran.sent[0].double())
    torch.testing.assert_close(ran.gradients[0].double(), right, rtol=2**-18, atol=2**-16)


@pytest.mark.parametrize("name", BOTH)
def test_large_and_equal_logits(name):
    for x in (1000 * normal(4, 1000, dtype="float32"), torch.full((4, 1000), 3e38, device="cuda")):
        ran = run(name, [x])
        assert forward_error(name, [x], ran.outputs) <= 1
        assert backward_error(name, [x], ran) <= 1


@pytest.mark.parametrize("masked", [False, True], ids=["plain", "half masked"])
def test_the_logits_of_a_language_model(masked):
    m, n = 4096, 151936
    with much_memory(4 * m * n * 2):
        assert language_model_error(m, n, masked) <= 1


def language_model_error(m, n, masked):
    """The largest error over sampled rows; every row must sum to 1."""
    x = normal(m, n)
    if masked:
        x[:, n // 2 :] = -math.inf
    result = quack_lite.softmax(x)
    assert (result.sum(-1, dtype=torch.float32) - 1).abs().max() < 2**-7
    sampled = slice(None, None, 37)
    return forward_error("softmax", (x[sampled],), (result[sampled],))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_integers_are_converted_where_a_dtype_is_given(name):
    x = torch.arange(12, device="cuda").view(3, 4)
    ours, right = getattr(quack_lite, name), getattr(F, name)
    torch.testing.assert_close(ours(x, dtype=torch.float32), right(x, -1, dtype=torch.float32))
    with pytest.raises(TypeError, match="int64 was given"):
        ours(x)
