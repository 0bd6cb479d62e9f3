"""What the compiler made of a kernel: counted in its PTX text, and read from the compiler's own remarks.

Source: the PTX ISA's instruction names; ptxas's report of registers, stack and spills.
"""

import re
from collections import Counter
from dataclasses import dataclass, fields

WIDTH = re.compile(r"\b(ld|st)\.global(?:\.[\w:]+)*?(?:\.v(\d))?\.[busf](\d+)\b")

# Rows of the table with three columns: a PTX stem, without what only qualifies it, and how it stands in the text.
STEMS = {
    "ld.global": r"ld\.global\b",
    "st.global": r"st\.global\b",
    "ld.shared": r"ld\.shared(?!::cluster)\b",
    "st.shared": r"st\.shared(?!::cluster)\b",
    "shfl.sync.bfly": r"shfl\.sync\.bfly\b",
    "shfl.sync.down": r"shfl\.sync\.down\b",
    "shfl.sync.idx": r"shfl\.sync\.idx\b",
    "bar.sync": r"bar(?:rier(?:\.cta)?)?\.sync\b",
    "bar.warp.sync": r"bar\.warp\.sync\b",
    "cp.async": r"cp\.async\.c[ag]\b",
    "cp.async.commit_group": r"cp\.async\.commit_group\b",
    "cp.async.wait_group": r"cp\.async\.wait_(?:group|all)\b",
    "cp.async.bulk": r"cp\.async\.bulk\.(?!commit|wait)",
    "mbarrier.arrive": r"mbarrier\.arrive(?!\.expect_tx)\b",
    "mbarrier.expect_tx": r"mbarrier\.(?:arrive\.)?expect_tx\b",
    "mbarrier.try_wait": r"mbarrier\.(?:try|test)_wait\b",
    "ld.shared::cluster": r"ld\.shared::cluster\b",
    "st.async": r"st\.async\b",
    "barrier.cluster.arrive": r"barrier\.cluster\.arrive\b",
    "barrier.cluster.wait": r"barrier\.cluster\.wait\b",
}


@dataclass(frozen=True)
class Facts:
    """Instructions as they stand in the PTX (a loop's body counts once), and what a thread and a block occupy.

    ld_global, st_global: {bits of one access: count}.  registers: a thread's.  spill_bytes, stack_bytes: a thread's.
    block: threads.  cluster, shared_bytes: a block's, None unless the IR was kept (CUTE_DSL_KEEP=ptx,ir).
    """

    ld_global: dict[int, int]
    st_global: dict[int, int]
    cp_async: int
    bulk_copies: int
    shfl_bfly: int
    barriers: int
    cluster_barriers: int
    st_async: int
    registers: int
    spill_bytes: int
    stack_bytes: int
    block: int
    cluster: int | None
    shared_bytes: int | None

    def line(self) -> str:
        """The widths, the registers and the spill, in one line."""
        accesses = f"loads {show(self.ld_global)}; stores {show(self.st_global)}"
        return f"{accesses}; {self.registers} registers, {self.spill_bytes} bytes spilled"

    def table(self) -> str:
        """One line a fact, for a lesson."""
        rows = [(field.name, getattr(self, field.name)) for field in fields(self)]
        return "\n".join(f"{name:<17}{show(value)}" for name, value in rows if value is not None)


def show(value) -> str:
    """A count, or '4 x 128-bit, 1 x 32-bit'."""
    if not isinstance(value, dict):
        return str(value)
    return ", ".join(f"{count} x {bits}-bit" for bits, count in sorted(value.items(), reverse=True)) or "none"


def read(ptx: str, remarks: str, ir: str | None = None) -> Facts:
    """The facts of one kernel from its PTX text, ptxas's remarks and, if kept, its IR."""
    return Facts(
        ld_global=accesses(ptx, "ld"),
        st_global=accesses(ptx, "st"),
        cp_async=count(ptx, r"cp\.async\.c[ag]"),
        bulk_copies=count(ptx, r"cp\.async\.bulk\.(?!commit|wait)"),
        shfl_bfly=count(ptx, r"shfl\.sync\.bfly"),
        barriers=count(ptx, r"bar(?:rier(?:\.cta)?)?\.sync"),
        cluster_barriers=count(ptx, r"barrier\.cluster\.wait"),
        st_async=count(ptx, r"st\.async"),
        registers=number(remarks, r"Used (\d+) registers"),
        spill_bytes=number(remarks, r"(\d+) bytes spill stores"),
        stack_bytes=number(remarks, r"(\d+) bytes stack frame"),
        block=number(ptx, r"\.(?:max|req)ntid (\d+)"),
        cluster=ir and cluster_size(ir),
        shared_bytes=ir and shared_size(ir),
    )


def accesses(ptx: str, kind: str) -> dict[int, int]:
    """{bits: count} of the global loads ("ld") or stores ("st")."""
    found = (int(vector or 1) * int(bits) for stem, vector, bits in WIDTH.findall(ptx) if stem == kind)
    return dict(Counter(found))


def stems(ptx: str) -> dict[str, int]:
    """{PTX stem: how often it stands in the text}, of those that stand there; a loop's body counts once."""
    found = {stem: count(ptx, pattern) for stem, pattern in STEMS.items()}
    return {stem: number for stem, number in found.items() if number}


def count(text: str, pattern: str) -> int:
    """How often an instruction stands in the text."""
    return len(re.findall(rf"\b{pattern}", text))


def number(text: str, pattern: str) -> int:
    """The one number that the pattern names."""
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"no line like {pattern!r} in what the compiler said: {text[:200]!r}")
    return int(match.group(1))


def cluster_size(ir: str) -> int:
    """Blocks in a cluster, 1 for a launch without one."""
    match = re.search(r"cluster_dim\[%\w+\] \(%c(\d+)_i32", ir)
    return int(match.group(1)) if match else 1


def shared_size(ir: str) -> int:
    """Bytes of shared memory that a block allocates."""
    return sum(int(size) for size in re.findall(r"memref\.alloca\(\).*smem, .*?\"(\d+):1\"", named_types(ir)))


def named_types(ir: str) -> str:
    """The IR with the names of its memref types replaced by what they stand for."""
    for name, meaning in sorted(re.findall(r"^(!memref\w+) = (.*)$", ir, re.M), reverse=True):
        ir = ir.replace(f": {name}\n", f": {meaning}\n")
    return ir
