"""swiglu: halves of one tensor, unusual values."""

import math

import pytest
import torch

import quack_lite
from functional.problems import backward_error, forward_error, normal, rows, run

pytestmark = pytest.mark.hopper


@pytest.mark.parametrize("n", [40, 1000, 1003, 4096])
def test_halves_of_one_tensor(n):
    both = normal(5, 2 * n)
    halves = both.chunk(2, -1)
    ran = run("swiglu", halves)
    assert forward_error("swiglu", halves, ran.outputs) <= 1
    assert backward_error("swiglu", halves, ran) <= 1


def test_gate_and_up_may_be_the_same_tensor():
    x = normal(5, 1000)
    leaf = x.clone().requires_grad_()
    quack_lite.swiglu(leaf, leaf).backward(x)
    dgate, dup = run("swiglu", (x, x), (x,)).gradients
    assert torch.equal(leaf.grad, dgate + dup)


@pytest.mark.parametrize("value", [0.0, -0.0, 100.0, -100.0, 3e38, -3e38])
def test_a_gate_far_from_nothing(value):
    gate = torch.full((2, 1000), value, device="cuda")
    up = normal(2, 1000, dtype="float32") / 1000
    ran = run("swiglu", (gate, up))
    assert forward_error("swiglu", (gate, up), ran.outputs) <= 1
    assert backward_error("swiglu", (gate, up), ran) <= 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_unusual_values_are_as_in_torch(value):
    gate, up = normal(2, 1000, dtype="float32"), normal(2, 1000, dtype="float32", seed=1)
    gate[0, 500], up[1, 500] = value, value
    ours, torchs = quack_lite.swiglu(gate, up), torch.nn.functional.silu(gate) * up
    assert torch.equal(ours.isnan(), torchs.isnan())
    assert torch.equal(ours.isinf(), torchs.isinf())


def test_two_shapes_are_refused():
    for gate, up in (((2, 8), (2, 9)), ((2, 8), (8,)), ((2, 8), (1, 8))):
        with pytest.raises(ValueError, match="swiglu: .*shape"):
            quack_lite.swiglu(normal(*gate), normal(*up))


def test_two_dtypes_are_refused():
    with pytest.raises(TypeError, match="swiglu: .*float32.*bfloat16|swiglu: .*bfloat16.*float32"):
        quack_lite.swiglu(normal(2, 8), normal(2, 8, dtype="float32"))


def test_any_shape():
    gate, up = normal(2, 3, 5, 7), normal(2, 3, 5, 7, seed=1)
    y = quack_lite.swiglu(gate, up)
    assert y.shape == gate.shape
    assert torch.equal(rows(y), quack_lite.swiglu(rows(gate), rows(up)))
