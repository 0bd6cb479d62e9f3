"""Compiled kernels as object files: what one process compiled is what others run, and nothing is compiled twice."""

import os

from cutlass.cute import runtime

from quack_lite import catalog, launch

SYMBOL = "kernel"


def write(kernel: catalog.Kernel, built: launch.Built, folder: str) -> None:
    """Puts the machine code of a kernel and of its host function into the folder."""
    built.executor.export_to_c(path(kernel, folder), function_name=SYMBOL)


def read(kernel: catalog.Kernel, folder: str | None) -> launch.Built:
    """The kernel from the folder; compiled anew where there is no folder, or it is not in it."""
    if folder is None or not os.path.isfile(path(kernel, folder)):
        return catalog.compile_kernel(kernel)
    module = runtime.load_module(path(kernel, folder), enable_tvm_ffi=True)
    return launch.Built(kernel.name, getattr(module, SYMBOL), "")


def path(kernel: catalog.Kernel, folder: str) -> str:
    """The file of a kernel."""
    return os.path.join(folder, f"{kernel.name}.o")
