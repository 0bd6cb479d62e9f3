"""cross_entropy: reductions, weights, smoothing, labels of all kinds, the gradient in the logits' place."""

import itertools

import pytest
import torch

import quack_lite
from functional import losses
from functional.problems import DTYPES, IGNORED, backward_error, bits, forward_error, labels, normal, run
from quack_lite.tiling import FEW_ROWS

pytestmark = pytest.mark.hopper

REDUCTIONS = ["none", "sum", "mean"]
SMOOTHINGS = [0.0, 0.1, 1.0]


def weights(n):
    return 0.5 + torch.rand(n, generator=torch.Generator(device="cuda").manual_seed(4), device="cuda")


def sent(reduction, m):
    """A gradient of the loss that is not 1."""
    return normal(m, seed=3) if reduction == "none" else torch.tensor(-1.75, device="cuda")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m", [9, FEW_ROWS + 5])
def test_labels_anywhere_in_few_rows_and_in_many(dtype, m):
    for n in (1, 7, 8, 33, 1000, 4096, 8191, 50257, 131072):
        x, target = normal(m, n, dtype=dtype), labels(m, n)
        target[1], target[2] = 0, n // 2
        ran = run("cross_entropy", (x, target))
        assert ran.outputs[0].dtype == x.dtype
        assert forward_error("cross_entropy", (x, target), ran.outputs) <= 1
        assert backward_error("cross_entropy", (x, target), ran) <= 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_reduction_weights_smoothing_and_ignored_labels_are_as_in_torch(dtype, reduction, weighted):
    errors = {}
    for n, smoothing, ignored in itertools.product((1, 19, 1000, 4099), SMOOTHINGS, (IGNORED, 0, 255, -1)):
        x, target = normal(33, n, dtype=dtype, seed=n), labels(33, n)
        target[::5] = ignored
        options = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignored}
        if weighted:
            options["weight"] = weights(n)
        if (target != ignored).any():
            errors[n, smoothing, ignored] = losses.worst(x, target, sent(reduction, 33), **options)
    assert {case: error for case, error in errors.items() if not error <= 1} == {}


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("n", [32768, 151936, 262144])
def test_smoothing_of_long_rows(n, smoothing):
    x, target = normal(5, n), labels(5, n)
    assert losses.worst(x, target, sent("none", 5), reduction="none", label_smoothing=smoothing) <= 1
    assert losses.worst(x, target, label_smoothing=smoothing, weight=weights(n)) <= 1


@pytest.mark.parametrize("weight_dtype", ["float32", "bfloat16", "float64"])
def test_weights_of_any_dtype_and_place(weight_dtype):
    x, target = normal(9, 1000), labels(9, 1000)
    weight = weights(2001).to(getattr(torch, weight_dtype))[1::2]
    wide = weight.float().contiguous()
    for smoothing in (0.0, 0.2):
        first = losses.ours(x, target, weight=weight, label_smoothing=smoothing)
        second = losses.ours(x, target, weight=wide, label_smoothing=smoothing)
        assert torch.equal(first.value, second.value) and torch.equal(first.gradient, second.gradient)


def test_weights_of_zero():
    x, target = normal(9, 19), labels(9, 19)
    weight = torch.zeros(19, device="cuda")
    weight[target[0]] = 2
    assert losses.worst(x, target, weight=weight) <= 1
    assert quack_lite.cross_entropy(x, target, torch.zeros(19, device="cuda")).isnan()


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_one_row_without_a_batch(reduction, smoothing):
    x, target = normal(1000), torch.tensor(5, device="cuda")
    assert losses.worst(x, target, reduction=reduction, label_smoothing=smoothing) <= 1


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_no_rows_are_as_in_torch(smoothing, weighted):
    x, target = normal(0, 19), labels(0, 19)
    weight = weights(19) if weighted else None
    for reduction in REDUCTIONS:
        options = {"reduction": reduction, "label_smoothing": smoothing, "weight": weight}
        found, right = losses.ours(x, target, **options), losses.torchs(x, target, **options)
        assert found.value.shape == right.value.shape and found.gradient.shape == (0, 19)
        assert torch.equal(found.value.isnan(), right.value.isnan())
        assert torch.equal(found.value.nan_to_num().double(), right.value.nan_to_num())


@pytest.mark.parametrize("shape", [(3, 0), (0, 0)])
def test_no_classes_are_an_error(shape):
    with pytest.raises(ValueError, match="cross_entropy: .*class"):
        quack_lite.cross_entropy(normal(*shape), torch.zeros(shape[0], dtype=torch.int64, device="cuda"))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("outside", [-1, 19, 20, 255, 2**31 + 3, -(2**40)])
def test_a_label_outside_the_classes(outside, smoothing):
    x, target = normal(4, 19, dtype="float32"), labels(4, 19)
    right = losses.ours(x, target, reduction="none", label_smoothing=smoothing)
    target[1] = outside
    found = losses.ours(x, target, reduction="none", label_smoothing=smoothing)
    kept = [0, 2, 3]
    assert found.value[1].isnan() and torch.equal(found.value[kept], right.value[kept])
    assert not found.gradient[1].any() and torch.equal(found.gradient[kept], right.gradient[kept])
    for reduction in ("mean", "sum"):
        found = losses.ours(x, target, weight=weights(19), reduction=reduction, label_smoothing=smoothing)
        assert found.value.isnan() and not found.gradient[1].any()


def test_an_ignored_label_may_lie_outside_and_a_masked_logit_may_be_the_label():
    x, target = normal(4, 19, dtype="float32"), labels(4, 19)
    x[0, target[0]] = -torch.inf
    loss = losses.ours(x, target, reduction="none")
    assert loss.value[0] == torch.inf and not loss.gradient.isnan().any()
    x[1] = -torch.inf
    assert losses.ours(x, target, reduction="none").value[1].isnan()


@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}], ids=str)
def test_the_gradient_in_the_logits_place_has_the_same_bits(options):
    x, target = normal(9, 1000), labels(9, 1000)
    target[3] = IGNORED
    right = losses.ours(x, target, **options)
    logits = x.clone().requires_grad_() * 1
    version, address = logits._version, logits.data_ptr()
    loss = quack_lite.cross_entropy(logits, target, inplace_backward=True, **options)
    assert torch.equal(logits.detach(), x) and logits._version == version
    (gradient,) = torch.autograd.grad(loss, logits)
    assert torch.equal(loss, right.value) and torch.equal(gradient, right.gradient)
    assert gradient.data_ptr() == address and torch.equal(bits(logits.detach()), bits(right.gradient))
    assert logits._version > version


@pytest.mark.parametrize("inplace", [False, True])
def test_the_gradient_goes_on_through_the_layer_before(inplace):
    x, target = normal(9, 64, dtype="float32"), labels(9, 1000)
    weight = (normal(64, 1000, dtype="float32", seed=1) / 16).requires_grad_()
    quack_lite.cross_entropy(x @ weight, target, inplace_backward=inplace).backward()
    wide = weight.detach().double().requires_grad_()
    torch.nn.functional.cross_entropy(x.double() @ wide, target).backward()
    torch.testing.assert_close(weight.grad.double(), wide.grad, rtol=1e-3, atol=1e-4)


def test_a_second_use_of_overwritten_logits_is_an_error():
    target = labels(9, 1000)
    logits = (normal(9, 1000).requires_grad_()) * 1
    first = quack_lite.cross_entropy(logits, target, inplace_backward=True)
    second = quack_lite.cross_entropy(logits, target)
    first.backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        second.backward()


def test_a_second_backward_over_overwritten_logits_is_an_error():
    logits = (normal(9, 1000).requires_grad_()) * 1
    loss = quack_lite.cross_entropy(logits, labels(9, 1000), inplace_backward=True)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@pytest.mark.parametrize("n", [40, 1003])
def test_overwriting_a_leaf_is_refused_and_other_strides_are_left_alone(n):
    x, target = normal(9, n), labels(9, n)
    with pytest.raises(ValueError, match="cross_entropy: inplace_backward=True was given for logits that are a leaf"):
        quack_lite.cross_entropy(x.clone().requires_grad_(), target, inplace_backward=True)
    logits = (x.clone().requires_grad_() * 1)[::2]
    (gradient,) = torch.autograd.grad(quack_lite.cross_entropy(logits, target[::2], inplace_backward=True), logits)
    assert torch.equal(logits, x[::2]) and torch.equal(gradient, losses.ours(x[::2], target[::2]).gradient)


@pytest.mark.parametrize("n", [40, 1003])
def test_strided_logits_and_labels(n):
    x, target = normal(18, 2 * n, dtype="float32"), labels(18, n)
    wanted = losses.ours(x[::2, ::2].contiguous(), target[::2].contiguous())
    found = losses.ours(x[::2, ::2], target[::2])
    assert losses.worst(x[::2, ::2], target[::2]) <= 1
    torch.testing.assert_close(found.value, wanted.value, rtol=2**-20, atol=0)


def test_shapes_that_are_not_built_name_flatten():
    for shape, labelled in (((2, 5, 7), (2, 7)), ((2, 5, 3, 3), (2, 3, 3))):
        with pytest.raises(ValueError, match="cross_entropy: .*flatten"):
            quack_lite.cross_entropy(normal(*shape), torch.zeros(labelled, dtype=torch.int64, device="cuda"))


def test_gradients_of_single_rows():
    x, target = normal(9, 1000), labels(9, 1000)
    whole = run("cross_entropy", (x, target))
    for i in range(9):
        one = run("cross_entropy", (x[i : i + 1], target[i : i + 1]), (whole.sent[0][i : i + 1],))
        assert torch.equal(one.gradients[0][0], whole.gradients[0][i])
