"""Mistakes that people make in exercise 01, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

FLOORS = "speed_of_light.floors"
RULE = "speed_of_light.rule"
BUDGET = "speed_of_light.budget"

BUDGET_LINE = "return sms * lanes * ghz / (copy / (2 * element_bytes))"


def floor(name: str, right: str, wrong: str, sentence: str, easy: str) -> WrongAnswer:
    return WrongAnswer(FLOORS, name, ((right, wrong),), "bytes", sentence, easy)


def budget(name: str, wrong: str, sentence: str, easy: str) -> WrongAnswer:
    return WrongAnswer(BUDGET, name, ((BUDGET_LINE, f"return {wrong}"),), "numbers", sentence, easy)


WRONG_ANSWERS = (
    floor("zeros are read", '"fill": matrix', '"fill": 2 * matrix', "come from nowhere", "right for a copy"),
    floor(
        "in place moves half",
        '"relu in place": 2 * matrix',
        '"relu in place": matrix',
        "in place saves room, not movement",
        "right for the room that it takes",
    ),
    floor(
        "float32 written as bfloat16",
        '"to float32": matrix + m * n * 4',
        '"to float32": 2 * matrix',
        "2 bytes an element are read and 4 are written",
        "right where the dtypes are equal",
    ),
    floor(
        "a loss writes probabilities",
        '"cross entropy": matrix + m * 8 + m * 4',
        '"cross entropy": 2 * matrix + m * 8 + m * 4',
        "no probabilities are written",
        "right for a softmax",
    ),
    floor(
        "the labels forgotten",
        '"cross entropy": matrix + m * 8 + m * 4',
        '"cross entropy": matrix + m * 4',
        "the labels are read too",
        "near enough where n is large",
    ),
    floor(
        "the weight once a row",
        '"rms norm": 2 * matrix + n * 2',
        '"rms norm": 3 * matrix',
        "not once for each row",
        "right for one row",
    ),
    floor("elements for bytes", "matrix = m * n * 2", "matrix = m * n", "an element has 2 bytes", "right for int8"),
    WrongAnswer(
        RULE,
        "the cache asked first",
        (
            ("    if moved / seconds / 1e9 <= peak:\n        return 0", "    if touched <= l2:\n        return 3"),
            ("return 3 if touched <= l2 else 1", "return 0 if moved / seconds / 1e9 <= peak else 1"),
        ),
        gate="timings",
        sentence="that can be, so the answer is 0",
        easy="right for large arrays",
    ),
    WrongAnswer(
        RULE,
        "a GB of 2**30 bytes",
        (("seconds / 1e9", "seconds / 2**30"),),
        gate="timings",
        sentence="a GB is 10^9 bytes",
        easy="right where the figure is far from the peak",
    ),
    WrongAnswer(
        RULE,
        "3 and 1 the wrong way round",
        (("return 3 if touched <= l2 else 1", "return 1 if touched <= l2 else 3"),),
        gate="timings",
        sentence="cannot have come from the cache: that is rule 1, not 3",
        easy="right for what can be",
    ),
    WrongAnswer(
        RULE,
        "everything blamed on the clock",
        (("return 3 if touched <= l2 else 1", "return 1"),),
        gate="timings",
        sentence="may have come from the cache: that is rule 3, not 1",
        easy="right for large arrays, and for the three of the notebook",
    ),
    WrongAnswer(
        RULE,
        "the L2 in 10^6 bytes",
        (("touched <= l2", "touched <= l2 // 2**20 * 10**6"),),
        gate="timings",
        sentence="that is rule 3, not 1",
        easy="right away from the size of the L2",
    ),
    budget(
        "reads only",
        "sms * lanes * ghz / (copy / element_bytes)",
        "that is half",
        "right for an operator that only reads",
    ),
    budget(
        "two operations",
        "2 * sms * lanes * ghz / (copy / (2 * element_bytes))",
        "a multiply-add counts as one",
        "right for operations",
    ),
    budget("one SM", "lanes * ghz / (copy / (2 * element_bytes))", "that is for one SM", "right on a GPU of one SM"),
    budget(
        "GB turned into bytes",
        "sms * lanes * ghz / (copy * 1e9 / (2 * element_bytes))",
        "10^9 too little",
        "right with the clock in ticks a second",
    ),
    budget("the lesson's eight bytes", "sms * lanes * ghz / (copy / 8)", "elements of 4 bytes", "right for float32"),
    budget("upside down", "copy / (2 * element_bytes) / (sms * lanes * ghz)", "over elements", "right where it is 1"),
)
