"""Mistakes that people make in exercise 18, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

EMPTY = "cluster_async.empty"
COUNT = "cluster_async.count"
MEND = "cluster_async.mend"

SEND = "    b.st_async(s, b.tid % 4, (b.rank, 0), sent, m, where=b.tid < 4)\n"

WRONG_ANSWERS = (
    WrongAnswer(
        EMPTY,
        "blocks for warps",
        (
            (
                "empty += threads // 32 - min(math.ceil(held / 32), threads // 32)",
                "empty += held == 0",
            ),
        ),
        gate="numbers",
        sentence="count warps, not blocks",
        easy="right where nobody has nothing",
    ),
    WrongAnswer(
        EMPTY,
        "whole blocks only",
        (
            (
                "empty += threads // 32 - min(math.ceil(held / 32), threads // 32)",
                "empty += threads // 32 * (held == 0)",
            ),
        ),
        gate="numbers",
        sentence="may have warps that have nothing",
        easy="right where the last block has enough for all of its warps",
    ),
    WrongAnswer(
        EMPTY,
        "a vector too short",
        (("threads - 32 + 1)", "threads - 32)"),),
        gate="numbers",
        sentence="one vector more",
        easy="right to within a vector",
    ),
    WrongAnswer(
        EMPTY,
        "the last warp full",
        (("threads - 32 + 1)", "threads)"),),
        gate="numbers",
        sentence="as soon as one of its lanes",
        easy="right to within a warp",
    ),
    WrongAnswer(
        COUNT,
        "half of the bytes expected",
        (("m.expect_tx(8 * 4", "m.expect_tx(4 * 4"),),
        gate="checks",
        sentence="expects 16 bytes",
        easy="right for a single number",
    ),
    WrongAnswer(
        COUNT,
        "own bytes not expected",
        (("m.expect_tx(8 * 4", "m.expect_tx(8 * 3"),),
        gate="checks",
        sentence="expects 24 bytes",
        easy="right where nobody sends to itself",
    ),
    WrongAnswer(
        COUNT,
        "twice the bytes expected",
        (("m.expect_tx(8 * 4", "m.expect_tx(16 * 4"),),
        gate="checks",
        sentence="waits for ever",
        easy="right for pairs of 64-bit numbers",
    ),
    WrongAnswer(
        COUNT,
        "sent before the peer is ready",
        (("    b.cluster_wait()\n", ""),),
        gate="checks",
        sentence="may not have started",
        easy="right where the peers happen to be faster",
    ),
    WrongAnswer(
        COUNT,
        "nobody waits",
        (("    m.wait(0)\n", ""),),
        gate="checks",
        sentence="may still be on its way",
        easy="right where the bytes happen to be faster",
    ),
    WrongAnswer(
        COUNT,
        "lanes without an element count",
        (("(i < n).astype(np.float32)", "np.ones(256, np.float32)"), ("fill=-np.inf", "fill=-2")),
        gate="values",
        sentence="and should be",
        easy="right where n is 256",
    ),
    WrongAnswer(
        COUNT,
        "the larger side's count only",
        (("a[1] * (a[0] == highest) + b[1] * (b[0] == highest)", "np.where(a[0] >= b[0], a[1], b[1])"),),
        gate="values",
        sentence="and should be",
        easy="right where the largest comes once",
    ),
    WrongAnswer(
        COUNT,
        "lanes without an element count as -inf",
        (("(i < n).astype(np.float32)", "np.ones(256, np.float32)"),),
        gate="values",
        sentence="and should be 37",
        easy="right where a row has a finite element",
    ),
    WrongAnswer(
        COUNT,
        "the lowest number for nothing",
        (("fill=-np.inf", "fill=-3e38"),),
        gate="values",
        sentence="and should be -inf",
        easy="right where a row has an element above it",
    ),
    WrongAnswer(
        COUNT,
        "two stores for a pair",
        (
            (
                SEND,
                "    for part in (0, 1):\n"
                "        b.st_async(s, b.tid % 4, (b.rank, part), pair[part], m, where=b.tid < 4)\n",
            ),
        ),
        gate="traffic",
        sentence="both numbers go in one store",
        easy="right at every length",
    ),
    WrongAnswer(
        COUNT,
        "a meeting at the end",
        ((SEND, SEND + "    b.cluster_arrive()\n    b.cluster_wait()\n"),),
        gate="traffic",
        sentence="one is enough",
        easy="right at every length",
    ),
    WrongAnswer(
        MEND,
        "no guard",
        (("cute.arch.fmax(highest, LOWEST)", "highest"),),
        gate="values",
        sentence="must change nothing",
        easy="right where each warp has a finite element",
    ),
    WrongAnswer(
        MEND,
        "a meeting that was not asked for",
        (
            (
                "    highest, total = Float32(-math.inf), Float32(0.0)\n",
                "    cute.arch.cluster_arrive()\n    cute.arch.cluster_wait()\n"
                "    highest, total = Float32(-math.inf), Float32(0.0)\n",
            ),
        ),
        gate="shape",
        sentence="they are right",
        easy="right at every length",
    ),
    WrongAnswer(
        MEND,
        "the powers added as they are",
        (("total += sV[1, k] * power(sV[0, k], highest)", "total += sV[1, k]"),),
        gate="values",
        sentence="must change nothing",
        easy="right where all maxima are alike",
    ),
    WrongAnswer(
        MEND,
        "each lane's own maximum",
        (("    highest = of_lanes(highest, cute.arch.fmax)\n    for k", "    for k"),),
        gate="values",
        sentence="must change nothing",
        easy="right where all maxima are alike",
    ),
)
