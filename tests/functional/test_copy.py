"""copy: the same bits in new memory."""

import math

import pytest
import torch

import quack_lite
from functional.problems import DTYPES, bits, much_memory, normal

pytestmark = pytest.mark.hopper


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 8, 4096, 2**20 + 3, 2**20 + 8])
def test_it_has_the_same_bits(n, dtype):
    x = normal(n, dtype=dtype)
    x[0] = math.nan
    x[-1] = -0.0
    y = quack_lite.copy(x)
    assert y.data_ptr() != x.data_ptr()
    assert torch.equal(bits(y), bits(x))


def test_views():
    x = normal(65, 64)
    assert torch.equal(quack_lite.copy(x.view(-1)[1:4097]), x.view(-1)[1:4097])
    assert torch.equal(quack_lite.copy(x.t()), x.t()) and quack_lite.copy(x.t()).is_contiguous()
    assert torch.equal(quack_lite.copy(x[::2, ::2]), x[::2, ::2])
    assert torch.equal(quack_lite.copy(x[0].expand(9, 64)), x[0].expand(9, 64))
    assert quack_lite.copy(x[:0]).shape == (0, 64)


def test_a_number_without_dimensions():
    assert torch.equal(quack_lite.copy(normal(1)[0]), normal(1)[0])


def test_more_than_two_to_the_31_elements():
    n = 2**31 + 9
    with much_memory(2 * 2 * n + 2**30):
        assert copy_ends(n)


def copy_ends(n):
    """Whether the first and the last elements of n arrive."""
    x = torch.zeros(n, device="cuda", dtype=torch.bfloat16)
    for i in (0, 2**31 - 1, 2**31, n - 1):
        x[i] = 1 + i % 7
    y = quack_lite.copy(x)
    return torch.equal(y[-100:], x[-100:]) and torch.equal(y[:100], x[:100])
