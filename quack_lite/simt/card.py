"""All verbs on one card, and a program beside the kernel that it stands for."""

import difflib
import html
import inspect
import re
from collections.abc import Callable
from typing import NamedTuple


class Verb(NamedTuple):
    """name: in a program.  ptx: the instruction.  cute: its name in CuTe-DSL.  found: what marks it in a kernel."""

    name: str
    ptx: str
    cute: str
    meaning: str
    found: str


# In a kernel m and g are tensors in global memory, s in shared memory, by the course's notation.
CARD = (
    Verb(
        "ld_global", "ld.global", "mX[i], gX.load()", "global memory to registers", r"[=(,+] *[mg][A-Z]\w*\[|\.load\("
    ),
    Verb(
        "st_global",
        "st.global",
        "mY[i] = v, gY.store(v)",
        "registers to global memory",
        r"^[mg][A-Z]\w*\[.*\] = |\.store\(",
    ),
    Verb("shared", ".shared", "SmemAllocator().allocate_tensor", "an array in shared memory", r"\.allocate_tensor\("),
    Verb("ld_shared", "ld.shared", "sX[i]", "shared memory to registers", r"[=(,+] *s[A-Z]\w*\["),
    Verb("st_shared", "st.shared", "sX[i] = v", "registers to shared memory", r"^s[A-Z]\w*\[.*\] = "),
    Verb("shfl_bfly", "shfl.sync.bfly", "shuffle_sync_bfly", "lane ^ mask's value", r"shuffle_sync_bfly"),
    Verb("shfl_down", "shfl.sync.down", "shuffle_sync_down", "lane + delta's value", r"shuffle_sync_down"),
    Verb("shfl_idx", "shfl.sync.idx", "shuffle_sync", "one lane's value", r"shuffle_sync\("),
    Verb("bar_warp_sync", "bar.warp.sync", "sync_warp", "the warp meets", r"sync_warp\("),
    Verb("bar_sync", "bar.sync", "barrier", "the CTA meets", r"arch\.barrier\(|sync_threads\("),
    Verb("cp_async", "cp.async", "CopyG2SOp", "global to shared, past the registers", r"CopyG2SOp"),
    Verb("commit_group", "cp.async.commit_group", "cp_async_commit_group", "close a group", r"cp_async_commit_group"),
    Verb("wait_group", "cp.async.wait_group", "cp_async_wait_group", "all but n groups came", r"cp_async_wait_group"),
    Verb("mbarrier", "mbarrier.init", "mbarrier_init", "an object that counts", r"mbarrier_init\("),
    Verb("arrive", "mbarrier.arrive", "mbarrier_arrive", "one arrival", r"mbarrier_arrive"),
    Verb("expect_tx", "mbarrier.expect_tx", "mbarrier_expect_tx", "so many bytes to come", r"expect_tx\("),
    Verb("wait", "mbarrier.try_wait", "mbarrier_wait", "until the phase is over", r"mbarrier_wait\("),
    Verb("bulk_load", "cp.async.bulk", "CopyBulkG2SOp", "a run of bytes, by one thread", r"CopyBulkG2SOp"),
    Verb("cluster_arrive", "barrier.cluster.arrive", "cluster_arrive", "I am here", r"cluster_arrive"),
    Verb("cluster_wait", "barrier.cluster.wait", "cluster_wait", "all of the cluster are", r"cluster_wait"),
    Verb("ld_peer", "ld.shared::cluster", "map_dsmem_ptr", "another CTA's shared memory", r"map_dsmem_ptr"),
    Verb("st_async", "st.async", "store_async_dsmem", "to another CTA, counted there", r"store_async_dsmem"),
)


def card() -> str:
    """The card as text."""
    rows = [("verb", "PTX", "CuTe-DSL", "meaning"), *(verb[:4] for verb in CARD)]
    widths = [max(len(row[k]) for row in rows) + 2 for k in range(3)]
    return "\n".join("".join(f"{row[k]:<{widths[k]}}" for k in range(3)) + row[3] for row in rows)


def side_by_side(program: Callable | str, kernel: Callable | str) -> "Sides":
    """A program and its kernel, functions or texts: lines of the same verbs stand side by side, for a cell's end."""
    left, right = _lines(program), _lines(kernel)
    pairs, verbs = [], [[_key(line) for line in lines] for lines in (left, right)]
    for _, i, j, k, m in difflib.SequenceMatcher(None, *verbs, autojunk=False).get_opcodes():
        height = max(j - i, m - k)
        pairs += zip(_padded(left[i:j], height), _padded(right[k:m], height), strict=True)
    return Sides(pairs)


class Sides:
    """Pairs of lines, either of them empty where the other side has no counterpart."""

    def __init__(self, pairs: list[tuple[str, str]]):
        self.pairs = pairs

    def __repr__(self) -> str:
        width = max(len(left) for left, _ in self.pairs)
        return "\n".join(f"{left:<{width}} | {right}".rstrip() for left, right in self.pairs)

    def _repr_html_(self) -> str:
        style = "background:#fff;color:#202124;font-family:monospace;text-align:left;white-space:pre;padding:0 1em"
        cells = (
            f'<td style="{style}">{html.escape(left)}</td><td style="{style}">{html.escape(right)}</td>'
            for left, right in self.pairs
        )
        return f"<table>{''.join(f'<tr>{pair}</tr>' for pair in cells)}</table>"


def _lines(given) -> list[str]:
    text = given if isinstance(given, str) else _from_def(inspect.getsource(inspect.unwrap(given)))
    return [line for line in text.expandtabs().splitlines() if line.strip()]


def _from_def(text: str) -> str:
    """Without decorators: of a kernel that was traced before, inspect finds none."""
    return text[re.search(r"^\s*def ", text, re.M).start() :]


def _key(line: str) -> tuple[str, ...]:
    """What makes two lines counterparts: their verbs, that each begins its function, or their text."""
    code = line.split("#")[0].strip()
    if code.startswith("def "):
        return ("def",)
    own = "" if "arch." in code else code
    found = [verb.name for verb in CARD if f".{verb.name}(" in own or re.search(verb.found, code)]
    return tuple(found) or (code,)


def _padded(lines: list[str], height: int) -> list[str]:
    return lines + [""] * (height - len(lines))
