"""What bad input gets: a sentence that says what was given, what is allowed, and what to do."""

import torch

from quack_lite import rows

LABELS = (torch.int64, torch.int32, torch.uint8)
REDUCTIONS = ("mean", "sum", "none")
ALLOWED = "float32, float16 and bfloat16 are supported"


def check_input(operator: str, x: torch.Tensor, name: str = "input") -> None:
    """TypeError or ValueError unless x is a tensor of a known dtype on a GPU."""
    if isinstance(x, torch.Tensor) and x.dtype in rows.DTYPES and x.is_cuda:
        return
    if not isinstance(x, torch.Tensor):
        raise TypeError(
            f"{operator}: a {type(x).__name__} was given as {name}; a torch.Tensor is needed: torch.as_tensor(...)"
        )
    if x.dtype not in rows.DTYPES:
        raise TypeError(f"{operator}: {name} of {x.dtype} was given; {ALLOWED}: convert it with .to(torch.float32)")
    raise ValueError(
        f"{operator}: {name} on {x.device.type} was given; the kernels run on NVIDIA GPUs only: "
        "move it with .to('cuda'), or use torch.nn.functional"
    )


def check_dtype(operator: str, dtype: torch.dtype) -> None:
    """TypeError for a dtype= that is not supported."""
    if dtype not in rows.DTYPES:
        raise TypeError(f"{operator}: dtype={dtype} was given; {ALLOWED}")


def check_dim(dim: int, ndim: int) -> None:
    """IndexError, as in torch; a tensor without dimensions has the dimensions -1 and 0. TypeError for no integer."""
    if not isinstance(dim, int):
        raise TypeError(f"dim={dim} was given; an int is needed, as -1 for the last dimension")
    bound = max(ndim, 1)
    if not -bound <= dim < bound:
        raise IndexError(f"dim={dim} was given for a tensor of {ndim} dimensions; allowed is {-bound} .. {bound - 1}")


def check_same(operator: str, names: tuple[str, str], x: torch.Tensor, other: torch.Tensor) -> None:
    """ValueError unless both have one shape and one device."""
    if x.shape != other.shape or x.get_device() != other.get_device():
        raise ValueError(
            f"{operator}: {names[0]} {tuple(x.shape)} on {x.device} and {names[1]} {tuple(other.shape)} on "
            f"{other.device} were given; both need one shape and one device"
        )


def check_norm(operator: str, x: torch.Tensor, normalized_shape, weight: torch.Tensor | None) -> None:
    """The errors of a norm's input, normalized_shape and weight."""
    check_input(operator, x)
    shape = x.shape
    if not shape or normalized_shape not in (shape[-1], (shape[-1],)):
        check_last(operator, x, normalized_shape)
    if weight is not None:
        check_vector(operator, "weight", weight, x)


def check_last(operator: str, x: torch.Tensor, normalized_shape) -> None:
    """ValueError unless normalized_shape names the last dimension of x, and no other."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if len(shape) != 1:
        raise ValueError(
            f"{operator}: normalized_shape={shape} was given; built is the last dimension only, an int or a tuple of "
            "one: flatten the dimensions to normalize into one"
        )
    if x.shape[-1:] != shape:
        raise ValueError(
            f"{operator}: normalized_shape={shape} was given for an input of shape {tuple(x.shape)}; it has to be the "
            "size of the last dimension"
        )


def check_vector(operator: str, name: str, values: torch.Tensor, x: torch.Tensor) -> None:
    """TypeError or ValueError unless a weight or bias has a floating-point element a column, on the input's device."""
    if (
        isinstance(values, torch.Tensor)
        and values.dtype.is_floating_point
        and values.ndim == 1
        and values.shape[0] == x.shape[-1]
        and values.get_device() == x.get_device()
    ):
        return
    if not isinstance(values, torch.Tensor) or not values.dtype.is_floating_point:
        given = values.dtype if isinstance(values, torch.Tensor) else f"a {type(values).__name__}"
        raise TypeError(f"{operator}: {name} of {given} was given; a tensor of floating-point numbers is needed")
    raise ValueError(
        f"{operator}: {name} of shape {tuple(values.shape)} on {values.device} was given; needed is "
        f"{tuple(x.shape[-1:])} on {x.device}"
    )


def check_residual(x: torch.Tensor, residual: torch.Tensor, dtype: torch.dtype | None) -> None:
    """The errors of add_rms_norm's residual and residual_dtype."""
    check_input("add_rms_norm", residual, "residual")
    check_same("add_rms_norm", ("input", "residual"), x, residual)
    if residual.dtype not in (x.dtype, torch.float32):
        raise TypeError(
            f"add_rms_norm: residual of {residual.dtype} was given for an input of {x.dtype}; allowed are the input's "
            "dtype and torch.float32: convert it with .to(torch.float32)"
        )
    if dtype is not None and dtype not in (residual.dtype, torch.float32):
        raise TypeError(
            f"add_rms_norm: residual_dtype={dtype} was given for a residual of {residual.dtype}; allowed are its own "
            f"dtype and torch.float32: leave it out, or convert the residual with .to({dtype})"
        )


def check_labels(x: torch.Tensor, target: torch.Tensor) -> None:
    """The errors of cross_entropy's shapes and labels."""
    if x.ndim not in (1, 2):
        raise ValueError(
            f"cross_entropy: an input of shape {tuple(x.shape)} was given; built are (classes) and (rows, classes): "
            "flatten the rows, cross_entropy(input.flatten(0, -2), target.flatten()), with the classes last: where "
            "they are the second dimension, as torch has them, after input.movedim(1, -1)"
        )
    if not isinstance(target, torch.Tensor) or target.dtype not in LABELS:
        given = target.dtype if isinstance(target, torch.Tensor) else f"a {type(target).__name__}"
        raise TypeError(
            f"cross_entropy: target of {given} was given; labels are torch.int64, torch.int32 or torch.uint8: convert "
            "them with .long(); probabilities of classes are not built: use torch.nn.functional.cross_entropy for them"
        )
    if target.shape != x.shape[:-1] and not (x.ndim == 1 and target.shape == (1,)) or target.device != x.device:
        raise ValueError(
            f"cross_entropy: target of shape {tuple(target.shape)} on {target.device} was given for an input of shape "
            f"{tuple(x.shape)} on {x.device}; it has to be one label a row, {tuple(x.shape[:-1])}, on the same device"
        )
    if x.shape[-1] == 0:
        raise ValueError(f"cross_entropy: an input of shape {tuple(x.shape)} was given; at least one class is needed")


def check_loss(x: torch.Tensor, weight: torch.Tensor | None, reduction: str, label_smoothing: float) -> None:
    """The errors of cross_entropy's other arguments."""
    if weight is not None:
        check_vector("cross_entropy", "weight", weight, x)
        if weight.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                "cross_entropy: a weight that requires grad was given, and its gradient is not built: pass "
                "weight.detach(), or use torch.nn.functional"
            )
    if reduction not in REDUCTIONS:
        raise ValueError(f"cross_entropy: reduction={reduction!r} was given; allowed are {', '.join(REDUCTIONS)}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"cross_entropy: label_smoothing={label_smoothing} was given; allowed is 0.0 .. 1.0")


def check_backward(operator: str, x: torch.Tensor, dtype: str | None = None) -> None:
    """ValueError for a row whose gradient is not built."""
    dtype = dtype or rows.DTYPES[x.dtype]
    longest = rows.LONGEST[operator, dtype]
    if x.shape[-1] > longest:
        raise ValueError(
            f"{operator}: rows of {x.shape[-1]} elements of {dtype} that require grad were given; gradients are built "
            f"for rows up to {longest}: call it under torch.no_grad(), or split the rows"
        )
