"""Tensors as the kernels take them: matrices of rows with equal phases, float32 vectors, and the kernel for a row."""

import torch

from quack_lite import catalog

DTYPES = {getattr(torch, name): name for name in catalog.FLOATS}
MIXED = {getattr(torch, name.partition("+")[0]): name for name in catalog.MIXED}  # with a float32 residual
MOST_ROWS = 2**31 // 16  # a grid has at most 2**31 - 1 blocks, a row up to 16 of them
BOUNDARY = 16  # bytes of the widest load
ANY_LENGTH = 1  # stands for n where one kernel serves every length
NORMS = ("rms_norm", "add_rms_norm", "layer_norm")
DIFFERENTIABLE = ("softmax", "log_softmax", *NORMS, "cross_entropy", "smoothed_cross_entropy")
# The longest row of each backward.
LONGEST = {
    (operator, dtype): catalog.longest(f"{operator}_backward", dtype)
    for operator in DIFFERENTIABLE
    for dtype in [*DTYPES.values(), *(MIXED.values() if operator == "add_rms_norm" else ())]
}
KEPT = 16  # constants; the oldest leaves
CONSTANTS = {}  # (value, n, device): tensor
BUILT = {}  # (operator, dtype, n, few_rows): kernel


def kernel(operator: str, dtype: str, n: int, few_rows: bool = False):
    """The compiled kernel of an operator for rows of n elements; compiled when it is first asked for.

    While a CUDA graph is captured nothing can be compiled or loaded: RuntimeError.
    """
    built = BUILT.get((operator, dtype, n, few_rows))
    if built is None:
        if torch.cuda.is_current_stream_capturing():
            raise RuntimeError(
                f"{operator}: its kernel for {dtype} and this length is not loaded, and a CUDA graph is being "
                "captured: call the operator once with tensors of these shapes before the capture (warm up)"
            )
        built = BUILT[operator, dtype, n, few_rows] = catalog.find(operator, dtype, n, few_rows)
    return built


def check_rows(operator: str, m: int) -> None:
    """ValueError for more rows than a grid has blocks."""
    if m > MOST_ROWS:
        raise ValueError(f"{operator}: {m} rows were given; at most {MOST_ROWS} are supported: split the tensor")


def pair_name(dtype: torch.dtype, residual_dtype: torch.dtype) -> str:
    """The name of an input's dtype with that of its residual, which is the same or float32."""
    return DTYPES[dtype] if dtype == residual_dtype else MIXED[dtype]


def fresh(x: torch.Tensor) -> torch.Tensor:
    """A new contiguous tensor of the shape, dtype and device of x."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def flat(y: torch.Tensor) -> torch.Tensor:
    """What `fresh` gave, not empty, as a matrix (m, n)."""
    return y if y.ndim == 2 else y.view(-1, y.shape[-1])


def matrix(x: torch.Tensor, boundary: int = BOUNDARY) -> torch.Tensor:
    """x (..., n), not empty, as a matrix (m, n) whose rows have the phases of a fresh contiguous tensor.

    The phase of a row is its address, counted in elements, modulo the elements of a vector; a vector of x has
    `boundary` bytes. A view where strides and address allow one, else a copy.
    """
    n = x.shape[-1]
    if n > 1 and x.is_contiguous() and x.data_ptr() % boundary == 0:
        return x if x.ndim == 2 else x.view(-1, n)
    return strided_matrix(x, boundary)


def strided_matrix(x: torch.Tensor, boundary: int) -> torch.Tensor:
    """matrix(x) for every stride and address."""
    n = x.shape[-1]
    rows = x.reshape(-1, n)
    distance = rows.stride(0) if len(rows) > 1 else n
    in_step = rows.data_ptr() % boundary == 0 and (distance - n) * x.itemsize % boundary == 0
    if not in_step or (n > 1 and rows.stride(1) != 1):
        return rows.clone(memory_format=torch.contiguous_format)
    return rows.as_strided(rows.shape, (distance, 1))


def vector(values: torch.Tensor | None, otherwise: float, x: torch.Tensor) -> torch.Tensor:
    """A weight or bias (n) in float32, contiguous; without one, n times the number `otherwise`."""
    if values is None:
        return constant(otherwise, x.shape[-1], x.device)
    return column(values, torch.float32)


def column(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """values (...) as a vector of stride 1; torch calls a single element contiguous, whatever its stride."""
    if values.dtype != dtype:
        values = values.to(dtype=dtype)
    if values.stride() == (1,):
        return values
    values = values.reshape(-1).contiguous()
    return values if values.numel() != 1 else values.as_strided((1,), (1,))


def constant(value: float, n: int, device: torch.device) -> torch.Tensor:
    """n times the same float32 number; the last few are kept."""
    if torch.cuda.is_current_stream_capturing():
        return new_constant(value, n, device)  # the graph's own: one that is kept may leave while the graph is used
    found = CONSTANTS.get((value, n, device))
    if found is None:
        found = new_constant(value, n, device)
        torch.cuda.current_stream(device).synchronize()  # complete for calls on every stream
        keep(CONSTANTS, (value, n, device), found)
    return found


def new_constant(value: float, n: int, device: torch.device) -> torch.Tensor:
    """An ordinary tensor, in inference mode too."""
    with torch.inference_mode(False):
        return torch.full((n,), value, dtype=torch.float32, device=device)


def keep(kept: dict, key, found) -> None:
    """Puts one more into a dictionary of at most KEPT, the oldest leaves."""
    if len(kept) >= KEPT:
        del kept[next(iter(kept))]
    kept[key] = found
