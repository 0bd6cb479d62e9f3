"""Mistakes that people make in exercise 05, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

NEEDED = "bytes_in_flight.needed"
CAST = "bytes_in_flight.cast"

STORE = "gY[None, group].store(gX[None, group].load().to(mY.element_type))"

WRONG_ANSWERS = (
    WrongAnswer(
        NEEDED,
        "counts the writes too",
        (("return copy / 2 * latency / sms", "return copy * latency / sms"),),
        gate="numbers",
        sentence="only the reads are waited for",
        easy="right for a kernel that only reads",
    ),
    WrongAnswer(
        NEEDED,
        "the whole GPU",
        (("return copy / 2 * latency / sms", "return copy / 2 * latency"),),
        gate="numbers",
        sentence="what the whole GPU needs",
        easy="right on a GPU of one SM",
    ),
    WrongAnswer(
        NEEDED,
        "ns taken for s",
        (("return copy / 2 * latency / sms", "return copy * 1e9 / 2 * latency / sms"),),
        gate="numbers",
        sentence="10^9 too much",
        easy="right with the latency in seconds",
    ),
    WrongAnswer(
        NEEDED,
        "rounds down",
        (("math.ceil(bytes_needed", "math.floor(bytes_needed"),),
        gate="numbers",
        sentence="round up, not down",
        easy="right where the division leaves nothing over",
    ),
    WrongAnswer(
        NEEDED,
        "a 128-byte load",
        (("(threads * 16)", "(threads * 128)"),),
        gate="numbers",
        sentence="it is 128 bits",
        easy="right where one load a thread is enough",
    ),
    WrongAnswer(
        NEEDED,
        "the width in bits",
        (("threads * element_bytes >=", "threads * element_bytes * 8 >="),),
        gate="numbers",
        sentence="one element each",
        easy="right for the widest dtypes",
    ),
    WrongAnswer(
        CAST,
        "stores float32",
        ((STORE, "gY[None, group].store(gX[None, group].load())"),),
        gate="compiles",
        sentence="Type mismatch",
        easy="right where both tensors have one dtype",
    ),
    WrongAnswer(
        CAST,
        "neighbouring threads, neighbouring elements",
        (
            ("cute.zipped_divide(mX, (8,))", "cute.zipped_divide(mX, (cute.make_layout(8, stride=THREADS),))"),
            ("cute.zipped_divide(mY, (8,))", "cute.zipped_divide(mY, (cute.make_layout(8, stride=THREADS),))"),
        ),
        gate="shape",
        sentence="the widest load has 32 bits",
        easy="compiles, and is right where blocks are full",
    ),
    WrongAnswer(
        CAST,
        "the last group taken for a full one",
        (("if group < n // 8:", "if group * 8 < n:"),),
        gate="values",
        sentence="bytes behind the output",
        easy="right where 8 divides n",
    ),
    WrongAnswer(
        CAST,
        "one short at the end",
        (("if group < n % 8:", "if group < n % 8 - 1:"),),
        gate="values",
        sentence="never written",
        easy="right where 8 divides n",
    ),
    WrongAnswer(
        CAST,
        "a grid that rounds down",
        (("cute.ceil_div(mX.shape[0], THREADS * 8)", "mX.shape[0] // (THREADS * 8)"),),
        gate="values",
        sentence="n = 1",
        easy="right where blocks are full",
    ),
    WrongAnswer(
        CAST,
        "rounded twice",
        ((".load().to(mY.element_type)", ".load().to(cutlass.Float16).to(mY.element_type)"),),
        gate="values",
        sentence="elements differ",
        easy="right for small whole numbers",
    ),
    WrongAnswer(
        CAST,
        "neighbours in a warp far apart",
        (("group = block * THREADS + thread", "grid, _, _ = cute.arch.grid_dim()\n    group = thread * grid + block"),),
        gate="speed",
        sentence="neighbours in memory",
        easy="right at every length",
    ),
)
