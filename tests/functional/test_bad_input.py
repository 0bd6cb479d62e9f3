"""What bad input gets: a sentence with what was given, what is allowed, and what to do."""

import pytest
import torch

import quack_lite
from functional.problems import OPERATORS, call, normal, problem

ROWS, N = 3, 8


def cpu_problem(name, dtype=torch.float32):
    """The tensors of an operator on the CPU."""
    x, weight = torch.zeros(ROWS, N, dtype=dtype), torch.ones(N)
    others = {"rms_norm": [weight], "layer_norm": [weight, weight], "swiglu": [x], "add_rms_norm": [x, weight]}
    return [x, *others.get(name, [torch.zeros(ROWS, dtype=torch.int64)] if name == "cross_entropy" else [])]


@pytest.mark.compile
@pytest.mark.parametrize("name", OPERATORS)
def test_a_tensor_on_the_cpu(name):
    with pytest.raises(ValueError, match=rf"{name}: .*cpu .*\.to\('cuda'\)"):
        call(name, *cpu_problem(name))


@pytest.mark.compile
@pytest.mark.parametrize("name", OPERATORS)
def test_something_that_is_not_a_tensor(name):
    with pytest.raises(TypeError, match=f"{name}: .*list .*torch.Tensor"):
        call(name, [1.0, 2.0], *cpu_problem(name)[1:])


@pytest.mark.compile
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.complex64], ids=str)
def test_an_input_of_another_dtype(name, dtype):
    with pytest.raises(TypeError, match=f"{name}: .*{dtype} .*float32, float16 and bfloat16"):
        call(name, *cpu_problem(name, dtype))


@pytest.mark.hopper
@pytest.mark.parametrize("name", ["rms_norm", "add_rms_norm", "layer_norm", "cross_entropy", "swiglu"])
def test_tensors_on_two_devices(name):
    tensors = problem(name, ROWS, N)
    for i in range(1, len(tensors)):
        mixed = [x.cpu() if i == j else x for j, x in enumerate(tensors)]
        with pytest.raises(ValueError, match=f"{name}: .*cpu"):
            call(name, *mixed)


@pytest.mark.compile
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_what_follows_dim_is_keyword_only(name):
    with pytest.raises(TypeError, match="positional"):
        getattr(quack_lite, name)(torch.zeros(3), -1, 3)
    with pytest.raises(TypeError, match=f"{name}: dtype=torch.float64 was given"):
        getattr(quack_lite, name)(torch.zeros(3), dtype=torch.float64)


@pytest.mark.compile
def test_what_follows_weight_is_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        quack_lite.cross_entropy(torch.zeros(3, 8), torch.zeros(3, dtype=torch.int64), None, None)


@pytest.mark.hopper
@pytest.mark.parametrize("name", ["rms_norm", "add_rms_norm", "layer_norm"])
@pytest.mark.parametrize("shape", [(7,), (3, 8), (8, 1), ()], ids=str)
def test_a_normalized_shape_that_is_not_the_last_dimension(name, shape):
    x = normal(ROWS, N)
    inputs = (x, x) if name == "add_rms_norm" else (x,)
    with pytest.raises(ValueError, match=rf"{name}: normalized_shape=.*last dimension"):
        getattr(quack_lite, name)(*inputs, shape)


@pytest.mark.hopper
@pytest.mark.parametrize("name", ["rms_norm", "add_rms_norm", "layer_norm"])
def test_a_weight_or_bias_of_another_length(name):
    tensors = problem(name, ROWS, N)
    first = 2 if name == "add_rms_norm" else 1
    for i in range(first, len(tensors)):
        wrong = [torch.ones(N + 1, device="cuda") if i == j else x for j, x in enumerate(tensors)]
        inputs, others = wrong[:first], wrong[first:]
        with pytest.raises(ValueError, match=rf"{name}: .*{'weight' if i == first else 'bias'}.*9"):
            getattr(quack_lite, name)(*inputs, (N,), *others)


@pytest.mark.hopper
def test_a_residual_of_another_shape_or_an_impossible_residual_dtype():
    with pytest.raises(ValueError, match="add_rms_norm: .*residual"):
        quack_lite.add_rms_norm(normal(3, 8), normal(4, 8), (8,))
    with pytest.raises(TypeError, match="add_rms_norm: .*residual_dtype=torch.float64"):
        quack_lite.add_rms_norm(normal(3, 8), normal(3, 8), (8,), residual_dtype=torch.float64)


@pytest.mark.hopper
@pytest.mark.parametrize(
    "target, options, error, sentence",
    [
        ((ROWS + 1,), {}, ValueError, "target"),
        ((ROWS, N), {}, ValueError, "target"),
        ((), {}, ValueError, "target"),
        ((ROWS,), {"reduction": "batchmean"}, ValueError, "reduction='batchmean' .*mean, sum, none"),
        ((ROWS,), {"label_smoothing": 1.5}, ValueError, "label_smoothing=1.5"),
        ((ROWS,), {"label_smoothing": -0.1}, ValueError, "label_smoothing=-0.1"),
    ],
    ids=["rows", "matrix", "one", "reduction", "much smoothing", "negative smoothing"],
)
def test_arguments_of_cross_entropy(target, options, error, sentence):
    with pytest.raises(error, match=f"cross_entropy: .*{sentence}"):
        quack_lite.cross_entropy(normal(ROWS, N), torch.zeros(target, dtype=torch.int64, device="cuda"), **options)


@pytest.mark.hopper
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int8, torch.bool], ids=str)
def test_labels_of_another_dtype(dtype):
    shape = (ROWS, N) if dtype.is_floating_point else (ROWS,)
    with pytest.raises(TypeError, match=f"cross_entropy: .*{dtype} .*int32 .*int64|cross_entropy: .*{dtype} .*int64"):
        quack_lite.cross_entropy(normal(ROWS, N), torch.zeros(shape, dtype=dtype, device="cuda"))


@pytest.mark.hopper
def test_class_weights_of_another_length():
    with pytest.raises(ValueError, match="cross_entropy: .*weight.*9"):
        quack_lite.cross_entropy(
            normal(ROWS, N), torch.zeros(ROWS, dtype=torch.int64, device="cuda"), torch.ones(9, device="cuda")
        )


@pytest.mark.hopper
def test_numbers_without_dimensions_are_as_in_torch_or_an_error():
    x = normal(1)[0].requires_grad_()
    for name in ("softmax", "log_softmax", "copy"):
        y = getattr(quack_lite, name)(x)
        assert y.shape == () and torch.autograd.grad(y, x)[0].shape == ()
    assert quack_lite.softmax(x) == 1 and quack_lite.log_softmax(x) == 0 and quack_lite.softmax(x, 0) == 1
    assert quack_lite.swiglu(x, x).shape == ()
    for name, arguments in (("rms_norm", ((),)), ("layer_norm", ((),)), ("cross_entropy", (torch.tensor(0).cuda(),))):
        with pytest.raises(ValueError, match=f"{name}: "):
            getattr(quack_lite, name)(x, *arguments)


@pytest.mark.hopper
@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0,), (2, 0, 3), (0, 0)], ids=str)
@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "cross_entropy"])
def test_nothing_in_nothing_out(name, shape):
    n = shape[-1]
    count = 2 if name in ("swiglu", "add_rms_norm") else 1
    weights = {"rms_norm": 1, "add_rms_norm": 1, "layer_norm": 2}.get(name, 0)
    inputs = [normal(*shape).requires_grad_() for _ in range(count)]
    others = [torch.ones(n, device="cuda", requires_grad=True) for _ in range(weights)]
    outputs = call(name, *inputs, *others)
    assert all(y.shape == shape and y.dtype == torch.bfloat16 and y.is_cuda for y in outputs)
    gradients = torch.autograd.grad(outputs, [*inputs, *others], outputs)
    assert all(g.shape == shape for g in gradients[:count])
    assert all(g.shape == (n,) and not g.any() for g in gradients[count:])
