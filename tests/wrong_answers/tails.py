"""Mistakes that people make in exercise 07, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

WIDTH = "tails.width"
SCALE = "tails.scale"
ROPE = "tails.rope"

GCD = "math.gcd(16 // itemsize, n, stride, address // itemsize)"

WRONG_ANSWERS = (
    WrongAnswer(
        WIDTH,
        "forgets where the first row starts",
        ((GCD, "math.gcd(16 // itemsize, n, stride)"),),
        gate="numbers",
        sentence="starts at that address",
        easy="right for a tensor of its own",
    ),
    WrongAnswer(
        WIDTH,
        "forgets the stride",
        ((GCD, "math.gcd(16 // itemsize, n, address // itemsize)"),),
        gate="numbers",
        sentence="the second row starts",
        easy="right where rows lie back to back",
    ),
    WrongAnswer(
        WIDTH,
        "forgets the length",
        ((GCD, "math.gcd(16 // itemsize, stride, address // itemsize)"),),
        gate="numbers",
        sentence="reach over its end",
        easy="right where rows lie back to back",
    ),
    WrongAnswer(
        WIDTH,
        "in bytes",
        ((GCD, f"{GCD} * itemsize"),),
        gate="numbers",
        sentence="that is in bytes",
        easy="right for elements of one byte",
    ),
    WrongAnswer(
        WIDTH,
        "a whole vector in front of a row that starts at a boundary",
        (("-(address // itemsize) % vector", "vector - (address // itemsize) % vector"),),
        gate="numbers",
        sentence="so nothing lies before it",
        easy="right where a row starts between two boundaries",
    ),
    WrongAnswer(
        WIDTH,
        "a head longer than its row",
        (("min(-(address // itemsize) % vector, n)", "-(address // itemsize) % vector"),),
        gate="numbers",
        sentence="all of its 3 elements are head",
        easy="right for rows longer than a vector",
    ),
    WrongAnswer(
        WIDTH,
        "elements past the boundary taken for those before it",
        (("-(address // itemsize) % vector", "(address // itemsize) % vector"),),
        gate="numbers",
        sentence="the first multiple of 16 bytes comes 7 elements behind",
        easy="right where a row starts at a boundary, or half-way between two",
    ),
    WrongAnswer(
        SCALE,
        "each row cut as the first",
        (("head = np.minimum(-start % 8, n)", "head = np.minimum(0 * start, n)"),),
        gate="checks",
        sentence="start at a multiple",
        easy="right where 8 divides n",
    ),
    WrongAnswer(
        SCALE,
        "the last vector taken for a full one",
        (("body = (n - head) // 8 * 8", "body = (n - head + 7) // 8 * 8"),),
        gate="checks",
        sentence="n = 13",
        easy="right where 8 divides n",
    ),
    WrongAnswer(
        SCALE,
        "a head longer than its row",
        (("head = np.minimum(-start % 8, n)", "head = -start % 8"),),
        gate="checks",
        sentence="n = 3",
        easy="right for rows longer than a vector",
    ),
    WrongAnswer(
        SCALE,
        "the tail forgotten",
        (("np.where(b.tid < head, b.tid, b.tid + body)", "np.where(b.tid < head, b.tid, n)"),),
        gate="checks",
        sentence="nobody wrote",
        easy="right where 8 divides n",
    ),
    WrongAnswer(
        SCALE,
        "the scale of the thread in place of the row",
        (("b.ld_global(s, b.ctaid)", "b.ld_global(s, b.tid % 9)"),),
        gate="values",
        sentence="and should be",
        easy="right where all scales are equal",
    ),
    WrongAnswer(
        SCALE,
        "the edges scaled twice",
        (("value * factor", "value * factor * factor"),),
        gate="values",
        sentence="and should be",
        easy="right where 8 divides n",
    ),
    WrongAnswer(
        SCALE,
        "an edge at a time",
        (
            ("    value = b.ld_global(x, (b.ctaid, edge), where=edge < n)\n", "    for k in range(14):\n"),
            (
                "    b.st_global(y, (b.ctaid, edge), value * factor, where=edge < n)",
                "        mine = (edge < n) & (b.tid == k)\n"
                "        b.st_global(y, (b.ctaid, edge), "
                "b.ld_global(x, (b.ctaid, edge), where=mine) * factor, where=mine)",
            ),
        ),
        gate="traffic",
        sentence="its edges in two requests",
        easy="right at every length",
    ),
    WrongAnswer(
        ROPE,
        "stores float32",
        (("(one * c - two * s).to(mY.element_type)", "one * c - two * s"),),
        gate="compiles",
        sentence="Type mismatch",
        easy="right where x and y are float32",
    ),
    WrongAnswer(
        ROPE,
        "pairs at least",
        (("launch_rope(mX, mC, mS, mY, stream, 1)", "launch_rope(mX, mC, mS, mY, stream, 2)"),),
        gate="shape",
        sentence="takes single elements",
        easy="right for heads of 64, 80 and 128",
    ),
    WrongAnswer(
        ROPE,
        "nothing promised",
        (("bytes = min(16, width * row.element_type.width // 8)", "bytes = row.element_type.width // 8"),),
        gate="shape",
        sentence="the widest load has",
        easy="right for every head",
    ),
    WrongAnswer(
        ROPE,
        "fits the head, not its half",
        (("mX.shape[2] // 2 | strides", "mX.shape[2] | strides"),),
        gate="values",
        sentence="head size",
        easy="right for heads of 64 and 128",
    ),
    WrongAnswer(
        ROPE,
        "forgets where x starts",
        (("(mX.iterator.toint() | mY.iterator.toint()) // 2", "mY.iterator.toint() // 2"),),
        gate="values",
        sentence="from element",
        easy="right for a tensor of its own",
    ),
    WrongAnswer(
        ROPE,
        "neighbours paired",
        (
            ("two = part(gX, first + half, width)", "two = part(gX, first + width, width)"),
            ("part(gY, first + half, width)", "part(gY, first + width, width)"),
            ("item % vectors * width", "item % vectors * width * 2"),
        ),
        gate="values",
        sentence="head size = 128",
        easy="right for a head of 2",
    ),
    WrongAnswer(
        ROPE,
        "the sign of the other convention",
        (("one * c - two * s", "one * c + two * s"), ("two * c + one * s", "two * c - one * s")),
        gate="values",
        sentence="the sign of each sine",
        easy="right for the token at position 0",
    ),
    WrongAnswer(
        ROPE,
        "one turn of the threads only",
        (
            (
                "for item in cutlass.range(thread, cutlass.Int32(mX.shape[1]) * vectors, THREADS):",
                "for item in cutlass.range(thread, min(cutlass.Int32(mX.shape[1]) * vectors, THREADS), THREADS):",
            ),
        ),
        gate="values",
        sentence="never written",
        easy="right for up to 32 heads of 128",
    ),
    WrongAnswer(
        ROPE,
        "tables of the first token",
        (("part(mC[token, None]", "part(mC[0, None]"), ("part(mS[token, None]", "part(mS[0, None]")),
        gate="values",
        sentence="elements differ",
        easy="right for one token",
    ),
    WrongAnswer(
        ROPE,
        "a block with one warp at work",
        (
            ("cutlass.Int32(mX.shape[1]) * vectors, THREADS)", "cutlass.Int32(mX.shape[1]) * vectors, 1)"),
            ("cutlass.range(thread,", "cutlass.range(0 * thread,"),
        ),
        gate="speed",
        sentence="neighbours in memory",
        easy="right for every head",
    ),
)
