"""What an operator's gates see, on operators made here, and the model in which lesson 14 swaps them."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from quack_lite.bench.small_model import SmallModel, SmallSize  # noqa: E402
from quack_lite.grading import operator_gates  # noqa: E402
from quack_lite.grading.feedback import GradeFailed  # noqa: E402
from quack_lite.grading.operator_gates import OperatorCases  # noqa: E402

CASES = OperatorCases(
    sizes=((4, 3), (2, 5)),
    inputs=lambda size, generator: (torch.randn(size, generator=generator, device=generator.device),),
    reference=lambda x: (x.double() * x.double(),),
    dtypes=lambda: (torch.float32,),
)


def square(x):
    return x * x


def square_on_the_default_stream(x):
    with torch.cuda.stream(torch.cuda.default_stream()):
        return x * x


def keep_inputs(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def square_gradient(ctx, dy):
    return 2 * ctx.saved_tensors[0] * dy


@pytest.fixture
def squares():
    """A function that tells torch of an operator, with the fake and the gradient that it is given."""
    libraries = []

    def make(fake=torch.empty_like, backward=square_gradient, devices=("CPU", "CUDA"), run=square):
        libraries.append(torch.library.Library("test_operator_gates", "FRAGMENT"))
        libraries[-1].define("square(Tensor x) -> Tensor")
        for device in devices:
            libraries[-1].impl("square", run, device)
        name = "test_operator_gates::square"
        if fake:
            torch.library.register_fake(name, fake, lib=libraries[-1])
        if backward:
            torch.library.register_autograd(name, backward, setup_context=keep_inputs, lib=libraries[-1])
        return torch.ops.test_operator_gates.square

    yield make
    for library in libraries:
        library._destroy()


def test_a_right_operator_passes(squares):
    operator = operator_gates.overload(squares())
    assert "without data" in operator_gates.judge_fake(operator, CASES)
    assert "2 sizes" in operator_gates.judge_gradient(operator, CASES, "cpu")
    assert "new tensors" in operator_gates.judge_run(operator, CASES)


@pytest.mark.parametrize(
    "fake, says",
    [
        (None, "it has no fake"),
        (lambda x: x.new_empty(3), r"has the shape \(3,\)"),
        (lambda x: x.new_empty(x.shape, dtype=torch.float16), "should be torch.float32"),
        (lambda x: torch.empty(x.shape), "device=x.device"),
        (lambda x: x.new_empty(x.shape[::-1]).T, "results are contiguous"),
        (lambda x: x[x.argmax()], "without data it raised"),
        (lambda x: None, "is None: it returns the tensor"),
    ],
)
def test_a_fake_that_lies_is_found(squares, fake, says):
    with pytest.raises(GradeFailed, match=says):
        operator_gates.judge_fake(operator_gates.overload(squares(fake)), CASES)


def test_a_fake_may_index(squares):
    operator = operator_gates.overload(squares(lambda x: x.new_empty(2, *x.shape)[0].clone()))
    assert "without data" in operator_gates.judge_fake(operator, CASES)


@pytest.mark.parametrize(
    "run, says",
    [
        (lambda x: x, "lies where an input"),
        (lambda x: x.new_empty(x.shape[::-1]).T, "results are contiguous"),
        (lambda x: None, "is None"),
        (lambda x: (x, x), "not what its schema says"),
    ],
)
def test_what_it_makes_on_a_gpu_is_tried_on_the_cpu(squares, run, says):
    with pytest.raises(GradeFailed, match=says):
        operator_gates.judge_run(operator_gates.overload(squares(run=run)), CASES)


def test_a_run_may_ask_for_a_gpu(squares):
    operator = operator_gates.overload(squares(run=lambda x: x.new_empty(x.shape, device=f"cuda:{x.get_device()}")))
    assert "not tried" in operator_gates.judge_run(operator, CASES)


def test_a_gradient_kept_outside_of_ctx_is_found(squares):
    kept = []
    operator = operator_gates.overload(
        squares(run=lambda x: kept.append(x) or x * x, backward=lambda ctx, dy: 2 * kept[-1] * dy)
    )
    with pytest.raises(GradeFailed, match="called on other inputs before its backward, the gradient of x"):
        operator_gates.judge_gradient(operator, CASES, "cpu")


def test_only_a_result_may_be_the_difference_of_larger_terms():
    found, right = torch.zeros(3), torch.full((3,), 1e-5, dtype=torch.float64)
    operator_gates.close(found, right, "a result", operator_gates.TERMS)
    with pytest.raises(GradeFailed, match="3 of 3 elements differ"):
        operator_gates.close(found, right, "a gradient")


def test_a_wrong_gradient_is_found(squares):
    operator = operator_gates.overload(squares(backward=lambda ctx, dy: ctx.saved_tensors[0] * dy))
    with pytest.raises(GradeFailed, match="the gradient of x"):
        operator_gates.judge_gradient(operator, CASES, "cpu")


def test_opcheck_passes_a_right_operator(squares):
    assert "4 of 4" in operator_gates.judge_opcheck(operator_gates.overload(squares()), CASES)


def test_opcheck_misses_a_gradient_that_was_not_told(squares):
    with pytest.raises(GradeFailed, match="was not told its gradient"):
        operator_gates.judge_opcheck(operator_gates.overload(squares(backward=None)), CASES)


@pytest.mark.parametrize(
    "backward, says",
    [
        (lambda ctx, dy: (dy, dy, dy), "one gradient for each input"),
        (lambda ctx, dy: dy.no_such, "in its backward, it raised AttributeError"),
    ],
)
def test_opcheck_is_quoted_where_a_backward_fails(squares, backward, says):
    with pytest.raises(GradeFailed, match=says):
        operator_gates.judge_opcheck(operator_gates.overload(squares(backward=backward)), CASES)


def test_a_schema_that_does_not_fit_is_named(squares):
    cases = replace(CASES, inputs=lambda size, generator: (torch.ones(size), torch.ones(size)), reference=torch.mul)
    with pytest.raises(GradeFailed, match="its schema does not fit"):
        operator_gates.judge_fake(operator_gates.overload(squares()), cases)


@pytest.mark.gpu
def test_an_operator_that_keeps_to_its_stream_passes(squares):
    assert "waits" in operator_gates.judge_stream(operator_gates.overload(squares()), CASES)


@pytest.mark.gpu
def test_an_operator_that_leaves_its_stream_is_found(squares):
    operator = operator_gates.overload(squares(run=square_on_the_default_stream))
    with pytest.raises(GradeFailed, match="did not wait for its input"):
        operator_gates.judge_stream(operator, CASES)


def test_what_is_no_operator_or_not_for_both_devices_is_refused(squares):
    with pytest.raises(GradeFailed, match="a function was handed over"):
        operator_gates.overload(lambda x: x)
    with pytest.raises(GradeFailed, match="nothing to run for CUDA"):
        operator_gates.overload(squares(devices=("CPU",)))


def test_an_answers_operators_are_taken_back():
    answer = type(torch)("answer")
    answer.library = torch.library.Library("test_taken_back", "FRAGMENT")
    answer.library.define("f(Tensor x) -> Tensor")
    operator_gates.forget(answer)
    assert not hasattr(torch.ops.test_taken_back, "f")


def test_the_small_model_uses_what_is_swapped_in():
    model = SmallModel(SmallSize(tokens=96, width=32, layers=2, heads=4, hidden=32))
    tokens = torch.zeros(2, 1, 5, dtype=torch.int64)
    assert model(*tokens).shape == ()
    calls = []
    for name in ("activation", "norm", "loss"):
        own = getattr(model, name)
        setattr(model, name, lambda *args, name=name, own=own: calls.append(name) or own(*args))
    model(*tokens)
    assert sorted(calls) == ["activation"] * 2 + ["loss"] + ["norm"] * 4
