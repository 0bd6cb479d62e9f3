"""The list of all kernels that the package can launch, and their compilation: once each."""

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import cutlass
import cutlass.cute as cute

from quack_lite import launch, tiling
from quack_lite.kernels import copy, cross_entropy, layer_norm, rms_norm, softmax, swiglu

FLOATS = {"float32": cutlass.Float32, "float16": cutlass.Float16, "bfloat16": cutlass.BFloat16}
MIXED = ("bfloat16+float32",)  # an input in the first, its residual in the second


class Kernel(NamedTuple):
    """One entry of the list."""

    operator: str
    dtype: str
    plan: tiling.RowPlan

    @property
    def name(self) -> str:
        """A readable name, unique in the list."""
        plan = self.plan
        cut = f"{plan.vector}x{plan.vectors}-threads{plan.threads}-rows{plan.rows}-cluster{plan.cluster}"
        return f"{self.operator}-{self.dtype}-{cut}"


class Operator(NamedTuple):
    """host: plan -> @cute.jit function.  operands: in launch order, a letter each.  plans: element bits -> plans."""

    host: Callable
    operands: str
    plans: Callable


def rows_of(table: tuple) -> Callable:
    """The plans of a table."""
    return lambda bits: tiling.plans(bits, table)


def pieces(line: tuple) -> Callable:
    """The one plan of an operator whose blocks each take a piece."""
    return lambda bits: (tiling.plan_piece(bits, line),)


def one(host: Callable) -> Callable:
    """The same host function for every plan."""
    return lambda plan: host


def plain_or_long(plain: Callable, long: Callable) -> Callable:
    """For a plan with stages the host function whose groups of blocks go on over the rows."""
    return lambda plan: long if plan.stages else plain


SOFTMAX, LOG_SOFTMAX = rows_of(tiling.SOFTMAX), rows_of(tiling.LOG_SOFTMAX)
SOFTMAX_BACKWARD = rows_of(tiling.SOFTMAX_BACKWARD)
RMS_NORM, RMS_NORM_BACKWARD = rows_of(tiling.RMS_NORM), rows_of(tiling.RMS_NORM_BACKWARD)
LAYER_NORM, LAYER_NORM_BACKWARD = rows_of(tiling.LAYER_NORM), rows_of(tiling.LAYER_NORM_BACKWARD)
ADD_RMS_NORM, ADD_RMS_NORM_BACKWARD = rows_of(tiling.ADD_RMS_NORM), rows_of(tiling.ADD_RMS_NORM_BACKWARD)
LOSS, SMOOTHED = pieces(tiling.LOSS_PIECE), pieces(tiling.SMOOTHED_LOSS_PIECE)
PRODUCT, FLAT = pieces(tiling.PRODUCT_PIECE), pieces(tiling.COPY_PIECE)

# Letters of operands.  x: a matrix (m, n) of the dtype.  r: one of the residual's.  n, m: float32 vectors (n), (m).
# p: partial sums (p, n), float32.  t: targets (m), int64.  k: contiguous elements (k) of the dtype.  e: a float32
# number.  i: an int64 number.  g: groups of blocks, int32.
OPERATORS = {
    "copy": Operator(one(copy.copy), "kk", FLAT),
    "softmax": Operator(one(softmax.softmax), "xx", SOFTMAX),
    "softmax_backward": Operator(one(softmax.softmax_backward), "xxx", SOFTMAX_BACKWARD),
    "log_softmax": Operator(one(softmax.log_softmax), "xx", LOG_SOFTMAX),
    "log_softmax_backward": Operator(one(softmax.log_softmax_backward), "xxx", SOFTMAX_BACKWARD),
    "rms_norm": Operator(plain_or_long(rms_norm.rms_norm, rms_norm.long_rms_norm), "xnxeg", RMS_NORM),
    "rms_norm_backward": Operator(one(rms_norm.rms_norm_backward), "xxnxpe", RMS_NORM_BACKWARD),
    "add_rms_norm": Operator(plain_or_long(rms_norm.add_rms_norm, rms_norm.long_add_rms_norm), "xrnxreg", ADD_RMS_NORM),
    "add_rms_norm_backward": Operator(one(rms_norm.add_rms_norm_backward), "xrrnrpe", ADD_RMS_NORM_BACKWARD),
    "layer_norm": Operator(plain_or_long(layer_norm.layer_norm, layer_norm.long_layer_norm), "xnnxmmeg", LAYER_NORM),
    "layer_norm_backward": Operator(one(layer_norm.layer_norm_backward), "xxnmmxpp", LAYER_NORM_BACKWARD),
    "cross_entropy": Operator(one(cross_entropy.cross_entropy), "xtmmi", tiling.plans_of_streams),
    "cross_entropy_backward": Operator(one(cross_entropy.cross_entropy_backward), "xtmmxi", LOSS),
    "smoothed_cross_entropy": Operator(one(cross_entropy.smoothed_cross_entropy), "xtnmmmi", SMOOTHED),
    "smoothed_cross_entropy_backward": Operator(
        one(cross_entropy.smoothed_cross_entropy_backward), "xtnmmmmx", SMOOTHED
    ),
    "swiglu": Operator(one(swiglu.swiglu), "xxx", PRODUCT),
    "swiglu_backward": Operator(one(swiglu.swiglu_backward), "xxxxx", PRODUCT),
}
# Rows that stream by or are cut in pieces may be longer than what a plan holds at once.
NOT_HELD = ("copy", *(name for name in OPERATORS if "cross_entropy" in name or "swiglu" in name))


@cache
def listed() -> tuple[Kernel, ...]:
    """Every kernel that the package can launch, in a fixed order."""
    return tuple(
        Kernel(name, dtype, plan)
        for name, operator in OPERATORS.items()
        for dtype in dtypes(name)
        for plan in operator.plans(bits(dtype))
    )


def dtypes(operator: str) -> tuple[str, ...]:
    """The names of the dtypes that an operator has kernels for."""
    return (*FLOATS, *(MIXED if operator.startswith("add_") else ()))


def bits(dtype: str) -> int:
    """Bits of an element of the input, of a pair's first dtype."""
    return FLOATS[dtype.partition("+")[0]].width


@cache
def named(name: str) -> Kernel:
    """The kernel of this name, which is in the list."""
    return next(kernel for kernel in listed() if kernel.name == name)


@cache
def find(operator: str, dtype: str, n: int, few_rows: bool = False) -> launch.Built:
    """The compiled kernel of an operator for rows of n elements; few_rows: at most tiling.FEW_ROWS of them.

    Raises ValueError for a row that is longer than its table reaches.
    """
    return compiled(Kernel(operator, dtype, plan(operator, dtype, n, few_rows)))


def plan(operator: str, dtype: str, n: int, few_rows: bool = False) -> tiling.RowPlan:
    """The plan of an operator for rows of n elements."""
    found = OPERATORS[operator].plans(bits(dtype))
    if operator == "cross_entropy":
        return tiling.plan_stream(n, few_rows, bits(dtype))
    if operator in NOT_HELD:
        return found[0]
    return tiling.plan_row(n, found)


def longest(operator: str, dtype: str) -> int:
    """The longest row that an operator holds on chip; if it need not hold them, the longest that is tested."""
    if operator in NOT_HELD:
        return tiling.MAX_N
    return tiling.longest(OPERATORS[operator].plans(bits(dtype)))


def lengths(kernel: Kernel) -> tuple[int, int]:
    """The shortest and the longest row, up to tiling.MAX_N, that gets this kernel."""
    if kernel.operator == "cross_entropy":
        return tiling.stream_lengths(kernel.plan)
    if kernel.operator in NOT_HELD:
        return 1, tiling.MAX_N
    found = OPERATORS[kernel.operator].plans(bits(kernel.dtype))
    i = found.index(kernel.plan)
    return (found[i - 1].capacity if i else 0) + 1, min(kernel.plan.capacity, tiling.MAX_N)


def groups(kernel, m: int, n: int, device) -> int:
    """Groups of blocks in a launch of a kernel, or of what find gave, for rows (m, n).

    A group a row, or for each `plan.rows` of them; if groups go on over the rows, as many as the GPU takes at a time,
    so that they end together. Where rows are not whole vectors, a multiple of that, so that all rows of a group start
    at the same place in a vector.
    """
    rows, most = group_limits(kernel.name, n, device)
    return min(-(-m // rows), most)


def partials(kernel, m: int, n: int, device) -> int:
    """Rows p of the partial sums of a kernel, or of what find gave, for (m, n): one for each row that is worked on."""
    rows, most = group_limits(kernel.name, n, device)
    return min(m, min(-(-m // rows), most) * rows)


@cache
def group_limits(name: str, n: int, device) -> tuple[int, float]:
    """Rows of a group, and how many groups a launch of a kernel has at most, for rows of n elements."""
    plan = named(name).plan
    if not plan.stages:
        return plan.rows, math.inf
    at_a_time = plan.groups * launch.resident_clusters(plan.cluster, device)
    return plan.rows, at_a_time * (plan.vector // math.gcd(n, plan.vector))


@cache
def compiled(kernel: Kernel) -> launch.Built:
    """A kernel of the list, compiled when it is first asked for."""
    return compile_kernel(kernel)


def compile_kernel(kernel: Kernel) -> launch.Built:
    """Compiles a kernel of the list, each time anew."""
    operator = OPERATORS[kernel.operator]
    host = operator.host(kernel.plan)
    return launch.compile_host(host, Operands(kernel.dtype).stand_ins(operator.operands), kernel.plan, name=kernel.name)


class Operands:
    """Stand-ins for the operands of a launch: they share m, n, p and k, and each matrix has its own row stride."""

    def __init__(self, dtype: str):
        first, _, second = dtype.partition("+")
        self.dtype, self.residual = FLOATS[first], FLOATS[second or first]
        self.m, self.n, self.p = (cute.sym_int32() for _ in range(3))
        self.k = cute.sym_int64()

    def stand_ins(self, letters: str) -> list:
        """One for each letter, as OPERATORS says."""
        return [self.stand_in(letter) for letter in letters]

    def stand_in(self, letter: str):
        """A tensor without data, or a number."""
        vectors = {"n": (self.n, cutlass.Float32), "m": (self.m, cutlass.Float32), "t": (self.m, cutlass.Int64)}
        matrices = {"x": (self.m, self.dtype), "r": (self.m, self.residual), "p": (self.p, cutlass.Float32)}
        if letter == "k":
            return launch.flat_tensor(self.dtype, self.k, tiling.WIDEST_LOAD_BITS // self.dtype.width)
        if letter in vectors:
            length, dtype = vectors[letter]
            return launch.flat_tensor(dtype, length, 1)
        if letter in matrices:
            rows, dtype = matrices[letter]
            return launch.matrix_tensor(dtype, (rows, self.n))
        return {"e": cutlass.Float32(0.0), "i": cutlass.Int64(0), "g": cutlass.Int32(0)}[letter]
