"""softmax and copy: values, shapes, strides, alignment and what bad input gets."""

import math

import pytest
import torch
import torch.nn.functional as F

import quack_lite
from quack_lite import reference

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
LENGTHS = [
    1,
    2,
    3,
    7,
    17,
    31,
    32,
    33,
    64,
    127,
    192,
    256,
    768,
    1000,
    1023,
    1024,
    1128,
    3584,
    4096,
    5120,
    7168,
    8191,
    8192,
]
LENGTHS += [
    16384,
    32767,
    32768,
    50257,
    65536,
    65544,
    100352,
    128256,
    131072,
    151936,
    200064,
    262144,
    262208,
    299993,
    300000,
]
WRONG_ELSEWHERE = [100352, 151936, 200064, 262208]  # a well-known library returns NaN for every row of these


def logits(*shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return (4 * torch.randn(*shape, device="cuda", generator=generator)).to(dtype)


def assert_softmax(x, result):
    assert result.shape == x.shape and result.dtype == x.dtype
    assert reference.worst_error("softmax", x, result) <= 1


@pytest.mark.hopper
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", LENGTHS)
def test_softmax_is_within_the_tolerance(n, dtype):
    x = logits(5, n, dtype=dtype)
    assert_softmax(x, quack_lite.softmax(x))


@pytest.mark.hopper
@pytest.mark.parametrize("n", [*WRONG_ELSEWHERE, 32768, 4096, 50257])
def test_softmax_is_right_with_half_of_a_row_masked(n):
    x = logits(3, n)
    x[:, n // 2 :] = -math.inf
    x[1] = x[1].flip(0)
    assert_softmax(x, quack_lite.softmax(x))


@pytest.mark.hopper
@pytest.mark.parametrize("remainder", range(8))
def test_a_padded_row_keeps_its_padding_and_does_not_read_it(remainder):
    n = 1000 + remainder
    rows = torch.full((4, 1008), math.nan, device="cuda", dtype=torch.bfloat16)
    rows[:, :n] = logits(4, n)
    assert_softmax(rows[:, :n], quack_lite.softmax(rows[:, :n]))
    assert rows[:, n:].isnan().all()


@pytest.mark.hopper
@pytest.mark.parametrize("n", [8, 1000, 4096, 65536])
def test_a_view_that_starts_at_an_odd_element(n):
    x = logits(3 * n + 1)[1:].view(3, n)
    assert_softmax(x, quack_lite.softmax(x))


@pytest.mark.hopper
@pytest.mark.parametrize(
    "make",
    [
        lambda: logits(6, 512)[::2],
        lambda: logits(4, 1024)[:, ::2],
        lambda: logits(512, 5).t(),
        lambda: logits(1, 256).expand(7, 256),
        lambda: logits(2, 3, 4, 128).transpose(0, 2),
        lambda: logits(10, 7, 64)[2:9, 1:6],
        lambda: logits(3),
        lambda: logits(5, 1)[::2],
        lambda: logits(4, 4096)[1:2],
    ],
    ids=["rows", "columns", "transposed", "expanded", "4-D", "block", "1-D", "one column", "one row"],
)
def test_strided_inputs(make):
    assert_softmax(make(), quack_lite.softmax(make()))


@pytest.mark.hopper
def test_another_dimension():
    x = logits(6, 50, 9)
    assert_softmax(x.movedim(1, -1), quack_lite.softmax(x, 1).movedim(1, -1))
    assert torch.equal(quack_lite.softmax(x, dim=-3), quack_lite.softmax(x, dim=0))


@pytest.mark.hopper
def test_dtype_converts_before():
    x = logits(3, 4096)
    assert torch.equal(quack_lite.softmax(x, dtype=torch.float32), quack_lite.softmax(x.float()))


@pytest.mark.hopper
@pytest.mark.parametrize("shape", [(), (0,), (0, 5), (5, 0), (2, 0, 3)])
def test_shapes_without_rows_or_elements_are_as_in_torch(shape):
    x = torch.zeros(shape, device="cuda")
    ours, torchs = quack_lite.softmax(x), F.softmax(x, -1)
    assert torch.equal(ours, torchs) and ours.shape == torchs.shape


@pytest.mark.hopper
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("n", [5, 4096, 65536])
def test_special_values_are_as_in_torch(n, value):
    x = logits(3, n, dtype=torch.float32)
    x[0, n // 2] = value
    x[1] = value
    assert_softmax(x, quack_lite.softmax(x))
    assert torch.equal(quack_lite.softmax(x).isnan(), F.softmax(x, -1).isnan())


@pytest.mark.hopper
@pytest.mark.parametrize("shape", [(70_000, 64), (65_536, 8), (1, 300_000)])
def test_many_rows_and_one(shape):
    x = logits(*shape)
    assert_softmax(x, quack_lite.softmax(x))


@pytest.mark.hopper
@pytest.mark.parametrize("masked", [False, True], ids=["plain", "half masked"])
def test_the_logits_of_a_language_model(masked):
    m, n = 4096, 151936
    if torch.cuda.mem_get_info()[0] < 4 * m * n * 2:
        pytest.skip("needs 5 GB of free GPU memory")
    x = logits(m, n)
    if masked:
        x[:, n // 2 :] = -math.inf
    result, torchs = quack_lite.softmax(x), F.softmax(x, -1)
    for rows in range(0, m, 256):
        assert_softmax(x[rows : rows + 256], result[rows : rows + 256])
    assert torch.allclose(result, torchs, rtol=2**-7, atol=0)


@pytest.mark.hopper
def test_more_than_two_to_the_31_elements():
    m, n = 525_000, 4096
    if torch.cuda.mem_get_info()[0] < 3 * m * n * 2:
        pytest.skip("needs 13 GB of free GPU memory")
    x = torch.zeros(m, n, device="cuda", dtype=torch.bfloat16)
    sampled = [0, 1, 2**31 // n - 1, 2**31 // n, 2**31 // n + 1, m - 1]
    x[sampled] = logits(len(sampled), n)
    assert_softmax(x[sampled], quack_lite.softmax(x)[sampled])


@pytest.mark.hopper
@pytest.mark.parametrize("n", [1024, 4096, 131072])
def test_the_bits_of_a_row_do_not_depend_on_its_batch(n):
    x = logits(64, n)
    assert torch.equal(quack_lite.softmax(x[17:18]), quack_lite.softmax(x)[17:18])


@pytest.mark.hopper
def test_it_runs_on_the_current_stream():
    x = logits(4096, 4096)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        x.add_(1)
        result = quack_lite.softmax(x)
    stream.synchronize()
    assert_softmax(x, result)


@pytest.mark.hopper
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 7, 8, 4096, 2**20 + 3, 2**20 + 8])
def test_copy(n, dtype):
    x = logits(n, dtype=dtype)
    x[0] = math.nan
    y = quack_lite.copy(x)
    assert y.data_ptr() != x.data_ptr()
    assert torch.equal(y.view(torch.int8), x.view(torch.int8))


@pytest.mark.hopper
def test_copy_of_views():
    x = logits(65, 64)
    assert torch.equal(quack_lite.copy(x.view(-1)[1:4097]), x.view(-1)[1:4097])
    assert torch.equal(quack_lite.copy(x.t()), x.t()) and quack_lite.copy(x.t()).is_contiguous()
    assert quack_lite.copy(x[:0]).shape == (0, 64)


@pytest.mark.hopper
def test_a_row_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="a row has 300001 elements; rows of 1 to 300000"):
        quack_lite.softmax(torch.zeros(1, 300_001, device="cuda"))


@pytest.mark.hopper
def test_an_input_that_requires_grad_is_refused_with_a_way_out():
    x = torch.randn(4, 8, device="cuda", requires_grad=True)
    with pytest.raises(NotImplementedError, match="no backward yet: call it under torch.no_grad"):
        quack_lite.softmax(x)
    with torch.no_grad():
        assert quack_lite.softmax(x).shape == (4, 8)


@pytest.mark.hopper
def test_a_dimension_that_is_not_there():
    with pytest.raises(IndexError, match="dim=2 was given for a tensor of 2 dimensions; allowed is -2 .. 1"):
        quack_lite.softmax(torch.zeros(2, 3, device="cuda"), 2)


@pytest.mark.compile
@pytest.mark.parametrize(
    "arguments, error, sentence",
    [
        (([1.0, 2.0],), TypeError, "a list was given; a torch.Tensor is needed"),
        (
            (torch.zeros(3, dtype=torch.int64),),
            TypeError,
            "torch.int64 was given; float32, float16 and bfloat16 are supported",
        ),
        ((torch.zeros(3), -1, torch.float64), TypeError, "dtype=torch.float64 was given"),
        ((torch.zeros(3),), ValueError, "a tensor on cpu was given; .* move it with .to\\('cuda'\\)"),
    ],
    ids=["list", "dtype", "dtype=", "cpu"],
)
def test_bad_input_says_what_was_given_what_is_allowed_and_what_to_do(arguments, error, sentence):
    with pytest.raises(error, match=f"softmax: .*{sentence}"):
        quack_lite.softmax(*arguments)
