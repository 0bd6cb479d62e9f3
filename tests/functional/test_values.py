"""Every operator, dtype and direction at each row length, and in any place in memory."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functional import problems
from functional.problems import ALL, OPERATORS, normal, placed, problem, run

pytestmark = pytest.mark.hopper

# fmt: off
LENGTHS = [
    1, 2, 3, 7, 17, 31, 32, 33, 64, 127, 192, 256, 768, 1000, 1023, 1024, 1128, 3584, 4096, 5120, 7168, 8191, 8192,
    16384, 32767, 32768, 50257, 65536, 65544, 100352, 128256, 131072, 151936, 200064, 262144, 262208, 299993, 300000,
]
# fmt: on
ROWS = 5


@pytest.mark.parametrize("name, dtype", ALL)
def test_each_row_length_is_within_the_tolerance(name, dtype):
    limit = max(LENGTHS) if name == "copy" else problems.longest(name, dtype, backward=True)
    errors = {}
    for n in LENGTHS:
        tensors = problem(name, ROWS, n, dtype)
        if n <= limit:
            ran = run(name, tensors)
            errors[n, "backward"] = problems.backward_error(name, tensors, ran)
            outputs = ran.outputs
        else:
            outputs = problems.call(name, *tensors)
        assert all(y.is_contiguous() for y in outputs)
        errors[n, "forward"] = problems.forward_error(name, tensors, outputs)
    assert {case: error for case, error in errors.items() if not error <= 1} == {}


@pytest.mark.parametrize("m", [1, 8, 133, 1001])
@pytest.mark.parametrize("name", OPERATORS)
def test_any_number_of_rows(name, m):
    for n in (40, 1000, 1003):
        assert problems.worst(name, problem(name, m, n)) <= 1


@pytest.mark.parametrize("name", OPERATORS)
def test_a_single_row_without_a_batch(name):
    tensors = problem(name, 1, 1000)
    ran = run(name, [x[0] if x.shape[0] == 1 else x for x in tensors])
    whole = run(name, tensors, [dy[None] for dy in ran.sent])
    assert problems.same_bits((*ran.outputs, *ran.gradients), [t.view(-1).view(s.shape) for t, s in alike(whole, ran)])


def alike(whole, ran):
    """Pairs of tensors of two runs."""
    return zip((*whole.outputs, *whole.gradients), (*ran.outputs, *ran.gradients), strict=True)


def storage(x):
    """All of the memory that a tensor is a view of, as integers."""
    return problems.bits(x.as_strided((x.untyped_storage().size() // x.itemsize,), (1,), 0))


# Padding, start, step. With multiples of 8 elements a kernel reads the rows where they are, else a copy of them.
PLACES = st.tuples(
    st.sampled_from([8, 0, 16, 1, 3, 4]), st.sampled_from([8, 0, 16, 1, 7]), st.sampled_from([1, 1, 1, 2])
)


@pytest.mark.parametrize("name, dtype", ALL)
def test_any_place_in_memory(name, dtype):
    @settings(deadline=None, max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(m=st.integers(1, 9), n=st.integers(1, 1100), places=st.lists(PLACES, min_size=6, max_size=6))
    def try_places(m, n, places):
        taken = iter(places)
        tensors = [placed(x, *next(taken)) if x.ndim == 2 else x for x in problem(name, m, n, dtype)]
        before = [storage(x).clone() for x in tensors]
        sent = [normal(*y.shape, seed=5).to(y.dtype) for y in problems.call(name, *tensors)]
        sent = [placed(dy, *next(taken)) if dy.ndim == 2 else dy for dy in sent]
        ran = run(name, tensors, sent)
        assert problems.forward_error(name, tensors, ran.outputs) <= 1
        assert problems.backward_error(name, tensors, ran) <= 1
        assert all(map(torch.equal, before, map(storage, tensors))), "an input or its padding was written"

    try_places()


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "cross_entropy"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 50), (1, 1, 7), (3, 1, 40), (2, 0, 8)])
def test_any_leading_shape(name, shape):
    matrices = problem(name, torch.Size(shape[:-1]).numel(), shape[-1])
    tensors = [x.view(shape) if x.ndim == 2 else x for x in matrices]
    ran = run(name, tensors)
    assert all(y.shape == shape for y in ran.outputs)
    assert [g.shape for g in ran.gradients] == [x.shape for x in tensors]
    whole = run(name, matrices, [dy.view(-1, shape[-1]) for dy in ran.sent])
    assert problems.same_bits([y.view(-1) for y in ran.outputs], [y.view(-1) for y in whole.outputs])
    assert problems.same_bits([g.view(-1) for g in ran.gradients], [g.view(-1) for g in whole.gradients])
