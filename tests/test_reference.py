"""The tolerance lets good float32 arithmetic pass and planted faults not. CPU."""

import math

import pytest
import torch

from quack_lite import reference

DTYPES = [torch.float32, torch.float16, torch.bfloat16]


def rows(n, spread=4.0, dtype=torch.float32):
    return (spread * torch.randn(4, n, generator=torch.Generator().manual_seed(n))).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 100, 1000])
def test_torchs_softmax_passes(n, dtype):
    x = rows(n, dtype=dtype)
    assert reference.worst_error("softmax", x, torch.softmax(x.float(), -1).to(dtype)) <= 1


def test_a_sum_in_bfloat16_fails():
    x = rows(4096, spread=1.0, dtype=torch.bfloat16)
    powers = (x - x.amax(-1, keepdim=True)).exp()
    total = powers[:, :1].clone()
    for column in range(1, 512):
        total += powers[:, column : column + 1]
    fault = powers[:, :512] / total
    assert reference.worst_error("softmax", x[:, :512], fault) > 1


def test_a_sum_that_misses_one_value_fails():
    x = rows(512)
    powers = (x - x.amax(-1, keepdim=True)).exp()
    assert reference.worst_error("softmax", x, powers / powers[:, :-1].sum(-1, keepdim=True)) > 1


def test_a_maximum_that_is_scaled_before_it_is_subtracted_fails_for_large_values():
    x = rows(256) + 30_000
    scaled = x * math.log2(math.e)
    powers = torch.exp2(scaled - scaled.amax(-1, keepdim=True))
    assert reference.worst_error("softmax", x, powers / powers.sum(-1, keepdim=True)) > 1


def test_nan_on_one_side_only_fails():
    x = rows(64)
    result = torch.softmax(x, -1)
    result[0, 0] = math.nan
    assert reference.worst_error("softmax", x, result) == math.inf


def test_a_row_of_nothing_but_minus_infinity_is_nan_and_masked_values_are_zero():
    x = rows(64)
    x[0] = -math.inf
    x[1, 32:] = -math.inf
    result = torch.softmax(x, -1)
    assert reference.worst_error("softmax", x, result) <= 1
    result[1, 40] = 1e-3
    assert reference.worst_error("softmax", x, result) > 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_ulp_is_the_distance_to_the_next_number(dtype):
    y = torch.tensor([1.0, 1.5, 0.75, 3.0, 1000.0], dtype=dtype)
    step = torch.nextafter(y, torch.full_like(y, math.inf)) - y
    assert torch.equal(reference.ulp(y.double(), dtype), step.double())


def test_a_copy_must_be_equal():
    x = rows(64)
    assert reference.worst_error("copy", x, x.clone()) == 0
    x[0, 0] = 1.0
    assert reference.worst_error("copy", x, torch.nextafter(x, x + 1)) > 1


def test_no_operator_has_more_than_eight_roundings():
    assert all(0 <= c <= 8 for c in reference.ROUNDINGS.values())


def test_bytes_moved():
    assert reference.bytes_moved("softmax", (4096, 151936), torch.bfloat16) == 4 * 4096 * 151936
    with pytest.raises(ValueError, match="no operator 'gelu'; there are copy, softmax"):
        reference.bytes_moved("gelu", (1,), torch.float32)
