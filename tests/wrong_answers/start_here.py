"""Mistakes that people make in exercise 00, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

MAX = "start_here.max"
MIN = "start_here.min"


def max_instead(name: str, value: str, sentence: str, easy: str) -> WrongAnswer:
    return WrongAnswer(MAX, name, (("return -math.inf", f"return {value}"),), "value", sentence, easy)


def min_instead(name: str, value: str, sentence: str, easy: str) -> WrongAnswer:
    return WrongAnswer(MIN, name, (("return math.inf", f"return {value}"),), "value", sentence, easy)


WRONG_ANSWERS = (
    max_instead("zero", "0", "of [-3, -1, -2] the largest came out as 0", "right where a number is positive"),
    max_instead("minus one", "-1", "the largest came out as -1: the lanes", "right where a number is not negative"),
    max_instead(
        "the lowest finite number",
        "float(np.finfo(np.float32).min)",
        "of [-inf] the largest came out as -3.40282e+38",
        "right where a number is finite",
    ),
    max_instead("the wrong infinity", "math.inf", "of [3, 1, 2] the largest came out as inf", "right for 32 numbers"),
    max_instead("NaN", "math.nan", "returned NaN", "right where a comparison drops NaN"),
    min_instead("zero", "0", "of [3, 1, 2] the smallest came out as 0", "right where a number is negative"),
    min_instead("a large number", "1e9", "the smallest came out as 1e+09", "right where a number is smaller"),
    min_instead("that of the maximum", "-math.inf", "came out as -inf", "right for 32 numbers"),
    WrongAnswer(
        MIN,
        "keeps the larger",
        (("np.minimum(value, other)", "np.maximum(value, other)"),),
        gate="value",
        sentence="keep the smaller of two, not the larger",
        easy="right where all numbers are equal",
    ),
    WrongAnswer(
        MIN,
        "Python's min",
        (("np.minimum(value, other)", "min(value, other)"),),
        gate="value",
        sentence="if, min and max want one",
        easy="right for two numbers",
    ),
    WrongAnswer(
        MIN,
        "adds",
        (("np.minimum(value, other)", "value + other"),),
        gate="value",
        sentence="has to keep the smaller of two values",
        easy="right where all numbers are zero",
    ),
)
