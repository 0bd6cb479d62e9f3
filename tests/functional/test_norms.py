"""rms_norm, add_rms_norm and layer_norm: weights, eps, the residual's dtype."""

import pytest
import torch
import torch.nn.functional as F

import quack_lite
from functional.problems import DTYPES, EPS, normal, placed, problem, run, same_bits, worst
from quack_lite import reference

pytestmark = pytest.mark.hopper

NORMS = ["rms_norm", "add_rms_norm", "layer_norm"]


def converted(tensors, dtype):
    """The problem with weights and biases of another dtype."""
    return [x.to(dtype) if x.ndim == 1 else x for x in tensors]


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weight_dtype", [*DTYPES, "float64"])
def test_a_weight_of_another_dtype_is_its_float32_value(name, dtype, weight_dtype):
    weight_dtype = getattr(torch, weight_dtype)
    tensors = converted(problem(name, 7, 1000, dtype), weight_dtype)
    ran = run(name, tensors)
    wide = run(name, converted(tensors, torch.float32), ran.sent)
    assert same_bits(ran.outputs, wide.outputs)
    rounded = [g.to(x.dtype) for x, g in zip(tensors, wide.gradients, strict=True)]
    assert [g.dtype for g in ran.gradients] == [x.dtype for x in tensors]
    assert same_bits(ran.gradients, rounded)


@pytest.mark.parametrize("name", NORMS)
def test_without_a_weight_it_is_one_and_without_a_bias_nothing(name):
    tensors = problem(name, 7, 1000)
    count = 2 if name == "add_rms_norm" else 1
    inputs = [x.requires_grad_() for x in tensors[:count]]
    neutral = [torch.ones(1000, device="cuda"), torch.zeros(1000, device="cuda")][: len(tensors) - count]
    function = getattr(quack_lite, name)
    bare, full = function(*inputs, (1000,), eps=EPS), function(*inputs, (1000,), *neutral, eps=EPS)
    first = bare if name == "add_rms_norm" else (bare,)
    second = full if name == "add_rms_norm" else (full,)
    assert same_bits(first, second)
    dy = normal(7, 1000, seed=3)
    assert same_bits(torch.autograd.grad(first[0], inputs, dy), torch.autograd.grad(second[0], inputs, dy))


def test_layer_norm_with_a_weight_or_a_bias_alone():
    x, weight, bias = problem("layer_norm", 7, 1000)
    one, nothing = torch.ones_like(weight), torch.zeros_like(bias)
    alone = quack_lite.layer_norm(x, (1000,), bias=bias)
    assert torch.equal(alone, quack_lite.layer_norm(x, (1000,), one, bias))
    weight.requires_grad_()
    alone = quack_lite.layer_norm(x, (1000,), weight)
    assert torch.equal(alone, quack_lite.layer_norm(x, (1000,), weight, nothing))
    (dweight,) = torch.autograd.grad(alone, weight, x)
    assert dweight.shape == (1000,)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eps_none_is_torchs(dtype):
    x = (normal(5, 256, dtype=dtype).float() * 1e-4).to(getattr(torch, dtype))
    ours, torchs = quack_lite.rms_norm(x, (256,)), F.rms_norm(x.double(), (256,), eps=eps_of_torch(x.dtype))
    torch.testing.assert_close(ours.double(), torchs, rtol=2 * torch.finfo(x.dtype).eps, atol=1e-6)
    torch.testing.assert_close(ours, F.rms_norm(x, (256,)), rtol=4 * torch.finfo(x.dtype).eps, atol=1e-6)


def eps_of_torch(dtype):
    """float32's for 16-bit inputs too."""
    return torch.finfo(torch.float32).eps


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("eps", [0.0, 1e-12, 0.5])
def test_eps_is_used(name, eps):
    x = normal(5, 256, dtype="float32")
    weight = torch.ones(256, device="cuda")
    if name == "layer_norm":
        y = quack_lite.layer_norm(x, (256,), weight, eps=eps)
        right = F.layer_norm(x.double(), (256,), weight.double(), eps=eps)
    elif name == "rms_norm":
        y, right = quack_lite.rms_norm(x, (256,), weight, eps), F.rms_norm(x.double(), (256,), weight.double(), eps)
    else:
        y, r = quack_lite.add_rms_norm(x, x, (256,), weight, eps)
        right = F.rms_norm(r.double(), (256,), weight.double(), eps)
    torch.testing.assert_close(y.double(), right, rtol=2**-20, atol=2**-20)


@pytest.mark.parametrize("name", NORMS)
def test_a_weight_anywhere_in_memory(name):
    tensors = problem(name, 5, 1000)
    for start, step in ((1, 1), (3, 1), (0, 2)):
        assert worst(name, [placed(x[None], 0, start, step)[0] if x.ndim == 1 else x for x in tensors]) <= 1
    assert worst(name, [x[:1].expand(1000) if x.ndim == 1 else x for x in tensors]) <= 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("residual", ["float32", None])
@pytest.mark.parametrize("asked", ["float32", None])
def test_the_dtype_of_the_new_residual(dtype, residual, asked):
    x = normal(5, 1000, dtype=dtype).requires_grad_()
    old = normal(5, 1000, dtype=residual or dtype, seed=1).requires_grad_()
    weight = normal(1000, dtype="float32", seed=2)
    y, new = quack_lite.add_rms_norm(x, old, (1000,), weight, EPS, residual_dtype=asked and torch.float32)
    assert y.dtype == x.dtype
    assert new.dtype == (torch.float32 if asked else old.dtype)
    right = (x.float() + old.float()).to(new.dtype)
    assert torch.equal(new, right)
    assert reference.worst_error("rms_norm", (right.detach(), weight, EPS), (y.detach(),)) <= 1
    first, second = torch.autograd.grad((y, new), (x, old), (y.detach(), new.detach()))
    assert first.dtype == x.dtype and second.dtype == old.dtype


def test_the_sum_of_add_rms_norm_is_rounded_before_it_is_normed():
    x = torch.full((1, 8), 1.0, device="cuda", dtype=torch.bfloat16)
    residual = torch.full((1, 8), 2.0**-9, device="cuda", dtype=torch.bfloat16)
    residual[0, 0] = 2.0**-8
    y, new = quack_lite.add_rms_norm(x, residual, (8,), eps=0.0)
    assert torch.equal(new, x + residual)
    assert reference.worst_error("rms_norm", (new, torch.ones(8, device="cuda"), 0.0), (y,)) <= 1


@pytest.mark.parametrize("name", NORMS)
def test_a_row_of_zeros_and_a_row_of_nan(name):
    tensors = problem(name, 4, 1000, "float32")
    for x in tensors:
        if x.ndim == 2:
            x[1], x[2, 500] = 0, torch.nan
    ran = run(name, tensors)
    assert ran.outputs[0][2].isnan().all() and not ran.outputs[0][[0, 1, 3]].isnan().any()
    assert not ran.gradients[0][[0, 1, 3]].isnan().any()


@pytest.mark.parametrize("name", NORMS)
def test_a_frozen_weight_or_input_gets_no_gradient(name):
    tensors = problem(name, 7, 1000)
    whole = run(name, tensors)
    for kept in range(len(tensors)):
        leaves = [x.detach().requires_grad_(i == kept) for i, x in enumerate(tensors)]
        outputs = getattr(quack_lite, name)(*arguments(name, leaves))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.autograd.backward(outputs, whole.sent)
        assert [x.grad is not None for x in leaves] == [i == kept for i in range(len(leaves))]
        assert torch.equal(leaves[kept].grad, whole.gradients[kept])


def arguments(name, tensors):
    """Inputs, normalized shape, weights and, last, eps."""
    count = 2 if name == "add_rms_norm" else 1
    return (*tensors[:count], (tensors[0].shape[-1],), *tensors[count:], EPS)
