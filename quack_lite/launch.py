"""The only seam between torch and CuTe: a host function is compiled once for a kind of argument, and called often.

Sizes and strides are symbolic. A compiled function takes torch tensors, runs on torch's current stream and on the
device the tensors are on.
"""

import contextlib
import inspect
import io
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import make_fake_stream, make_fake_tensor
from cutlass.utils import HardwareInfo

from quack_lite import facts, sources

DTYPES = {
    torch.float32: cutlass.Float32,
    torch.float16: cutlass.Float16,
    torch.bfloat16: cutlass.BFloat16,
    torch.int32: cutlass.Int32,
    torch.int64: cutlass.Int64,
}


@dataclass(frozen=True)
class Built:
    """A compiled host function; call it with CUDA tensors, and the numbers behind them, in launch order."""

    name: str
    executor: object
    remarks: str

    def __call__(self, *tensors: torch.Tensor) -> None:
        first = tensors[0]
        if not first.is_cuda:
            raise ValueError(
                f"{self.name} was called with a tensor on {first.device.type}; it runs on a GPU only: move the tensors "
                "to 'cuda', or read .ptx and .facts, which need no GPU"
            )
        if first.get_device() == torch._C._cuda_getDevice():  # as torch.cuda.current_device, once CUDA is there
            self.function(*tensors)
        else:
            with torch.cuda.device(first.device):
                self.function(*tensors)

    @cached_property
    def function(self) -> Callable:
        """What the executor calls, without its search for keyword arguments and pointers, of which there are none."""
        if not hasattr(self.executor, "__tvm_ffi_object__"):  # from an object file: it is that function
            return self.executor
        found = self.executor.__tvm_ffi_object__()
        return self.executor if found is None else found  # None: not for this machine, which the executor explains

    @property
    def ptx(self) -> str:
        """The PTX text of the kernels."""
        return self.executor.__ptx__

    @property
    def ir(self) -> str | None:
        """Host and kernel IR; None unless Python was started with CUTE_DSL_KEEP=ptx,ir."""
        return self.executor.__mlir__

    @cached_property
    def facts(self) -> facts.Facts:
        """What the compiler made."""
        return facts.read(self.ptx, self.remarks, self.ir)


def architecture() -> str:
    """The GPU to compile for: this machine's own, or sm_90a (Hopper) where there is none."""
    if not torch.cuda.is_available():
        return "sm_90a"
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


@cache
def resident_clusters(size: int, device) -> int:
    """Clusters of `size` blocks that a CUDA device holds at once, one block on an SM."""
    torch.cuda.synchronize(device)  # torch makes its context when it is first used
    with torch.cuda.device(device):
        return HardwareInfo(torch.cuda.current_device()).get_max_active_clusters(size)


def flat_tensor(dtype, n, vector: int):
    """A stand-in for n contiguous elements; the address is a multiple of `vector` of them, n need not be."""
    return make_fake_tensor(dtype, (n,), (1,), assumed_align=vector * dtype.width // 8)


def matrix_tensor(dtype, shape):
    """A stand-in for rows of stride-1 elements, as far apart and at whichever element they may start."""
    return make_fake_tensor(dtype, shape, (cute.sym_int64(), 1), assumed_align=dtype.width // 8)


def compile_host(host, fakes, *constants, name: str | None = None) -> Built:
    """Compiles a @cute.jit function of (tensors..., stream, constants...) for stand-ins of its tensors.

    RuntimeError if its file was edited since it was imported.
    """
    sources.refuse_edited(host)
    remarks = io.StringIO()
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(remarks):
        executor = cute.compile(host, *fakes, stream, *constants, options=compile_options(folder))
    return Built(name or host_name(host), executor, without_colours(remarks.getvalue()))


def compile_options(folder: str) -> str:
    """The DSL's options of every compilation; in `folder` it leaves its files."""
    return f"--gpu-arch {architecture()} --keep-ptx --dump-dir {folder} --enable-tvm-ffi remarks{{ptx}}"


def build(host, *examples: torch.Tensor | float, align: int = 16) -> Built:
    """Compiles a @cute.jit function of (tensors..., numbers..., stream) for arguments like the examples.

    Of a tensor (on any device, meta too) only dtype and number of dimensions count: every size and stride is left
    open, but the last stride is 1. Every address is promised to be a multiple of `align` bytes. A Python float stands
    for a float32 number, which each call gives anew.
    Raises TypeError for a host function that is already compiled, or takes another number of arguments.
    """
    check_host(host, len(examples))
    return compile_host(host, [stand_in(example, align) for example in examples])


def stand_in(example: torch.Tensor | float, align: int):
    """A fake tensor with the example's dtype and rank, and symbolic sizes and strides; a number for a float."""
    if isinstance(example, float):
        return cutlass.Float32(0.0)
    if example.dtype not in DTYPES:
        raise TypeError(f"a tensor of {example.dtype} was given; kernels here take {', '.join(map(str, DTYPES))}")
    shape = tuple(cute.sym_int64() for _ in range(example.ndim))
    stride = (*(cute.sym_int64() for _ in range(example.ndim - 1)), 1)
    return make_fake_tensor(DTYPES[example.dtype], shape, stride, assumed_align=align)


def check_host(host, tensors: int) -> None:
    """TypeError with a sentence if `host` cannot be compiled for that many tensors and a stream."""
    if isinstance(host, Built):
        raise TypeError(f"{host.name} is compiled already: call it, or hand over the @cute.jit function itself")
    if not callable(host):
        raise TypeError(f"a {type(host).__name__} was given; hand over the @cute.jit function, uncompiled")
    wanted = len(inspect.signature(host).parameters)
    if wanted != tensors + 1:
        raise TypeError(
            f"{host_name(host)} takes {wanted} arguments; {tensors} tensors and a stream are handed to it: "
            f"give it {tensors + 1} parameters, the last one the stream"
        )


def host_name(host) -> str:
    """The name under which a host function was defined."""
    return getattr(host, "__name__", type(host).__name__)


def without_colours(text: str) -> str:
    """The text without terminal colour codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
