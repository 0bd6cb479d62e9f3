"""softmax and log_softmax over the last dimension."""

from quack_lite import rows
from quack_lite.ops.registry import register, register_differentiable


def register_pair(name: str):
    """Registers NAME(input) -> output and NAME_backward(grad, output) -> gradient of the input."""

    def run(input):
        output = rows.fresh(input)
        if input.numel():
            x = rows.matrix(input)
            kernel(name, x)(x, rows.flat(output))
        return output

    def run_backward(grad, output):
        dx = rows.fresh(output)
        if output.numel():
            y = rows.matrix(output)
            kernel(name_backward, y)(rows.matrix(grad), y, rows.flat(dx))
        return dx

    def save(ctx, inputs, output):
        ctx.save_for_backward(output)

    def backward(ctx, grad):
        return (call_backward(grad, *ctx.saved_tensors),)

    name_backward = f"{name}_backward"
    call_backward = register(f"{name_backward}(Tensor grad, Tensor output) -> Tensor", run_backward, like_second)
    return register_differentiable(f"{name}(Tensor input) -> Tensor", run, like_first, save, backward)


def kernel(operator: str, x):
    """The kernel for a matrix x (m, n)."""
    m, n = x.shape
    rows.check_rows(operator, m)
    return rows.kernel(operator, rows.DTYPES[x.dtype], n)


def like_first(input):
    return rows.fresh(input)


def like_second(grad, output):
    return rows.fresh(output)


softmax = register_pair("softmax")
log_softmax = register_pair("log_softmax")
