"""The cases, guard regions and the value rule, with torch on the CPU in place of a kernel: right, and planted wrong."""

import pytest
import torch

from quack_lite import catalog, tiling
from quack_lite.evidence import values
from quack_lite.evidence.cases import cases, lengths, middle, padded, tool_cases

SMALL = [kernel for kernel in catalog.listed() if kernel.plan.capacity <= 4096]
SOFTMAX = [kernel for kernel in SMALL if kernel.operator == "softmax"]
COPY = [kernel for kernel in SMALL if kernel.operator == "copy"]


def softmax(x, y):
    y.copy_(torch.softmax(x.double(), -1))


def copy(x, y):
    values.bits(y).copy_(values.bits(x))


@pytest.mark.parametrize("kernel", SOFTMAX[::3], ids=lambda kernel: kernel.name)
def test_a_right_softmax_passes(kernel):
    errors, problems = values.check(kernel, softmax, cases(kernel), device="cpu")
    assert problems == []
    assert max(errors.values()) <= 1


@pytest.mark.parametrize("kernel", COPY, ids=lambda kernel: kernel.name)
def test_a_right_copy_passes(kernel):
    assert values.check(kernel, copy, cases(kernel), device="cpu")[1] == []


def bfloat16_sum(x, y):
    powers = (x.float() - x.float().amax(-1, keepdim=True)).exp()
    y.copy_(powers / powers.bfloat16().sum(-1, keepdim=True).bfloat16().float())


def nan_from_nothing(x, y):
    """Two halves, each with its own maximum, -inf or not, combined without care."""
    softmax(x, y)
    cut = x.shape[1] // 2 + 1
    empty = (x[:, cut:] == -torch.inf).all(-1) if cut < x.shape[1] else torch.zeros(len(x), dtype=torch.bool)
    y[empty] = torch.nan


def half_grid(x, y):
    rows = (len(x) + 1) // 2
    softmax(x[:rows], y[:rows])


def into_the_padding(x, y):
    softmax(x, y)
    y.as_strided((len(y), y.shape[1] + 1), y.stride(), y.storage_offset())[:, -1] = 0


def reads_the_padding(x, y):
    wide = x.as_strided((len(x), x.shape[1] + 1), x.stride(), x.storage_offset())
    y.copy_(torch.softmax(wide.double(), -1)[:, :-1])


def no_maximum(x, y):
    powers = x.float().exp()
    y.copy_(powers / powers.sum(-1, keepdim=True))


def other_bits_in_a_batch(x, y):
    softmax(x, y)
    y[-1, -1] = torch.nextafter(y[-1, -1], torch.tensor(2.0, dtype=y.dtype)) if len(y) > 1 else y[-1, -1]


@pytest.mark.parametrize(
    "fault, says",
    [
        (bfloat16_sum, "of the tolerance"),
        (nan_from_nothing, "inf of the tolerance"),
        (half_grid, "of the output were not written"),
        (into_the_padding, "outside the output were written"),
        (reads_the_padding, "of the tolerance"),
        (no_maximum, "of the tolerance"),
        (other_bits_in_a_batch, "a row alone has other bits"),
    ],
)
def test_a_planted_fault_is_caught(fault, says):
    kernel = next(kernel for kernel in SOFTMAX if (kernel.dtype, kernel.plan.vector) == ("float32", 1))
    problems = values.check(kernel, fault, cases(kernel), device="cpu")[1]
    assert any(says in problem for problem in problems)


def test_a_copy_that_runs_over_its_end_is_caught():
    def one_more(x, y):
        long_x, long_y = (tensor.as_strided((len(tensor) + 1,), (1,)) for tensor in (x, y))
        long_y.copy_(long_x)

    problems = values.check(COPY[0], one_more, cases(COPY[0]), device="cpu")[1]
    assert any("1 elements outside the output were written" in problem for problem in problems)


def test_a_copy_with_one_other_bit_is_caught():
    def rounded(x, y):
        copy(x, y)
        values.bits(y)[-1] ^= 1

    problems = values.check(COPY[0], rounded, cases(COPY[0]), device="cpu")[1]
    assert any("the copy has other bits" in problem for problem in problems)


@pytest.mark.parametrize("kernel", catalog.listed(), ids=lambda kernel: kernel.name)
def test_the_cases_belong_to_the_kernel_and_fit_its_loads(kernel):
    for case in (*cases(kernel), *tool_cases(kernel)):
        assert case.pad % kernel.plan.vector == case.start % kernel.plan.vector == 0
        if kernel.operator == "softmax":
            assert case.n % kernel.plan.vector == 0
            bits = 32 if kernel.dtype == "float32" else 16
            alignment = 1 if kernel.plan.vector == 1 else 128 // bits
            assert tiling.plan_row(case.n, bits, alignment) == kernel.plan
    assert any(case.start % 2 for case in cases(kernel)) == (kernel.plan.vector == 1)


def test_one_element_plans_see_each_remainder_by_8_with_padded_rows():
    for plan in tiling.plans(1):
        assert {n % 8 for n in padded(plan)} == set(range(1, 8))
        shortest, longest = lengths(plan)
        assert shortest < middle(plan) < longest
