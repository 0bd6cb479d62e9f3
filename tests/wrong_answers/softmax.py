"""Mistakes that people make in exercise 12, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

MERGE = "softmax.merge"
PAIR = "softmax.pair"
SINK = "softmax.sink"

WEIGHTED = "(a * one[1] + b * other[1]) / (a + b)"

WRONG_ANSWERS = (
    WrongAnswer(
        MERGE,
        "exp of a log-sum-exp",
        (("shift = max(one[0], other[0])", "shift = min(0.0, max(one[0], other[0]))"),),
        gate="numbers",
        sentence="overflows",
        easy="right for scores about 0",
    ),
    WrongAnswer(
        MERGE,
        "two empty parts",
        (("if shift == -math.inf:", "if False:"),),
        gate="numbers",
        sentence="two empty parts need care",
        easy="right where one side has a key",
    ),
    WrongAnswer(
        MERGE,
        "both weigh the same",
        ((WEIGHTED, "(one[1] + other[1]) / 2"),),
        gate="numbers",
        sentence="weighed the same",
        easy="right for parts with one lse",
    ),
    WrongAnswer(
        MERGE,
        "weights that do not add up to 1",
        ((WEIGHTED, "a * one[1] + b * other[1]"),),
        gate="numbers",
        sentence="add up to 1",
        easy="right where one side is empty",
    ),
    WrongAnswer(
        MERGE,
        "the log-sum-exp of nothing is 0",
        (("return -math.inf, np.zeros(width)", "return 0.0, np.zeros(width)"),),
        gate="numbers",
        sentence="log 0 is -inf",
        easy="right where both sides have keys",
    ),
    WrongAnswer(
        PAIR,
        "-inf from -inf",
        (("one[0] - finite(m)", "one[0] - m"), ("other[0] - finite(m)", "other[0] - m")),
        gate="values",
        sentence="is nan",
        easy="right where each lane has a score",
    ),
    WrongAnswer(
        PAIR,
        "the rest of the last vector",
        (("i[:, None] + np.arange(8) < length[:, None]", "i[:, None] < length[:, None]"),),
        gate="values",
        sentence="is nan",
        easy="right for lengths that 8 divides",
    ),
    WrongAnswer(
        PAIR,
        "a sink from each thread",
        (("np.where(b.tid == 0, last, -np.inf)", "np.where(b.tid >= 0, last, -np.inf)"),),
        gate="values",
        sentence="should be",
        easy="right for sinks of -inf",
    ),
    WrongAnswer(
        PAIR,
        "no barrier",
        (("    b.bar_sync()\n", ""),),
        gate="checks",
        sentence="nothing between",
        easy="right where the warps take turns",
    ),
    WrongAnswer(
        PAIR,
        "a fill value that is no identity",
        (("fill=-np.inf)", "fill=0)"),),
        gate="values",
        sentence="should be",
        easy="right where the greatest score is 0",
    ),
    WrongAnswer(
        PAIR,
        "the masked scores too",
        (("vec=8, where=i < length", "vec=8, where=i < n"),),
        gate="traffic",
        sentence="behind the row's length",
        easy="right values",
    ),
    WrongAnswer(
        SINK,
        "the elements behind the last whole vector",
        (("if thread < length % 8:", "if thread < 0:"),),
        gate="values",
        sentence="elements behind a length",
        easy="right for lengths that 8 divides",
    ),
    WrongAnswer(
        SINK,
        "a vector that reaches over the length",
        (("if vector < length // 8:", "if vector * 8 < length:"),),
        gate="values",
        sentence="elements differ",
        easy="right for lengths that 8 divides",
    ),
    WrongAnswer(
        SINK,
        "a sink from each thread",
        (("if thread == THREADS - 1:", "if thread >= length % 8:"),),
        gate="values",
        sentence="elements differ",
        easy="right for sinks of -inf",
    ),
    WrongAnswer(
        SINK,
        "the first head's sink for all",
        (("mSink[row % mSink.shape[0]]", "mSink[0 * row]"),),
        gate="values",
        sentence="which head a row has",
        easy="right for one head",
    ),
    WrongAnswer(
        SINK,
        "one warp at work",
        (
            ("cute.ceil_div(length, THREADS * VECTORS * 8)", "cute.ceil_div(length, 32 * VECTORS * 8)"),
            ("(step * VECTORS + j) * THREADS + thread", "(step * VECTORS + j) * 32 + thread"),
            ("if vector < length // 8:", "if vector < length // 8 and thread < 32:"),
        ),
        gate="speed",
        sentence="in flight",
        easy="right values",
    ),
)
