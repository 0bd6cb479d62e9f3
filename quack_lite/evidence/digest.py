"""A kernel's fingerprints: SHA-256 of its PTX, and of its host and kernel IR, which alone holds the launch.

The compiler's names of kernels and host functions, cut at 180 characters, are replaced; nothing else depends on where
or in which process a kernel was compiled.
"""

import hashlib
import re

from quack_lite import machine

ENTRY = re.compile(r"\.entry\s+(\w+)")
IR_SYMBOL = re.compile(r"@((?:kernel_)?cutlass_\w+)")
FLAVOURS = ("cu12", "cu13")


def digests(ptx: str, ir: str) -> dict[str, str]:
    """{"ptx": ..., "ir": ...}; ValueError without IR: it is kept in a process started with CUTE_DSL_KEEP=ptx,ir."""
    if ir is None:
        raise ValueError("the compiler kept no IR: start Python with CUTE_DSL_KEEP=ptx,ir in the environment")
    return {"ptx": sha256(named_anew(ptx, ENTRY)), "ir": sha256(named_anew(ir, IR_SYMBOL))}


def named_anew(text: str, symbols: re.Pattern) -> str:
    """The text with each name that `symbols` finds replaced by function0, function1, ... in order of appearance."""
    found = list(dict.fromkeys(symbols.findall(text)))
    for number, name in sorted(enumerate(found), key=lambda item: -len(item[1])):
        text = text.replace(name, f"function{number}")
    return text


def entries(ptx: str) -> list[str]:
    """The names under which the kernels of a PTX text are launched."""
    return ENTRY.findall(ptx)


def sha256(text: str) -> str:
    """The digest of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def flavour() -> str:
    """The CUDA flavours of the DSL that are installed, as "cu12"; each writes PTX of its own."""
    return "+".join(name for name in FLAVOURS if machine.version(f"nvidia-cutlass-dsl-libs-{name}")) or "unknown"
