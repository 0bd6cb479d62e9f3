"""Mistakes that people make in exercise 03, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

MOMENTS = "when_it_breaks.moments"
INTERLEAVE = "when_it_breaks.interleave"
CLIP = "when_it_breaks.clip"
ROLL = "when_it_breaks.roll"


def moment(name: str, right: str, wrong: str, sentence: str, easy: str) -> WrongAnswer:
    """One kernel said to fail at another moment."""
    change = ((f'"{name}": "{right}"', f'"{name}": "{wrong}"'),)
    return WrongAnswer(MOMENTS, f"{name} {wrong}", change, gate="moments", sentence=sentence, easy=easy)


WRONG_ANSWERS = (
    moment("clip", "when traced", "never", "the types of the two values", "Python would not mind"),
    moment("prefix", "when traced", "when run", "inside the loop over j", "break is Python"),
    moment("roll", "never", "when run", "nothing stops it", "it reads outside the array"),
    moment("roll", "never", "when traced", "nothing stops it", "the minus sign is there to be read"),
    moment("take", "when run", "never", "past everything", "as for an index that is off by a little"),
    moment("interleave", "when run", "never", "looks at every access", "on a GPU nobody would say so"),
    WrongAnswer(
        INTERLEAVE,
        "the guard of the output",
        (("inside = i < n", "inside = i < 2 * n"),),
        gate="checks",
        sentence="mask lanes past the end",
        easy="as it was, and right where every thread has an element",
    ),
    WrongAnswer(
        INTERLEAVE,
        "one half after the other",
        (("b.st_global(z, 2 * i, ", "b.st_global(z, i, "), ("b.st_global(z, 2 * i + 1, ", "b.st_global(z, n + i, ")),
        gate="values",
        sentence="and should be",
        easy="every element is written, once",
    ),
    WrongAnswer(
        INTERLEAVE,
        "the second guard forgotten",
        (("b.ld_global(y, i, where=inside), where=inside)", "b.ld_global(y, i), where=inside)"),),
        gate="checks",
        sentence="asks for element",
        easy="right where every thread has an element",
    ),
    WrongAnswer(
        INTERLEAVE,
        "both loaded in every warp, masked at the store only",
        (
            ("b.ld_global(x, i, where=inside)", "b.ld_global(x, i % n)"),
            ("b.ld_global(y, i, where=inside)", "b.ld_global(y, i % n)"),
        ),
        gate="traffic",
        sentence="asks for nothing",
        easy="right at every length",
    ),
    WrongAnswer(
        CLIP,
        "one of the two left",
        (("value = -1.0", "value = -1"),),
        gate="compiles",
        sentence="has type `Float32` on one path",
        easy="the first error is gone",
    ),
    WrongAnswer(
        CLIP,
        "returns from the branch",
        (("            value = 1.0", "            mY[i] = 1.0\n            return"),),
        gate="compiles",
        sentence="Early exit (return) is not allowed",
        easy="as one would write it in Python",
    ),
    WrongAnswer(
        CLIP,
        "the limit taken for NaN too",
        (("if value > 1.0:", "if not value <= 1.0:"),),
        gate="values",
        sentence="elements differ",
        easy="right for every number",
    ),
    WrongAnswer(
        CLIP,
        "one side only",
        (("        if value < -1.0:\n            value = -1.0\n", ""),),
        gate="values",
        sentence="elements differ",
        easy="compiles, and is right above -1",
    ),
    WrongAnswer(
        ROLL,
        "without the mend",
        (("        if source < 0:\n            source += n\n", ""),),
        gate="values",
        sentence="elements differ",
        easy="right for a shift of zero or below",
    ),
    WrongAnswer(
        ROLL,
        "n added before the division",
        (
            ("(i - mShift[0]) % n", "(i - mShift[0] + n) % n"),
            ("        if source < 0:\n            source += n\n", ""),
        ),
        gate="values",
        sentence="elements differ",
        easy="right for a shift up to n",
    ),
    WrongAnswer(
        ROLL,
        "the other way round",
        (("(i - mShift[0]) % n", "(i + mShift[0]) % n"),),
        gate="values",
        sentence="elements differ",
        easy="right for a shift of half of n",
    ),
    WrongAnswer(
        ROLL,
        "a tensor taken for a number",
        (("(i - mShift[0]) % n", "(i - mShift) % n"),),
        gate="compiles",
        sentence="it does not compile",
        easy="as torch would take it",
    ),
    WrongAnswer(
        ROLL,
        "added on one side of the branch only",
        (("            source += n", "            wrapped = source + n"), ("mX[source]", "mX[wrapped]")),
        gate="compiles",
        sentence="name 'wrapped' is not defined",
        easy="right for the threads that wrap",
    ),
)
