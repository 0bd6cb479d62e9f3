"""Mistakes that people make in exercise 11, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

LOST = "layer_norm.lost"
CENTRE = "layer_norm.centre"
GROUP = "layer_norm.group_norm"

SHARE = "2**-p * (mean**2 + std**2) / std**2"

WRONG_ANSWERS = (
    WrongAnswer(
        LOST,
        "the error, not its share",
        ((SHARE, "2**-p * (mean**2 + std**2)"),),
        gate="numbers",
        sentence="divide by the variance",
        easy="right where the deviation is 1",
    ),
    WrongAnswer(
        LOST,
        "over the deviation",
        ((SHARE, "2**-p * (mean**2 + std**2) / std"),),
        gate="numbers",
        sentence="the variance is its square",
        easy="right where the deviation is 1",
    ),
    WrongAnswer(
        LOST,
        "the square of the mean alone",
        ((SHARE, "2**-p * mean**2 / std**2"),),
        gate="numbers",
        sentence="also where the mean is 0",
        easy="right far from zero",
    ),
    WrongAnswer(
        LOST,
        "rounds down",
        (("math.ceil(", "math.floor("),),
        gate="numbers",
        sentence="round up, not down",
        easy="right for powers of two",
    ),
    WrongAnswer(
        CENTRE,
        "the padding counted",
        (("[np.where(i < n, value - mean, 0) for", "[value - mean for"),),
        gate="values",
        sentence="and should be",
        easy="right where the threads are full, or the mean is small",
    ),
    WrongAnswer(
        CENTRE,
        "one place for both reductions",
        (
            ("b.st_shared(t, b.warpid, most", "b.st_shared(s, b.warpid, most"),
            ("b.ld_shared(t, warp)", "b.ld_shared(s, warp)"),
        ),
        gate="checks",
        sentence="overwrites s[",
        easy="right where all warps run in step",
    ),
    WrongAnswer(
        CENTRE,
        "a third barrier",
        (
            ("    b.st_shared(t, b.warpid, most", "    b.bar_sync()\n    b.st_shared(s, b.warpid, most"),
            ("b.ld_shared(t, warp)", "b.ld_shared(s, warp)"),
        ),
        gate="traffic",
        sentence="2 are enough",
        easy="right at every length",
    ),
    WrongAnswer(
        CENTRE,
        "no second barrier",
        (("b.laneid == 0)\n    b.bar_sync()\n    most", "b.laneid == 0)\n    most"),),
        gate="checks",
        sentence="nothing between that orders the two",
        easy="right in the plain order of many machines",
    ),
    WrongAnswer(
        CENTRE,
        "a maximum over all threads",
        (("np.max([abs(d) for d in apart], axis=0)", "np.max([abs(d) for d in apart])"),),
        gate="traffic",
        sentence="as if it knew the row",
        easy="right at every length, on no GPU",
    ),
    WrongAnswer(
        CENTRE,
        "a second reduction of NumPy's",
        (
            ("    b.st_shared(t, b.warpid, most, where=b.laneid == 0)\n    b.bar_sync()\n", ""),
            ("np.max([b.ld_shared(t, warp) for warp in range(4)], axis=0)", "np.max(np.abs(apart))"),
        ),
        gate="traffic",
        sentence="numbers left in shared memory by",
        easy="right at every length, on no GPU",
    ),
    WrongAnswer(
        CENTRE,
        "the warps' maxima by NumPy",
        (
            (
                "warp_reduced(b, np.max([abs(d) for d in apart], axis=0), np.maximum)",
                "np.max([abs(d) for d in apart], axis=0).reshape(4, 32).max(axis=1).repeat(32)",
            ),
        ),
        gate="traffic",
        sentence="shuffles by",
        easy="right at every length, on no GPU",
    ),
    WrongAnswer(
        CENTRE,
        "loaded again",
        (
            (
                "for i, value in zip(places, values)]",
                "for i, value in ((i, b.ld_global(x, (b.ctaid, i), where=i < n)) for i in places)]",
            ),
        ),
        gate="traffic",
        sentence="in a list",
        easy="right at every length",
    ),
    WrongAnswer(
        CENTRE,
        "the mean over the threads",
        (("range(4)) / n", "range(4)) / 128"),),
        gate="values",
        sentence="and should be",
        easy="right at n = 128",
    ),
    WrongAnswer(
        CENTRE,
        "no least divisor",
        (("np.maximum(1, np.max(", "np.maximum(1e-9, np.max("),),
        gate="values",
        sentence="and should be",
        easy="right for rows that vary",
    ),
    WrongAnswer(
        GROUP,
        "a channel of the group, not of the image",
        (("c = channel + (thread", "c = (thread"),),
        gate="values",
        sentence="which channel a vector belongs to",
        easy="right for the first group",
    ),
    WrongAnswer(
        GROUP,
        "the group's first channel for all",
        (("c = channel + (thread + j * THREADS) * 8 // pixels", "c = channel"),),
        gate="values",
        sentence="which channel a vector belongs to",
        easy="right where a group has one channel",
    ),
    WrongAnswer(
        GROUP,
        "the padding counted",
        (
            (
                "        if thread + j * THREADS < vectors:\n            d = rX[None, j].load() - mean  # (vector)\n"
                "            squares += total(d * d)",
                "        d = rX[None, j].load() - mean  # (vector)\n        squares += total(d * d)",
            ),
        ),
        gate="values",
        sentence="elements differ",
        easy="right where the threads are full, or the mean is small",
    ),
    WrongAnswer(
        GROUP,
        "one pass",
        (
            ("            d = rX[None, j].load() - mean  # (vector)", "            d = rX[None, j].load()  # (vector)"),
            ("sW[None, 1]) / n + EPS", "sW[None, 1]) / n - mean * mean + EPS"),
        ),
        gate="values",
        sentence="around 1000",
        easy="right where the mean is small",
    ),
    WrongAnswer(
        GROUP,
        "the mean over one channel's pixels",
        (("sW[None, 0]) / n", "sW[None, 0]) / pixels"),),
        gate="values",
        sentence="elements differ",
        easy="right where a group has one channel",
    ),
    WrongAnswer(
        GROUP,
        "the last vectors not stored",
        (("vectors = share * pixels, share * pixels // 8", "vectors = share * pixels, share * pixels // 8 // 2 * 2"),),
        gate="values",
        sentence="unwritten",
        easy="right where a group has an even number of vectors",
    ),
    WrongAnswer(
        GROUP,
        "element by element",
        (("make_tensor(start", "make_tensor(gX.iterator"),),
        gate="shape",
        sentence="take whole vectors",
        easy="right for every group",
    ),
)
