"""What is measured: operators, directions, dtypes and shapes, and the tensors of a case."""

from typing import NamedTuple

import torch

from quack_lite import reference

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
# Inputs and outputs of the public functions: x a matrix (m, n), w a weight or a bias (n), t labels (m), l a loss (m).
INPUTS = {
    "copy": "x",
    "softmax": "x",
    "log_softmax": "x",
    "rms_norm": "xw",
    "add_rms_norm": "xxw",
    "layer_norm": "xww",
    "cross_entropy": "xt",
    "swiglu": "xx",
}
OUTPUTS = {name: "x" for name in INPUTS} | {"add_rms_norm": "xx", "cross_entropy": "l"}
ELEMENTS = 2**29  # of one matrix, about
LENGTHS = (1024, 4096, 5120, 8192, 16384, 32768, 65536, 131072, 151936, 262144)
ODD_LENGTH, ODD_OPERATORS = 50257, ("softmax", "log_softmax", "cross_entropy")
COPY_LENGTHS = (2**28 - 1, 2**28)
NARROW_LENGTHS, NARROW_OPERATORS = (4096, 32768, 131072), ("rms_norm", "layer_norm")
EPS = 1e-6
DEVICE = "cuda"
SAMPLED_ROWS = 16  # from the start, from the middle, and from the end


class Job(NamedTuple):
    """What one process measures and one record holds."""

    operator: str
    backward: bool
    dtype: str

    @property
    def name(self) -> str:
        """As softmax_backward_bf16; the record is bench_NAME."""
        return f"{self.kernel}_{self.dtype}"

    @property
    def kernel(self) -> str:
        """The name in reference.OPERATORS."""
        return self.operator + "_backward" * self.backward


class Case(NamedTuple):
    """weights: the dtype of weights and biases, by its short name."""

    m: int
    n: int
    weights: str = "fp32"

    @property
    def label(self) -> str:
        """As 4096, or 4096/bf16 with weights in bf16."""
        return str(self.n) if self.weights == "fp32" else f"{self.n}/{self.weights}"


class Tensors(NamedTuple):
    """Of a case. gradients: of the outputs. checked: the same, but zero outside the sampled rows where a sum over
    rows is taken, so that the sampled rows are enough to check it. rows: which rows are sampled."""

    inputs: tuple
    gradients: tuple
    checked: tuple
    rows: torch.Tensor


def job(name: str) -> Job:
    """The job of that name."""
    kernel, _, dtype = name.rpartition("_")
    return Job(kernel.removesuffix("_backward"), kernel.endswith("_backward"), dtype)


def all_jobs() -> list[Job]:
    """The whole benchmark: bf16 both ways, fp32 forward."""
    rows = [name for name in INPUTS if name != "copy"]
    forward = [Job(name, False, "bf16") for name in ("copy", *rows)]
    return forward + [Job(name, True, "bf16") for name in rows] + [Job(name, False, "fp32") for name in rows]


def cases(job: Job) -> list[Case]:
    """The shapes of a job. Weights are float32; forward bf16 norms have some cases with bf16 weights behind them."""
    odd = (ODD_LENGTH,) if job.operator in ODD_OPERATORS else ()
    lengths = COPY_LENGTHS if job.operator == "copy" else sorted(LENGTHS + odd)
    found = [Case(rows(n), n) for n in lengths]
    if job.operator in NARROW_OPERATORS and job.dtype == "bf16" and not job.backward:
        found += [Case(rows(n), n, "bf16") for n in NARROW_LENGTHS]
    return found


def rows(n: int) -> int:
    """Rows of n that make about ELEMENTS."""
    return max(1, ELEMENTS // n)


def bytes_moved(job: Job, case: Case) -> int:
    """Bytes that a case cannot avoid moving."""
    shape, weights = (case.m, case.n), DTYPES[case.weights]
    return reference.bytes_moved(job.kernel, shape, DTYPES[job.dtype], weight_dtype=weights)


def tensors(job: Job, case: Case) -> Tensors:
    """Random inputs and, for a backward job, gradients."""
    inputs = make(INPUTS[job.operator], job, case)
    sampled = sampled_rows(case.m)
    if not job.backward:
        return Tensors(inputs, (), (), sampled)
    gradients = make(OUTPUTS[job.operator], job, case)
    masked = "w" in INPUTS[job.operator]
    checked = (only_rows(gradients[0], sampled), *gradients[1:]) if masked else gradients
    return Tensors(inputs, gradients, checked, sampled)


def make(kinds: str, job: Job, case: Case) -> tuple:
    """A tensor for each kind. The gradient of a loss has a value that each dtype holds."""
    m, n, dtype = case.m, case.n, DTYPES[job.dtype]
    makers = {
        "x": lambda: torch.randn(m, n, dtype=dtype, device=DEVICE),
        "w": lambda: torch.randn(n, dtype=torch.bfloat16, device=DEVICE).to(DTYPES[case.weights]),
        "t": lambda: torch.randint(n, (m,), device=DEVICE),
        "l": lambda: torch.randn(m, dtype=torch.bfloat16, device=DEVICE).float(),
    }
    return tuple(makers[kind]() for kind in kinds)


def sampled_rows(m: int) -> torch.Tensor:
    """Some of the first, the middle and the last of m rows."""
    parts = [torch.arange(SAMPLED_ROWS) + start for start in (0, m // 2, m - SAMPLED_ROWS)]
    return torch.cat(parts).clamp(0, m - 1).unique().to(DEVICE)


def only_rows(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """x with zeros in all other rows."""
    result = torch.zeros_like(x)
    result[rows] = x[rows]
    return result
