"""Unusual contents of an operator's inputs; each is a kind of number that a fault shows at."""

import math

from quack_lite.evidence.operands import subject

ROWS = 8


def of(operator: str) -> tuple:
    """The changes that suit an operator."""
    name = operator.removesuffix("_backward")
    found = {"swiglu": GATES}.get(name) or (NORMS if name.endswith("norm") else LOGITS)
    if name.endswith("cross_entropy"):
        found += LABELS
    return found + ALONE.get(operator, ())


def right_half_masked(made):
    x = subject(made)
    x[:, x.shape[1] // 2 + 1 :] = -math.inf


def left_half_masked(made):
    x = subject(made)
    x[:, : x.shape[1] // 2] = -math.inf


def every_second_masked(made):
    subject(made)[:, 1::2] = -math.inf


def unusual_rows(made):
    """Rows of -inf, with a NaN, with +inf, with one finite number at an end."""
    x = subject(made)
    x[0] = -math.inf
    x[1, -1] = math.nan
    x[2, 0] = math.inf
    x[3, :-1] = -math.inf
    x[4, 1:] = -math.inf


def large_values(made):
    """Up to 60000, which float16 still holds."""
    subject(made).clamp_(-12, 12).mul_(5000)


def far_below_zero(made):
    """Whoever takes a 0 for an element that is not there gets a sum far too large."""
    subject(made).sub_(200)


def equal_values(made):
    subject(made).fill_(1)


def far_from_zero(made):
    """10,000 and noise: the mean of squares less the square of the mean has lost it."""
    subject(made).add_(10_000)


def mean_of_1000(made):
    """Whoever counts an element that is not there adds 1000 squared to the variance."""
    subject(made).add_(1000)


def neighbours_at_60000(made):
    x = subject(made)
    for k in range(4):
        x[:, k::4] = 60_000 + k


def all_at_300(made):
    """Their squares exceed float16."""
    subject(made).sign_().mul_(300)


def all_at_30000(made):
    subject(made).sign_().mul_(30_000)


def zeros(made):
    subject(made).zero_()


def saturated_gates(made):
    """Where the sigmoid is 0 or 1 in float32, or nearly."""
    gate = made["gate"]
    for k, value in enumerate((-120, -80, -20, 0, 20, 80, 120)):
        gate[:, k::7] = value


def unusual_gates(made):
    made["gate"][0, 0] = made["up"][1, -1] = math.nan
    made["gate"][2, 0] = made["up"][3, -1] = math.inf
    made["gate"][4, -1] = -math.inf


def all_ignored(made):
    made["target"].fill_(made["ignore_index"])


def a_class_ignored(made):
    """A label that could be looked up is the one to ignore."""
    made["ignore_index"] = int(made["target"][0])


def minus_one_ignored(made):
    made["ignore_index"] = -1


def labels_outside(made):
    """Just outside, far outside, and of no class in either half of their bits."""
    n = made["shape"][1]
    for row, label in enumerate((n, n + 1, -1, -n, 2**31, 2**32, -(2**63), 2**63 - 1)):
        made["target"][row] = label


def labels_at_the_ends(made):
    made["target"][0::2] = 0
    made["target"][1::2] = made["shape"][1] - 1


def nan_in_rows_without_a_class(made):
    """Nothing of an ignored row shows."""
    made["target"][0::4] = made["ignore_index"]
    made["target"][1::4] = -1
    subject(made)[0::4] = subject(made)[1::4, :1] = math.nan


def nan_and_inf_elements(made):
    x = made["x"]
    x[:, ::3] = math.nan
    x[:, 1::3] = math.inf
    x[:, 2::3] = -0.0


MASKS = (right_half_masked, left_half_masked, every_second_masked)
LOGITS = (*MASKS, unusual_rows, large_values, far_below_zero, equal_values)
NORMS = (
    unusual_rows, far_from_zero, mean_of_1000, neighbours_at_60000, all_at_300, all_at_30000, zeros, equal_values
)  # fmt: skip
GATES = (saturated_gates, zeros)
ALONE = {
    "swiglu": (unusual_gates,),
    **dict.fromkeys(
        ("cross_entropy", "smoothed_cross_entropy", "cross_entropy_backward"), (nan_in_rows_without_a_class,)
    ),
}
LABELS = (all_ignored, a_class_ignored, minus_one_ignored, labels_outside, labels_at_the_ends)
