"""A pattern's kernel, compiled; that needs no GPU."""

import cutlass

from quack_lite import launch
from quack_lite.bench.counters import twins
from quack_lite.simt.patterns import Pattern

DTYPES = {"float32": cutlass.Float32, "bfloat16": cutlass.BFloat16}


def build(pattern: Pattern, blocks: int = 1, threads: int | None = None) -> launch.Built:
    """Compiles the kernel for x and y of the pattern's size, or for more blocks, or more threads in a block.

    The address of x is promised to be a multiple of one load and no more: else the compiler may join neighbours.
    """
    threads = threads or pattern.block
    times = blocks * threads // pattern.block
    x = launch.flat_tensor(DTYPES[pattern.dtype], pattern.x * times, pattern.numbers.get("width", 1))
    y = launch.flat_tensor(cutlass.Float32, pattern.y * times, 4)
    kernel = getattr(twins, f"{pattern.program.__name__}_kernel")
    constants = (kernel, tuple(pattern.numbers.values()), (blocks, threads))
    return launch.compile_host(twins.twin, [x, y], *constants, name=pattern.name)
