"""Kernels that move bytes at the memory's full speed, written in CuTe-DSL, and the course that builds them.

The public functions load torch and the DSL when they are first used; importing the package loads neither.
"""

__version__ = "0.1.0"
__all__ = [
    "add_rms_norm",
    "copy",
    "cross_entropy",
    "layer_norm",
    "log_softmax",
    "rms_norm",
    "softmax",
    "swiglu",
]


def __getattr__(name: str):
    if name in __all__:
        from quack_lite import functional

        globals()[name] = getattr(functional, name)  # the next look-up does not come here
        return globals()[name]
    raise AttributeError(f"quack_lite has no function {name!r}; it has: {', '.join(__all__)}")


def __dir__():
    return sorted([*globals(), *__all__])
