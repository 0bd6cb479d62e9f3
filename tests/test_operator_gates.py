"""What an operator's gates see, on operators made here, and the model in which lesson 14 swaps them."""

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


@pytest.fixture
def squares():
    """A function that tells torch of an operator, with the fake and the gradient that it is given."""
    libraries = []

    def make(fake=torch.empty_like, backward=lambda ctx, dy: 2 * ctx.saved_tensors[0] * dy, devices=("CPU", "CUDA")):
        libraries.append(torch.library.Library("test_operator_gates", "FRAGMENT"))
        libraries[-1].define("square(Tensor x) -> Tensor")
        for device in devices:
            libraries[-1].impl("square", lambda x: x * x, device)
        name = "test_operator_gates::square"
        if fake:
            torch.library.register_fake(name, fake, lib=libraries[-1])
        torch.library.register_autograd(
            name, backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs), lib=libraries[-1]
        )
        return torch.ops.test_operator_gates.square

    yield make
    for library in libraries:
        library._destroy()


def test_a_right_operator_passes(squares):
    operator = operator_gates.overload(squares())
    assert "without data" in operator_gates.judge_fake(operator, CASES)
    assert "2 sizes" in operator_gates.judge_gradient(operator, CASES, "cpu")


@pytest.mark.parametrize(
    "fake, says",
    [
        (None, "it has no fake"),
        (lambda x: x.new_empty(3), r"has the shape \(3,\)"),
        (lambda x: x.new_empty(x.shape, dtype=torch.float16), "should be torch.float32"),
        (lambda x: torch.empty(x.shape), "device=x.device"),
        (lambda x: x.new_empty(x.shape[::-1]).T, "results are contiguous"),
        (lambda x: x[x.argmax()], "without data it raised"),
    ],
)
def test_a_fake_that_lies_is_found(squares, fake, says):
    with pytest.raises(GradeFailed, match=says):
        operator_gates.judge_fake(operator_gates.overload(squares(fake)), CASES)


def test_a_wrong_gradient_is_found(squares):
    operator = operator_gates.overload(squares(backward=lambda ctx, dy: ctx.saved_tensors[0] * dy))
    with pytest.raises(GradeFailed, match="the gradient of input 0"):
        operator_gates.judge_gradient(operator, CASES, "cpu")


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
