"""The cases, guard regions and the value rule, with torch on the CPU in place of a kernel: right, and planted wrong."""

import re

import pytest
import stand_ins
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from quack_lite import catalog, reference, tiling
from quack_lite.evidence import cases as the_cases
from quack_lite.evidence import delay, operands, tools, values, worker
from quack_lite.evidence.cases import cases, middle, odd, tool_cases

LENGTHS = {"first": (1, 96), "later": (97, 200), "any": (1, 300)}
VECTOR = {"float32": 4, "float16": 8, "bfloat16": 8}
GROUPS = 3


def kernel_of(operator, dtype="bfloat16", length="first"):
    """A kernel as the list could hold it, whose rows are short."""
    vector = VECTOR[dtype.split("+")[0]]
    turns = (2, GROUPS) if "norm" in operator else (0, 0)
    vectors, rows = {"first": (2, 4), "later": (4, 1), "any": (1, 1)}[length]
    return catalog.Kernel(operator, dtype, tiling.RowPlan(vector, vectors, 8, rows, 1, *turns))


def length_of(kernel):
    return LENGTHS[{2: "first", 4: "later", 1: "any"}[kernel.plan.vectors]]


def partials_of(kernel, m, n, device):
    needed = -(-m // kernel.plan.rows)
    return (min(needed, GROUPS) if kernel.plan.stages else needed) * kernel.plan.rows


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors, and other tests beside this one: threads would wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def a_list_of_short_rows(monkeypatch):
    monkeypatch.setattr(the_cases, "MANY_ROWS", 71)
    monkeypatch.setattr(catalog, "lengths", length_of, raising=False)
    monkeypatch.setattr(catalog, "partials", partials_of, raising=False)


def problems_of(operator, built, dtype="bfloat16", length="first"):
    kernel = kernel_of(operator, dtype, length)
    errors, problems = values.check(kernel, built, cases(kernel, "cpu"), device="cpu")
    assert problems or max(errors.values()) <= 1
    return problems


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("operator", operands.NAMES)
def test_a_right_operator_passes(operator, dtype):
    assert problems_of(operator, getattr(stand_ins, operator), dtype) == []


@pytest.mark.parametrize("operator", ["cross_entropy", "swiglu_backward"])
def test_a_right_operator_passes_that_goes_along_its_rows(operator):
    assert problems_of(operator, getattr(stand_ins, operator), length="any") == []


@pytest.mark.parametrize("operator", ["softmax", "rms_norm", "layer_norm_backward", "swiglu", "cross_entropy"])
def test_a_right_operator_passes_in_float16_on_longer_rows(operator):
    assert problems_of(operator, getattr(stand_ins, operator), "float16", "later") == []


@pytest.mark.parametrize("operator", ["add_rms_norm", "add_rms_norm_backward"])
def test_a_residual_of_another_dtype_passes(operator):
    assert problems_of(operator, getattr(stand_ins, operator), "bfloat16+float32") == []


@pytest.mark.parametrize("operator", operands.NAMES)
def test_a_right_operator_passes_under_a_tool(operator):
    kernel = kernel_of(operator)
    assert tools.launch_watched(kernel, getattr(stand_ins, operator), "cpu") == []
    (problem, *_) = tools.launch_watched(kernel, lambda *tensors: None, "cpu")
    assert "not launched" in problem


@pytest.mark.parametrize("operator", operands.NAMES)
def test_under_a_tool_every_stage_is_used_again_by_short_launches(monkeypatch, operator):
    monkeypatch.undo()  # the list as it is
    for kernel in (kernel for kernel in catalog.listed() if kernel.operator == operator):
        plan, found = kernel.plan, tool_cases(kernel)
        assert all(case.rows * case.n < 2**23 for case in found)
        if plan.stages:
            (again,) = found
            shortest, longest = catalog.lengths(kernel)
            assert again.rows > plan.stages * plan.rows and shortest <= again.n <= longest
            assert (again.n + again.pad) % plan.vector == 0 and (again.n + again.start) % plan.vector == plan.vector - 1
            assert the_cases.watched_at_once(kernel, again) == plan.rows


def test_under_a_tool_rows_that_are_lost_are_seen():
    problems = tools.launch_watched(kernel_of("rms_norm_backward", "float32"), rounded_down_rows, "cpu")
    assert problems[-1].startswith("every stage again: wrong values")


class Copied(TorchDispatchMode):
    """Records what is copied."""

    def __init__(self):
        super().__init__()
        self.shapes = []

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        if function is torch.ops.aten.copy_.default:
            assert all(x.is_contiguous() for x in arguments[:2])
            self.shapes.append(tuple(arguments[0].shape))
        return function(*arguments, **(options or {}))


def test_under_a_tool_padded_rows_are_copied_one_by_one_and_the_padding_is_left():
    buffer = torch.zeros(16)
    padded = buffer.as_strided((3, 4), (5, 1), 1)
    with Copied() as copied:
        tools.copy(torch.ones(3, 4), padded)
        assert torch.equal(tools.on_the_cpu(padded), torch.ones(3, 4))
        tools.copy(torch.ones(3, 4), torch.zeros(3, 4))
    assert copied.shapes == [*[(4,)] * 6, (3, 4)]
    assert buffer.sum() == 12


def test_a_worker_computes_in_one_thread(monkeypatch, capfd):
    torch.set_num_threads(2)
    monkeypatch.setitem(worker.STEPS, "digest", lambda kernel, made: {"threads": torch.get_num_threads()})
    worker.main(["digest", catalog.listed()[0].name])
    assert '"threads": 1}' in capfd.readouterr().out


def bfloat16_sum(x, y):
    powers = (x.float() - x.float().amax(-1, keepdim=True)).exp()
    y.copy_(powers / powers.bfloat16().sum(-1, keepdim=True).bfloat16().float())


def nan_from_nothing(x, y):
    """Two halves, each with its own maximum, -inf or not, combined without care."""
    stand_ins.softmax(x, y)
    cut = x.shape[1] // 2 + 1
    empty = (x[:, cut:] == -torch.inf).all(-1) if cut < x.shape[1] else torch.zeros(len(x), dtype=torch.bool)
    y[empty] = torch.nan


def half_grid(x, y):
    rows = (len(x) + 1) // 2
    stand_ins.softmax(x[:rows], y[:rows])


def into_the_padding(x, y):
    stand_ins.softmax(x, y)
    y.as_strided((len(y), y.shape[1] + 1), y.stride(), y.storage_offset())[:, -1] = 0


def reads_the_padding(x, y):
    wide = x.as_strided((len(x), x.shape[1] + 1), x.stride(), x.storage_offset())
    y.copy_(torch.softmax(wide.double(), -1)[:, :-1])


def no_maximum(x, y):
    powers = x.float().exp()
    y.copy_(powers / powers.sum(-1, keepdim=True))


def other_bits_in_a_batch(x, y):
    stand_ins.softmax(x, y)
    y[-1, -1] = torch.nextafter(y[-1, -1], torch.tensor(2.0, dtype=y.dtype)) if len(y) > 1 else y[-1, -1]


def writes_over_its_input(x, y):
    stand_ins.softmax(x, y)
    x.copy_(y)


def one_stride_for_both(x, y):
    stand_ins.softmax(x, y.as_strided(y.shape, x.stride(), y.storage_offset()))


def padding_in_the_sum(x, target, loss, lse, ignore_index):
    """Three lanes past the end count as zeros."""
    stand_ins.cross_entropy(x, target, loss, lse, ignore_index)
    wide = torch.nn.functional.pad(x.double(), (0, 3))
    loss += (torch.logsumexp(wide, -1) - torch.logsumexp(x.double(), -1)).float() * (target != ignore_index)


def label_of_32_bits(x, target, loss, lse, ignore_index):
    stand_ins.cross_entropy(x, target.int().long(), loss, lse, ignore_index)


def nearest_label(x, target, loss, lse, ignore_index):
    n = x.shape[1]
    moved = torch.where(target == ignore_index, target, target.clamp(0, n - 1))
    stand_ins.cross_entropy(x, moved, loss, lse, ignore_index)


def ignored_as_a_label(x, target, loss, lse, ignore_index):
    stand_ins.cross_entropy(x, target, loss, lse, -100)


def gradient_of_labels_outside(x, target, lse, scale, dx, ignore_index):
    stand_ins.cross_entropy_backward(x, target, lse, scale, dx, ignore_index)
    outside = ~stand_ins.known(target, x.shape[1])
    dx[outside] = (x.double() - lse.double()[:, None]).exp().to(dx.dtype)[outside]


def first_scale_for_all(x, target, lse, scale, dx, ignore_index):
    stand_ins.cross_entropy_backward(x, target, lse, scale[:1].expand_as(scale), dx, ignore_index)


def overwritten_before_it_is_read(x, target, lse, scale, dx, ignore_index):
    if dx.data_ptr() == x.data_ptr():
        lse = lse + 1
    stand_ins.cross_entropy_backward(x, target, lse, scale, dx, ignore_index)


def padding_in_the_variance(x, weight, bias, y, mean, rstd, eps, groups):
    """Three lanes past the end count as (0 - mean) squared."""
    stand_ins.layer_norm(x, weight, bias, y, mean, rstd, eps, groups)
    away = torch.nn.functional.pad(x.double(), (0, 3)) - x.double().mean(-1, keepdim=True)
    rstd.copy_((away.square().sum(-1) / x.shape[1] + eps).rsqrt())


def difference_of_means(x, weight, bias, y, mean, rstd, eps, groups):
    stand_ins.layer_norm(x, weight, bias, y, mean, rstd, eps, groups)
    squares = x.float().square().mean(-1) - x.float().mean(-1).square()
    rstd.copy_((squares + eps).rsqrt())


def mean_too_long(x, weight, bias, y, mean, rstd, eps, groups):
    stand_ins.layer_norm(x, weight, bias, y, mean, rstd, eps, groups)
    mean.as_strided((len(mean) + 1,), (1,), mean.storage_offset())[-1] = 0


def squares_in_float16(x, weight, y, eps, groups):
    x = x.double() * (x.half().square().double().mean(-1, keepdim=True) + eps).rsqrt()
    y.copy_(x * weight.double())


def rounded_down_rows(dy, x, weight, dx, dweight, eps):
    """Rows that do not fill a turn of all groups are lost."""
    stand_ins.rms_norm_backward(dy, x, weight, dx, dweight, eps)
    whole = len(x) // len(dweight) * len(dweight)
    stand_ins.rms_norm_backward(dy[:whole], x[:whole], weight, dx[:whole], dweight, eps)


def groups_without_rows_left_out(dy, x, weight, dx, dweight, eps):
    stand_ins.rms_norm_backward(dy, x, weight, dx, dweight[: max(1, len(dweight) - 1)], eps)


def atomics(dy, x, weight, dx, dweight, eps):
    stand_ins.rms_norm_backward(dy, x, weight, dx, dweight, eps)
    dweight += 1e-6 * torch.rand(())


def residual_gradient_before(dy, dresidual, residual, weight, dsum, dweight, eps):
    zeros = torch.zeros_like(dresidual)
    stand_ins.add_rms_norm_backward(dy + dresidual, zeros, residual, weight, dsum, dweight, eps)


def norm_of_the_unrounded_sum(x, residual, weight, y, new_residual, eps, groups):
    new_residual.copy_(x.float() + residual.float())
    stand_ins.rms_norm(3 * (x.double() + residual.double()), weight, y, eps, groups)


def sigmoid_of_exp(gate, up, y):
    powers = gate.float().exp()
    y.copy_(gate * powers / (1 + powers) * up)


OVER_TOLERANCE = "of the tolerance"


@pytest.mark.parametrize(
    "operator, fault, says",
    [
        ("softmax", bfloat16_sum, OVER_TOLERANCE),
        ("softmax", nan_from_nothing, "inf of the tolerance"),
        ("softmax", half_grid, "y: .* elements? of the output got no value"),
        ("softmax", into_the_padding, "y: .* elements? outside the output got a value"),
        ("softmax", reads_the_padding, OVER_TOLERANCE),
        ("softmax", no_maximum, OVER_TOLERANCE),
        ("softmax", other_bits_in_a_batch, "a row alone has other bits"),
        ("softmax", writes_over_its_input, "x: the input"),
        ("softmax", one_stride_for_both, "outside the output"),
        ("cross_entropy", padding_in_the_sum, "far below zero .* of the tolerance"),
        ("cross_entropy", label_of_32_bits, "inf of the tolerance"),
        ("cross_entropy", nearest_label, "inf of the tolerance"),
        ("cross_entropy", ignored_as_a_label, OVER_TOLERANCE),
        ("cross_entropy_backward", gradient_of_labels_outside, OVER_TOLERANCE),
        ("cross_entropy_backward", first_scale_for_all, OVER_TOLERANCE),
        ("cross_entropy_backward", overwritten_before_it_is_read, "written in place it has other bits"),
        ("layer_norm", padding_in_the_variance, "mean of 1000 .* of the tolerance"),
        ("layer_norm", difference_of_means, "far from zero .* of the tolerance"),
        ("layer_norm", mean_too_long, "mean: 1 element outside the output"),
        ("rms_norm", squares_in_float16, "all at 300 .* of the tolerance"),
        ("rms_norm_backward", rounded_down_rows, OVER_TOLERANCE),
        ("rms_norm_backward", groups_without_rows_left_out, "dweight: .* of the output got no value"),
        ("rms_norm_backward", atomics, "two runs gave different bits"),
        ("add_rms_norm_backward", residual_gradient_before, OVER_TOLERANCE),
        ("swiglu", sigmoid_of_exp, "saturated gates .* of the tolerance"),
    ],
)
def test_a_planted_fault_is_caught(operator, fault, says):
    problems = problems_of(operator, fault, "float16" if "float16" in fault.__name__ else "float32")
    assert any(re.search(says, problem) for problem in problems), problems


def test_a_copy_that_runs_over_its_end_is_caught():
    def one_more(x, y):
        long_x, long_y = (tensor.as_strided((len(tensor) + 1,), (1,)) for tensor in (x, y))
        stand_ins.copy(long_x, long_y)

    assert any("1 element outside the output got a value" in problem for problem in problems_of("copy", one_more))


def test_a_copy_with_one_other_bit_is_caught():
    def rounded(x, y):
        stand_ins.copy(x, y)
        stand_ins.bits(y)[-1] ^= 1

    assert any("the copy has other bits" in problem for problem in problems_of("copy", rounded))


@pytest.mark.parametrize("operator", operands.NAMES)
def test_names_and_numbers_are_those_of_the_reference(operator):
    form = operands.form(kernel_of(operator))
    known = reference.find(operator)
    assert (len(form.inputs), len(form.outputs)) == (len(known.inputs), len(known.outputs))


def test_contents_are_the_same_each_time_and_follow_from_one_another():
    kernel = kernel_of("cross_entropy_backward")
    first, second = (operands.contents(kernel, 40, 33) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.inputs, second.inputs, strict=True))
    x, target, lse, scale = first.inputs
    assert torch.allclose(lse, torch.logsumexp(x.double(), -1).float())
    assert scale.any() and not scale.all()
    shares = operands.contents(kernel_of("smoothed_cross_entropy_backward"), 40, 33).inputs[4:]
    outside = (target < 0) | (target >= 33)
    assert outside.any() and all(share[~outside].any() and not share[outside].any() for share in shares)
    assert (target == -100).any() and (target == 33).any() and (target == 2**32).any()


def test_the_cases_see_each_place_of_a_vector():
    for dtype, vector in VECTOR.items():
        seen = cases(kernel_of("softmax", dtype), "cpu")
        plain = {case.n % vector for case in seen if not case.pad and not case.start}
        padded = {case.n % vector for case in seen if (case.n + case.pad) % vector == 0 and case.pad}
        assert plain >= set(range(vector)) and padded >= set(range(1, vector))
        assert {case.start for case in seen} == set(range(vector))
        assert {case.n for case in seen} >= {*range(1, 2 * vector + 2), 96}
        assert any(case.start + case.n <= vector and case.start for case in seen)
        assert any(case.start + case.n == vector + 1 for case in seen)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("operator", operands.NAMES)
def test_the_cases_stay_within_the_plan_and_have_names_of_their_own(operator, length):
    kernel = kernel_of(operator, length=length)
    found = [*cases(kernel, "cpu"), *tool_cases(kernel)]
    names = [case.name for case in cases(kernel, "cpu")]
    assert len(set(names)) == len(names)
    if operator != "copy":
        shortest, longest = catalog.lengths(kernel)
        assert all(shortest <= case.n <= longest for case in found)
        assert shortest <= odd(kernel) <= longest and shortest <= middle(kernel) <= longest


def test_rows_for_a_fixed_number_of_groups_end_unevenly():
    kernel = kernel_of("rms_norm_backward")
    rows = {case.rows for case in cases(kernel, "cpu")}
    at_once = GROUPS * kernel.plan.rows
    assert rows >= {1, at_once, at_once + 1, (kernel.plan.stages + 2) * at_once + 1}


@pytest.mark.parametrize("operator", ["softmax", "layer_norm_backward", "cross_entropy"])
def test_launches_with_other_bits_are_counted(operator):
    trial = delay.Trial(kernel_of(operator), 96, delay.ROWS, "cpu")
    right = getattr(stand_ins, operator)
    launches = []

    def sometimes(*tensors):
        right(*tensors)
        launches.append(tensors)
        if len(launches) % 5 == 0:
            outputs = tensors[len(trial.inputs) : len(tensors) - len(trial.numbers)]
            outputs[-1].view(-1)[-1] += 1

    wanted = trial.results(right, 1)
    assert trial.wrong(right, wanted, 2 * delay.SLOTS + 1) == 0
    assert trial.wrong(sometimes, wanted, 2 * delay.SLOTS + 1) == len(launches) // 5
    assert len(launches) == 2 * delay.SLOTS + 1
