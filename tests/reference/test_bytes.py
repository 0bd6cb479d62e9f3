"""The bytes that an operator cannot avoid."""

import pytest
import torch

from quack_lite import reference


@pytest.mark.parametrize(
    "name, shape, expected",
    [
        ("copy", (1000,), 2 * 2000),
        ("softmax", (4096, 151936), 2 * 2 * 4096 * 151936),
        ("softmax_backward", (2, 3, 8), 3 * 2 * 48),
        ("rms_norm", (6, 8), 2 * 2 * 48 + 4 * 8),
        ("rms_norm_backward", (6, 8), 3 * 2 * 48 + 2 * 4 * 8),
        ("add_rms_norm", (6, 8), 4 * 2 * 48 + 4 * 8),
        ("layer_norm", (6, 8), 2 * 2 * 48 + 2 * 4 * 8 + 2 * 4 * 6),
        ("layer_norm_backward", (6, 8), 3 * 2 * 48 + 3 * 4 * 8 + 2 * 4 * 6),
        ("cross_entropy", (6, 8), 2 * 48 + 8 * 6 + 2 * 4 * 6),
        ("cross_entropy_backward", (6, 8), 2 * 2 * 48 + 8 * 6 + 2 * 4 * 6),
        ("swiglu_backward", (6, 8), 5 * 2 * 48),
    ],
)
def test_bytes_moved(name, shape, expected):
    assert reference.bytes_moved(name, shape, torch.bfloat16) == expected


def test_bytes_of_weights_and_residuals_of_other_dtypes():
    assert reference.bytes_moved("rms_norm", (6, 8), torch.bfloat16, torch.bfloat16) == 2 * 2 * 48 + 2 * 8
    wide = reference.bytes_moved("add_rms_norm", (6, 8), torch.bfloat16, residual_dtype=torch.float32)
    assert wide == 2 * (2 + 4) * 48 + 4 * 8


def test_an_operator_that_is_not_there():
    with pytest.raises(ValueError, match="no operator 'gelu'; there are copy, softmax, .*swiglu"):
        reference.bytes_moved("gelu", (1,), torch.float32)
    with pytest.raises(ValueError, match="no operator 'gelu'"):
        reference.worst_error("gelu", (), ())
