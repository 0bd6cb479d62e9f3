"""The operators under the names, with the arguments and with the results of torch.nn.functional.

Kernels run on Hopper GPUs, on torch's current stream and on the device of the input.
"""

import math

import torch

from quack_lite import catalog, tiling

DTYPES = {getattr(torch, name): name for name in catalog.FLOATS}
MOST_ROWS = 2**31 // 16  # a grid has at most 2**31 - 1 blocks, a row up to 16 of them


def softmax(input: torch.Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> torch.Tensor:
    """exp(input - max) / sum(exp(input - max)) over `dim`; the result has the shape of the input.

    input: any shape, float32, float16 or bfloat16, on a GPU, up to 300,000 elements along `dim`. Rows may be strided
    or start at any address; a tensor whose elements along `dim` are not neighbours is copied first.
    dtype: the input is converted to it before, as in torch.nn.functional.softmax.
    As in torch, a row of nothing but -inf, a NaN or +inf gives NaN in its whole row. There is no backward yet: an
    input that requires grad raises NotImplementedError. Wrong device or dtype: ValueError, TypeError.
    Source: kernels/softmax.py.
    """
    check_tensor("softmax", input, dtype)
    x = input if dtype is None else input.to(dtype)
    if x.ndim == 0:
        return softmax(x[None]).reshape(())
    if not -x.ndim <= dim < x.ndim:
        raise IndexError(
            f"dim={dim} was given for a tensor of {x.ndim} dimensions; allowed is {-x.ndim} .. {x.ndim - 1}"
        )
    if dim not in (-1, x.ndim - 1):
        return softmax(x.movedim(dim, -1)).movedim(-1, dim)
    output = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        n = x.shape[-1]
        launch_rows("softmax", as_rows(x), output.view(-1, n))
    return output


def copy(input: torch.Tensor) -> torch.Tensor:
    """A new contiguous tensor with the elements of `input`: any shape, float32, float16 or bfloat16, on a GPU.

    An input that is not contiguous is copied by torch. There is no backward yet: an input that requires grad raises
    NotImplementedError. Wrong device or dtype: ValueError, TypeError. Source: kernels/copy.py.
    """
    check_tensor("copy", input)
    if not input.is_contiguous():
        return input.clone(memory_format=torch.contiguous_format)
    output = torch.empty_like(input, memory_format=torch.contiguous_format)
    if input.numel():
        x, y = input.view(-1), output.view(-1)
        plan = tiling.plan_copy(x.itemsize * 8, math.gcd(element_address(x), element_address(y)))
        catalog.compiled(catalog.Kernel("copy", DTYPES[x.dtype], plan))(x, y)
    return output


def launch_rows(operator: str, x: torch.Tensor, y: torch.Tensor) -> None:
    """Runs a row operator from x (m, n) into y (m, n)."""
    if len(x) > MOST_ROWS:
        raise ValueError(f"{operator}: {len(x)} rows were given; at most {MOST_ROWS} are supported: split the tensor")
    plan = tiling.plan_row(x.shape[1], x.itemsize * 8, alignment(x, y))
    catalog.compiled(catalog.Kernel(operator, DTYPES[x.dtype], plan))(x, y)


def as_rows(x: torch.Tensor) -> torch.Tensor:
    """x (..., n) as a matrix (m, n) of stride-1 rows: a view where its strides allow one, else a copy."""
    n = x.shape[-1]
    rows = x.reshape(-1, n)
    if n > 1 and rows.stride(1) != 1:
        rows = rows.contiguous()
    strides = (rows.stride(0) if len(rows) > 1 else n, 1)
    return rows if rows.stride() == strides else rows.as_strided(rows.shape, strides)


def alignment(*matrices: torch.Tensor) -> int:
    """A number of elements that divides rows, distance between rows and address of every matrix."""
    return math.gcd(*(number for x in matrices for number in (x.shape[1], x.stride(0), element_address(x))))


def element_address(x: torch.Tensor) -> int:
    """The address of the first element, counted in elements."""
    return x.data_ptr() // x.itemsize


def check_tensor(operator: str, x: torch.Tensor, dtype: torch.dtype | None = None) -> None:
    """Says what is wrong with an input, what is allowed, and what to do."""
    allowed = "float32, float16 and bfloat16 are supported"
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{operator}: a {type(x).__name__} was given; a torch.Tensor is needed: torch.as_tensor(...)")
    if x.dtype not in DTYPES:
        raise TypeError(f"{operator}: an input of {x.dtype} was given; {allowed}: convert it with .to(torch.float32)")
    if dtype is not None and dtype not in DTYPES:
        raise TypeError(f"{operator}: dtype={dtype} was given; {allowed}")
    if x.device.type != "cuda":
        raise ValueError(
            f"{operator}: a tensor on {x.device.type} was given; the kernels run on NVIDIA GPUs only: "
            f"move it with .to('cuda'), or use torch.nn.functional"
        )
    if x.requires_grad and torch.is_grad_enabled():
        raise NotImplementedError(
            f"{operator}: an input that requires grad was given, and there is no backward yet: "
            "call it under torch.no_grad(), or pass input.detach()"
        )
