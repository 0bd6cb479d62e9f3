"""Exercise 14, the project of part B: a norm and a loss become operators of torch, and run in a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from quack_lite.grading.feedback import GradeFailed, first_line
from quack_lite.grading.kernel_gates import fresh
from quack_lite.grading.operator_gates import OperatorCases, forget, gates, prepare
from quack_lite.grading.task import Gate, Submission, Task

if TYPE_CHECKING:
    import torch

EPS = 1e-6
IGNORED = -100
LOSS_APART, GRADIENT_APART = 0.001, 0.1  # of two models in bfloat16: absolute, and a share of the gradient's norm


class Heads(NamedTuple):
    """x (tokens, heads, d): contiguous, a part of queries, keys and values, or with heads outside of tokens.

    small: its squares are no larger than EPS.
    """

    tokens: int
    heads: int
    d: int
    lies: str = "contiguous"
    small: bool = False

    def __str__(self) -> str:
        return f"x of {self.tokens} x {self.heads} x {self.d}, {self.lies}" + (", near 0" if self.small else "")


class Rows(NamedTuple):
    """Logits (m, n).  large: one of them is past what exp can take."""

    m: int
    n: int
    large: bool = False

    def __str__(self) -> str:
        return f"logits of {self.m} x {self.n}" + (", one of them 100" if self.large else "")


def norm_inputs(size: Heads, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """x bfloat16 and w float32."""
    import torch

    tokens, heads, d, lies, small = size
    shape = {"a part": (tokens, 3, heads, d), "heads outside": (heads, tokens, d)}.get(lies, (tokens, heads, d))
    x = torch.randn(shape, generator=generator, device=generator.device).to(torch.bfloat16) * (2**-10 if small else 1)
    x = {"a part": lambda: x[:, 1], "heads outside": lambda: x.transpose(0, 1)}.get(lies, lambda: x)()
    return x, torch.randn(d, generator=generator, device=generator.device) / 4


def norm_reference(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor]:
    """The specification, in float64."""
    import torch

    x, w = x.double(), w.double()
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * (1 + w),)


def norm_dtypes() -> tuple[torch.dtype]:
    """Of its result."""
    import torch

    return (torch.bfloat16,)


def loss_inputs(size: Rows, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Logits bfloat16, labels of which every fourth is to be ignored, and a weight that shows, of each size its own."""
    import torch

    x = torch.randn(size.m, size.n, generator=generator, device=generator.device) * 3
    if size.large:
        x[0, 0] = 100
    target = torch.randint(size.n, (size.m,), generator=generator, device=generator.device)
    target[3::4] = IGNORED
    return x.to(torch.bfloat16), target, 0.05 / size.m


def loss_reference(x: torch.Tensor, target: torch.Tensor, z: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The specification, in float64."""
    import torch

    x = x.double()
    lse = x.logsumexp(-1)
    chosen = x.gather(-1, target.clamp(min=0)[:, None])[:, 0]
    loss = torch.where(target == IGNORED, 0.0, lse - chosen + z * lse.square())
    return loss, lse - (torch.softmax(x, -1) * x).sum(-1)


def loss_dtypes() -> tuple[torch.dtype, torch.dtype]:
    """Of the losses and the entropies."""
    import torch

    return torch.float32, torch.float32


def judge_forward(submission: Submission) -> str:
    """A small model on the CPU, with what was handed over and with torch's operators."""
    return try_model(submission.answer, "cpu")


def judge_forward_on_gpu(submission: Submission) -> str:
    """The same model on the GPU."""
    from quack_lite import bench

    with bench.gpu_lock(exclusive=False):
        return try_model(submission.answer, "cuda")


def judge_graph(submission: Submission) -> str:
    """The whole forward is one graph for torch.compile."""
    import torch

    _, model = pair(submission.answer, "cpu")
    tokens = batch("cpu")
    try:
        with torch.no_grad():
            whole = torch.compile(model, fullgraph=True, backend="eager")(*tokens)
            right = model(*tokens)
    except torch._dynamo.exc.TorchDynamoException as error:
        raise GradeFailed(
            f"torch.compile cannot take the forward as a whole ({first_line(error)}): only operators between tensors, "
            "and no number taken out of one"
        ) from error
    if not torch.equal(whole, right):
        raise GradeFailed("compiled, the model has another loss: look for what is kept between calls")
    return "one graph"


def pair(swap: Callable, device: str) -> tuple[torch.nn.Module, torch.nn.Module]:
    """Two models with the same weights, the second after `swap`."""
    import torch

    from quack_lite.bench.small_model import SmallModel, SmallSize

    models = []
    for _ in range(2):
        torch.manual_seed(14)
        models.append(SmallModel(SmallSize(tokens=96, width=64, layers=2, heads=4, hidden=64)))
        for block in models[-1].blocks:
            torch.nn.init.normal_(block.query_scale, std=0.3)
            torch.nn.init.normal_(block.key_scale, std=0.3)
    swapped = swap(models[1])
    if not isinstance(swapped, SmallModel):
        raise GradeFailed(f"swap returned a {type(swapped).__name__}: it returns the model that it was given")
    return models[0].to(device), swapped.to(device)


def batch(device: str) -> torch.Tensor:
    """Tokens and targets, (2, batch, length)."""
    import torch

    return torch.randint(96, (2, 3, 20), generator=fresh("cpu")).to(device)


def try_model(swap: Callable, device: str) -> str:
    """Loss, operators and gradients of both models."""
    model, swapped = pair(swap, device)
    tokens, called = batch(device), []
    right = model(*tokens)
    with listener(called):
        found = swapped(*tokens)
    if isinstance(found, tuple):
        raise GradeFailed("the loss is a tuple: zloss gives losses and entropies, and the model wants the losses' mean")
    if found.shape != ():
        raise GradeFailed(f"the loss has the shape {tuple(found.shape)}: the model's loss is one number, the mean")
    names = sorted(set(called))
    if not names:
        raise GradeFailed("the forward called no operator of yours: set model.norm and model.loss")
    if len(names) < 2 or len(called) != 5:
        raise GradeFailed(
            f"calls of your operators in the forward: {len(called)} ({', '.join(names)}): a norm for the queries and "
            "one for the keys of each of the 2 blocks, and a loss, are 5"
        )
    if not abs(found.item() - right.item()) <= LOSS_APART:
        raise GradeFailed(
            f"the loss is {found.item():.4f} and torch's is {right.item():.4f}: see what is added up, and what the "
            "norms are given"
        )
    judge_gradients(model, swapped, right, found)
    return f"loss {found.item():.4f}, torch's {right.item():.4f}, and all gradients"


def listener(called: list[str]):
    """A context in which the names of operators that are not torch's own are noted when they run."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator.namespace not in ("aten", "prim", "prims"):
                called.append(operator.name())
            return operator(*args, **(kwargs or {}))

    return Listener()


def judge_gradients(model: Any, swapped: Any, right: torch.Tensor, found: torch.Tensor) -> None:
    """GradeFailed where a parameter gets no gradient or one that is far from torch's."""
    if not found.requires_grad:
        raise GradeFailed("the loss does not know where it came from: nothing of it may be detached")
    right.backward()
    found.backward()
    for (name, one), (_, other) in zip(model.named_parameters(), swapped.named_parameters(), strict=True):
        if other.grad is None:
            raise GradeFailed(f"no gradient reaches {name}: look for what cuts it off")
        apart = float((one.grad - other.grad).norm() / one.grad.norm())
        if not apart <= GRADIENT_APART:
            raise GradeFailed(f"the gradient of {name} is {apart:.0%} of its size away from torch's")


NORM = OperatorCases(
    sizes=(
        Heads(5, 4, 64),
        Heads(7, 2, 128, "a part"),
        Heads(3, 5, 24, "heads outside"),
        Heads(2, 4, 64, small=True),
        Heads(1, 1, 256),
    ),
    inputs=norm_inputs,
    reference=norm_reference,
    dtypes=norm_dtypes,
)
LOSS = OperatorCases(
    sizes=(Rows(5, 96, large=True), Rows(1, 8), Rows(9, 1000)),
    inputs=loss_inputs,
    reference=loss_reference,
    dtypes=loss_dtypes,
)

TASKS = (
    Task(
        id="use_it_in_torch.norm",
        kind="K",
        prepare=prepare,
        forget=forget,
        gates=gates(NORM),
        hints=(
            "Five things, one after the other: the schema (define), what runs on each device (impl, twice), the fake, "
            "the gradient. Each is one call, and each takes the operator's name.",
            "run_norm and fake_norm make the same tensor, x.new_empty(x.shape); run_norm also fills it. Backward: with "
            "x^ = x * rstd and g = dy * (1 + w), both float32, dw is the sum of dy * x^ over tokens and heads.",
            "dx = rstd * (g - x^ * (g * x^).mean(-1, keepdim=True)), in the dtype of x. library.define("
            '"qk_norm(Tensor x, Tensor w) -> Tensor"), library.impl("qk_norm", run_norm, "CUDA"), and so on.',
        ),
    ),
    Task(
        id="use_it_in_torch.loss",
        kind="K",
        prepare=prepare,
        forget=forget,
        gates=gates(LOSS),
        hints=(
            "Two results are (Tensor, Tensor) in the schema, and a number is float. Their memory must not be the same: "
            "a column of a tensor is a view of it.",
            "Backward is given two gradients, of the losses and of the entropies, and returns three, for x, target and "
            "z. What is no tensor of floats gets None. In save_loss, ctx.mark_non_differentiable(output[1]).",
            "lse = x.float().logsumexp(-1); dx = (1 + 2 * z * lse) * softmax - (1 at the label), times dloss, and 0 in "
            "rows that are to be ignored. z goes from setup_context to backward as ctx.z.",
        ),
    ),
    Task(
        id="use_it_in_torch.model",
        kind="K",
        prepare=prepare,
        forget=forget,
        gates=(
            Gate("forward", "compiler", judge_forward),
            Gate("graph", "compiler", judge_graph),
            Gate("model", "gpu", judge_forward_on_gpu),
        ),
        hints=(
            "The model calls self.norm(x, w) with x (batch, length, heads, d), and self.loss(logits, targets) with "
            "logits (batch, length, tokens). Your operators have one dimension less.",
            "x.flatten(0, 1) is a view, and .view(x.shape) goes back. The model's loss is a mean over all tokens.",
            "model.norm = lambda x, w: qk_norm(x.flatten(0, 1), w).view(x.shape), and for the loss the first result of "
            "zloss(logits.flatten(0, 1), targets.flatten(), 1e-4), its mean.",
        ),
    ),
)
