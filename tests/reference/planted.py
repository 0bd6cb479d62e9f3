"""Planted faults: {id: a function that gives (operator, inputs, results)}."""

import math

import torch
import torch.nn.functional as F

from reference.arithmetic import (
    EPS,
    IGNORED,
    halved,
    in_float32,
    inputs,
    labels,
    normal,
    rms_norm,
    rms_norm_backward,
    rows,
    statistics,
    to,
    weights,
)


def sum_in_bfloat16(x):
    total = x[:, :1].bfloat16()
    for column in range(1, x.shape[1]):
        total = total + x[:, column : column + 1].bfloat16()
    return total.float()


def powers(x):
    return (x - x.amax(-1, keepdim=True)).exp()


def softmax_with(total_of, n=1000, dtype=torch.float32):
    x = rows(n, 1.0, dtype)
    p = powers(x.float())
    return "softmax", (x,), ((p / total_of(p)).to(dtype),)


def softmax_of_padded_rows():
    x = rows(1001)
    return "softmax", (x,), (padded(x).softmax(-1)[:, :1001],)


def rms_norm_with(mean_of, n=17):
    x, w = rows(n), weights(n)
    return "rms_norm", (x, w, EPS), (x * (mean_of(x.square()) + EPS).rsqrt() * w,)


def layer_norm_with(statistics_of, x):
    w, b = weights(x.shape[1]), normal(x.shape[1], seed=6)
    mean, rstd = statistics_of(x)
    return "layer_norm", (x, w, b, EPS), ((x - mean[:, None]) * rstd[:, None] * w + b, mean, rstd)


def cancelling(x):
    mean = x.mean(-1)
    return mean, (x.square().mean(-1) - mean.square() + EPS).rsqrt()


def only_rstd_cancels():
    given = x, *_ = inputs("layer_norm", 1000, spread=1.0, offset=1e3)
    y, mean, _ = in_float32("layer_norm", given, torch.float32)
    return "layer_norm", given, (y, mean, cancelling(x)[1])


def padded(x, lanes=8):
    return F.pad(x, (0, -x.shape[1] % lanes))


def counting_padded_lanes(x):
    mean = x.mean(-1)
    return mean, ((padded(x) - mean[:, None]).square().sum(-1) / x.shape[1] + EPS).rsqrt()


def unshifted_lse_with_padding():
    x, target = rows(9, spread=0.1, offset=-3.0), labels(4, 9)
    lse = padded(x).exp().sum(-1).log()
    return "cross_entropy", (x, target, IGNORED), (lse - x.gather(1, target[:, None])[:, 0], lse)


def lse_of_all_but_one():
    x, target = rows(1000, 0.01), labels(4, 1000)
    lse = torch.logsumexp(x[:, :-1], -1)
    return "cross_entropy", (x, target, IGNORED), (lse - x.gather(1, target[:, None])[:, 0], lse)


def with_next_label(name):
    given = inputs(name, 100, torch.bfloat16)
    x, target, *rest = given
    return name, given, in_float32(name, (x, (target + 1) % 100, *rest), torch.bfloat16)


def residual_gradient_before_the_derivative():
    given = dy, dr, r, w, eps = inputs("add_rms_norm_backward", 100, torch.bfloat16)
    dx, dw = rms_norm_backward(*to(torch.float32, (dy + dr, r, w, eps)))
    return "add_rms_norm_backward", given, (dx.bfloat16(), dw)


def norm_of_the_unrounded_sum():
    given = x, r, w, eps = inputs("add_rms_norm", 100, torch.bfloat16)
    total = x.float() + r.float()
    return "add_rms_norm", given, (*rms_norm(total, w, eps), total.bfloat16())


def residual_in_the_wrong_dtype():
    given = x, r, w, eps = inputs("add_rms_norm", 100, torch.bfloat16, torch.float32)
    total = (x.float() + r).bfloat16().float()
    return "add_rms_norm", given, (rms_norm(total, w, eps)[0].bfloat16(), total)


def without_the_last_row(name, output):
    given = inputs(name, 100, m=40)
    results = list(in_float32(name, given, torch.float32))
    results[output] = in_float32(name, halved(name, given, slice(0, -1)), torch.float32)[output]
    return name, given, tuple(results)


def wrong_mean_in_backward(name):
    given = inputs(name, 17)
    dy, x, w, *_ = given
    dx, *sums = in_float32(name, given, torch.float32)
    g = dy * w
    rstd = statistics(x)[1][:, None] if name == "layer_norm_backward" else rms_of(x)
    return name, given, (dx + rstd * g.mean(-1, keepdim=True) / 18, *sums)


def rms_of(x):
    return (x.square().mean(-1, keepdim=True) + EPS).rsqrt()


def spread_of_all_but_one():
    given = inputs("smoothed_cross_entropy", 1000)
    loss, lse, spread = in_float32("smoothed_cross_entropy", given, torch.float32)
    x, _, w, _ = given
    return "smoothed_cross_entropy", given, (loss, lse, spread - w[-1] * (lse - x[:, -1]))


def gradient_with_the_bfloat16_sum():
    given = dy, y = inputs("softmax_backward", 500, torch.bfloat16, spread=1.0)
    total = sum_in_bfloat16(y.float() * dy.float())
    return "softmax_backward", given, ((y.float() * (dy.float() - total)).bfloat16(),)


def silu_without_its_second_term():
    given = dy, gate, up = inputs("swiglu_backward", 100, torch.bfloat16)
    p = gate.float().sigmoid()
    return "swiglu_backward", given, ((dy * up * p).bfloat16(), (dy * gate * p).bfloat16())


def swiglu_in_bfloat16():
    given = gate, up = inputs("swiglu", 1000, torch.bfloat16)
    return "swiglu", given, (F.silu(gate) * up,)


def maximum_scaled_before_it_is_subtracted():
    x = rows(256) + 30_000
    scaled = x * math.log2(math.e)
    p = torch.exp2(scaled - scaled.amax(-1, keepdim=True))
    return "softmax", (x,), (p / p.sum(-1, keepdim=True),)


NARROW = torch.tensor([[80000.0, 80001.0, 80002.0, 80003.0]])
FAULTS = {
    "softmax: sum in bfloat16": lambda: softmax_with(sum_in_bfloat16, dtype=torch.bfloat16),
    "softmax: sum misses one": lambda: softmax_with(lambda p: p[:, :-1].sum(-1, keepdim=True)),
    "softmax: padded lanes": softmax_of_padded_rows,
    "softmax: scaled maximum": maximum_scaled_before_it_is_subtracted,
    "softmax_backward: sum in bfloat16": gradient_with_the_bfloat16_sum,
    "rms_norm: n + 1": lambda: rms_norm_with(lambda x: x.sum(-1, keepdim=True) / 18),
    "rms_norm: misses one": lambda: rms_norm_with(lambda x: x[:, :-1].sum(-1, keepdim=True) / 1000, 1000),
    "rms_norm: sum in bfloat16": lambda: rms_norm_with(lambda x: sum_in_bfloat16(x) / 500, 500),
    "layer_norm: cancels": lambda: layer_norm_with(cancelling, NARROW),
    "layer_norm: cancels, 1e4 + noise": lambda: layer_norm_with(cancelling, rows(1000, 1.0, offset=1e4)),
    "layer_norm: only rstd cancels": only_rstd_cancels,
    "layer_norm: padded lanes": lambda: layer_norm_with(counting_padded_lanes, rows(17, 1.0, offset=1000.0)),
    "cross_entropy: exp(0) of padded lanes": unshifted_lse_with_padding,
    "cross_entropy: misses one": lse_of_all_but_one,
    "cross_entropy: label off by one": lambda: with_next_label("cross_entropy"),
    "cross_entropy_backward: label off by one": lambda: with_next_label("cross_entropy_backward"),
    "smoothed_cross_entropy: label off by one": lambda: with_next_label("smoothed_cross_entropy"),
    "smoothed_cross_entropy: misses one": spread_of_all_but_one,
    "smoothed_cross_entropy_backward: label": lambda: with_next_label("smoothed_cross_entropy_backward"),
    "add_rms_norm: norm of the unrounded sum": norm_of_the_unrounded_sum,
    "add_rms_norm: residual's dtype": residual_in_the_wrong_dtype,
    "add_rms_norm_backward: residual gradient first": residual_gradient_before_the_derivative,
    "rms_norm_backward: last row": lambda: without_the_last_row("rms_norm_backward", 1),
    "add_rms_norm_backward: last row": lambda: without_the_last_row("add_rms_norm_backward", 1),
    "layer_norm_backward: last row of dw": lambda: without_the_last_row("layer_norm_backward", 1),
    "layer_norm_backward: last row of db": lambda: without_the_last_row("layer_norm_backward", 2),
    "layer_norm_backward: n + 1": lambda: wrong_mean_in_backward("layer_norm_backward"),
    "rms_norm_backward: n + 1": lambda: wrong_mean_in_backward("rms_norm_backward"),
    "swiglu: gate rounded": swiglu_in_bfloat16,
    "swiglu_backward: second term": silu_without_its_second_term,
}
