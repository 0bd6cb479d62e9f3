"""The Model: a machine of glass that runs a program of a block or cluster and shows who touches what. NumPy only.

A program is a Python function `program(b, x, y, ...)`. It runs once for each cluster, in lockstep: values are arrays
over the lanes, loops run over plain numbers, and `where=` leaves lanes out. Its verbs are named by PTX instructions;
`card()` lists them. `run(program, x, y, ..., grid=, block=, cluster=, order=)` returns what came out, what each line
cost, and one sentence for everything that is wrong.

What it models, and where the rule is written (CG: CUDA C++ Programming Guide; PTX: the PTX ISA manual):
- a warp is 32 threads, a block up to 1024, a cluster up to 16 blocks (CG "SIMT Architecture", "Thread Block Clusters")
- a request of a warp to global memory moves whole sectors of 32 bytes (CG "Device Memory Accesses")
- shared memory has 32 banks of 4 bytes; a word that several lanes want is given once; 64 and 128 bits a lane go in two
  and four parts (CG "Shared Memory" of each compute capability); of a read, two parts go as one where each two
  neighbours read the same vector (measured on an H200, records/simt; traffic.py says what of it is assumed)
- a lane's access is 1 to 16 bytes at a multiple of its size (PTX "Addresses as Operands", "Vectors", "ld", "st")
- what one thread wrote another may read only behind a barrier that both pass, also within a warp; without one the
  value is undefined: here it is poison, NaN or POISON_INT, or by order= the old value or the new one
  (PTX "Memory Consistency Model", "bar.warp.sync", "barrier.sync", "barrier.cluster")
- cp.async arrives at the wait for its group, and is known to its thread only (PTX "cp.async", "cp.async.wait_group")
- an mbarrier's phase is over when its arrivals and its bytes have come; bulk copies and st.async arrive there, as late
  as they may (PTX "mbarrier", "cp.async.bulk", "st.async")
- a CTA's shared memory may be addressed by peers while it runs: from a cluster barrier after its start to one before
  its end (CG "Distributed Shared Memory")
- 16-bit floats are loaded into float32, exactly, and rounded to nearest even when stored (PTX "cvt")

What it does not model:
- time. Counts are not times.
- caches. One thread that reads 8 neighbours one by one looks wasteful here, and L1 forgives most of it: the sectors of
  the first read serve the other seven (bfloat16 on an H200: 3718 GB/s instead of 3994; records/simt).
- registers and their number, spills, occupancy, instructions that touch no memory. So a load counts as in flight until
  the next verb that is no load: an upper bound, since the value may be needed before.
- how a warp diverges: lanes outside where= wait for free. A thread that returns early does not exist.
- atomics, named barriers, acquire and release on single accesses, remote mbarrier arrivals, tensor maps, the fences
  between generic and asynchronous proxy (a program that lacks one is not reported), loads of 256 bits.
- a location of global memory that one thread rewrites, or another behind a barrier: that is allowed and not reported.
"""

from quack_lite.simt.barriers import MBarrier
from quack_lite.simt.card import CARD, Sides, Verb, card, side_by_side
from quack_lite.simt.checks import KINDS, Report
from quack_lite.simt.counts import Counts
from quack_lite.simt.dtypes import POISON_INT, rounded
from quack_lite.simt.machine import Block
from quack_lite.simt.run import Run, Tensor, empty, run, tensor
from quack_lite.simt.trace import Event, Line, Request

__all__ = [
    "CARD",
    "KINDS",
    "POISON_INT",
    "Block",
    "Counts",
    "Event",
    "Line",
    "MBarrier",
    "Report",
    "Request",
    "Run",
    "Sides",
    "Tensor",
    "Verb",
    "card",
    "empty",
    "rounded",
    "run",
    "side_by_side",
    "tensor",
]
