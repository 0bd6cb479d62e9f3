"""`python -m quack_lite.bench.counters.worker FILE`: launches each pattern's kernel once, for Nsight Compute to watch.

Into FILE it writes a JSON object a line: the pattern, the kernel's name, what stands in its PTX, what went wrong.
"""

import json
import re
import sys

import torch

from quack_lite import facts
from quack_lite.bench.counters.builds import build
from quack_lite.simt import patterns
from quack_lite.simt.patterns import Pattern

ENTRY = re.compile(r"\.entry (\w+)")


def main(path: str) -> int:
    """0; a pattern whose kernel fails is told of in the file, and the next one follows."""
    with open(path, "w", encoding="utf-8") as file:
        for pattern in patterns.PATTERNS:
            file.write(json.dumps(launched(pattern)) + "\n")
            file.flush()
    return 0


def launched(pattern: Pattern) -> dict:
    """{name, numbers, entry, ptx: {stem: count}, problem}; problem is empty if y is what the Model's program wrote."""
    result = {"name": pattern.name, "numbers": dict(pattern.numbers), "entry": "", "ptx": {}, "problem": ""}
    try:
        built = build(pattern)
        result |= {"entry": ENTRY.search(built.ptx)[1], "ptx": facts.stems(built.ptx)}
        x, y = tensors(pattern)
        built(x, y)
        expected = torch.from_numpy(patterns.run(pattern).arrays[-1])
        if not torch.equal(y.cpu(), expected):
            result["problem"] = "the kernel wrote other values than the program"
    except Exception as error:  # of one kernel: the others are still of use
        result["problem"] = f"{type(error).__name__}: {error}"[:500]
    return result


def tensors(pattern: Pattern) -> tuple[torch.Tensor, torch.Tensor]:
    """(x, y) on the GPU, y all zeros."""
    x = torch.from_numpy(patterns.source(pattern)).to("cuda", getattr(torch, pattern.dtype))
    return x, torch.zeros(pattern.y, device="cuda")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
