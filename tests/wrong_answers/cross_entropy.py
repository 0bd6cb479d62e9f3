"""Mistakes that people make in exercise 13, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

BUDGET = "cross_entropy.budget"
MIXED = "cross_entropy.mixed"
ZLOSS = "cross_entropy.zloss"

WRONG_ANSWERS = (
    WrongAnswer(
        BUDGET,
        "bytes taken for elements",
        (("per_clock / (read / itemsize)", "per_clock / read"),),
        gate="numbers",
        sentence="took bytes for elements",
        easy="right for elements of one byte",
    ),
    WrongAnswer(
        BUDGET,
        "rounded down",
        (("per_clock / (read / itemsize)", "per_clock // (read / itemsize)"),),
        gate="numbers",
        sentence="which is rounded",
        easy="right where memory leaves time for a whole number of them",
    ),
    WrongAnswer(
        BUDGET,
        "one SM",
        (("return sms * clock * per_clock / (read", "return clock * per_clock / (read"),),
        gate="numbers",
        sentence="all SMs work",
        easy="right on a GPU of one SM",
    ),
    WrongAnswer(
        BUDGET,
        "one after the other",
        (
            (
                "min(read, *(sms * clock * per_clock / count * itemsize for count, per_clock in needs))",
                "1 / (1 / read + sum(count / (sms * clock * per_clock * itemsize) for count, per_clock in needs))",
            ),
        ),
        gate="numbers",
        sentence="at the same time",
        easy="right where nothing overlaps",
    ),
    WrongAnswer(
        BUDGET,
        "memory forgotten",
        (("min(read, *(", "min(1e9, *("),),
        gate="numbers",
        sentence="more than memory brings",
        easy="right where arithmetic decides",
    ),
    WrongAnswer(
        MIXED,
        "negative labels",
        (("(a >= 0) & ", ""),),
        gate="values",
        sentence="should be nan",
        easy="right for labels that are too large",
    ),
    WrongAnswer(
        MIXED,
        "one class too many",
        (("(a < CLASSES)", "(a <= CLASSES)"),),
        gate="values",
        sentence="should be nan",
        easy="right for labels that are further out",
    ),
    WrongAnswer(
        MIXED,
        "nothing is ignored",
        (("np.where(a == IGNORE_INDEX, 0, picked)", "picked"),),
        gate="values",
        sentence="should be 0",
        easy="right without ignored rows",
    ),
    WrongAnswer(
        MIXED,
        "the second label may ignore too",
        (("np.where(a == IGNORE_INDEX, 0", "np.where((a == IGNORE_INDEX) | (c == IGNORE_INDEX), 0"),),
        gate="values",
        sentence="should be nan",
        easy="right where only the first label is -100",
    ),
    WrongAnswer(
        MIXED,
        "believes the label",
        (("good = (row < m) & (a >= 0) & (a < CLASSES) & (c >= 0) & (c < CLASSES)", "good = row < m"),),
        gate="checks",
        sentence="past the end",
        easy="right for labels that are classes",
    ),
    WrongAnswer(
        MIXED,
        "loads and then looks",
        (("b.ld_global(x, (row, label), where=good)", "b.ld_global(x, (row, np.clip(label, 0, 95)), where=row < m)"),),
        gate="traffic",
        sentence="is ignored or has",
        easy="right values",
    ),
    WrongAnswer(
        ZLOSS,
        "0 times -inf",
        (
            (
                "far = cute.where(x == -math.inf, cute.full_like(x, -200.0), x - finite(maximum))",
                "far = x - finite(maximum)",
            ),
        ),
        gate="values",
        sentence="0 * -inf",
        easy="right for rows of whole vectors without a mask",
    ),
    WrongAnswer(
        ZLOSS,
        "the z of the example",
        (("+ z * lse * lse", "+ 1e-4 * lse * lse"),),
        gate="values",
        sentence="look at labels and z",
        easy="right where z is 1e-4",
    ),
    WrongAnswer(
        ZLOSS,
        "a new maximum changes the sum only",
        (("(value[2] + value[1] * apart) * exp(apart)", "value[2] * exp(apart)"),),
        gate="values",
        sentence="what a new maximum changes",
        easy="right where all lanes have one maximum",
    ),
    WrongAnswer(
        ZLOSS,
        "a large number from a large number",
        (("log(row_sum) - row_far / row_sum", "lse - (row_max + row_far / row_sum)"),),
        gate="values",
        sentence="about 500",
        easy="right for logits about 0",
    ),
    WrongAnswer(
        ZLOSS,
        "one class too many",
        (("target < n:", "target <= n:"),),
        gate="values",
        sentence="elements differ",
        easy="right for labels that are further out",
    ),
    WrongAnswer(
        ZLOSS,
        "one warp at work",
        (
            ("range(thread, n // 8, THREADS * VECTORS, ", "range(thread + thread // 32 * n, n // 8, 32 * VECTORS, "),
            ("if first + j * THREADS < n // 8:", "if first + j * 32 < n // 8:"),
            ("gX[None, first + j * THREADS]", "gX[None, first + j * 32]"),
        ),
        gate="speed",
        sentence="in flight",
        easy="right values",
    ),
)
