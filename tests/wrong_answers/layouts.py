"""Mistakes that people make in exercise 04, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

SECTORS = "layouts.sectors"
SPLIT = "layouts.split"
FIELD = "layouts.field"

COUNT = "return len({(first + lane * stride) * element_bytes // 32 for lane in range(32)})"
SHARE = "return min(1, 32 / (stride * element_bytes))"
LOAD = "b.ld_global(x, 4 * half, vec=4, where=half < 2 * n)"
STORE = "b.st_global(y, (first_field + c) * n + struct, fields[:, c], where=half < 2 * n)"
LAYOUT = "layout = cute.make_layout((GROUP, groups), stride=(8, 8 * GROUP))"

WRONG_ANSWERS = (
    WrongAnswer(
        SECTORS,
        "the bytes asked for over 32",
        ((COUNT, "return element_bytes"),),
        gate="numbers",
        sentence="the stride spreads them",
        easy="right for neighbours from the beginning of a sector",
    ),
    WrongAnswer(
        SECTORS,
        "the first element forgotten",
        (("{(first + lane * stride)", "{(lane * stride)"),),
        gate="numbers",
        sentence="begins a sector",
        easy="right from the beginning of a sector",
    ),
    WrongAnswer(
        SECTORS,
        "all sectors from the first lane's to the last one's",
        ((COUNT, "return -(-(31 * abs(stride) * element_bytes + element_bytes) // 32)"),),
        gate="numbers",
        sentence="between them nobody touches",
        easy="right where every sector in between is touched",
    ),
    WrongAnswer(
        SECTORS,
        "elements of four bytes",
        (("* element_bytes // 32", "* 4 // 32"),),
        gate="numbers",
        sentence="multiply by element_bytes",
        easy="right for float32",
    ),
    WrongAnswer(
        SECTORS,
        "the share of the elements",
        ((SHARE, "return 1 / stride"),),
        gate="numbers",
        sentence="sectors move as a whole",
        easy="right where an element fills a sector",
    ),
    WrongAnswer(
        SECTORS,
        "more than all",
        ((SHARE, "return 32 / (stride * element_bytes)"),),
        gate="numbers",
        sentence="no more than the whole array",
        easy="right for long strides",
    ),
    WrongAnswer(
        SPLIT,
        "no guard at the load",
        ((LOAD, "b.ld_global(x, 4 * half, vec=4)"),),
        gate="checks",
        sentence="mask lanes past the end",
        easy="right where the blocks are full",
    ),
    WrongAnswer(
        SPLIT,
        "one thread short",
        (("for c in range(4)", "for c in range(3)"),),
        gate="checks",
        sentence="nobody wrote",
        easy="right for three of the four fields",
    ),
    WrongAnswer(
        SPLIT,
        "a struct of four fields",
        (("struct, first_field = half // 2, half % 2 * 4", "struct, first_field = half // 2, half % 2"),),
        gate="checks",
        sentence="writes y[",
        easy="right for the first half",
    ),
    WrongAnswer(
        SPLIT,
        "structs from behind",
        (("(first_field + c) * n + struct", "(first_field + c) * n + n - 1 - struct"),),
        gate="values",
        sentence="and should be",
        easy="the right numbers in each field",
    ),
    WrongAnswer(
        SPLIT,
        "one element a load",
        (
            (
                f"fields = {LOAD}",
                "fields = [b.ld_global(x, 4 * half + c, where=half < 2 * n) for c in range(4)]",
            ),
            ("fields[:, c]", "fields[c]"),
        ),
        gate="traffic",
        sentence="half a struct in one load",
        easy="right values",
    ),
    WrongAnswer(
        SPLIT,
        "the two halves of a struct far apart",
        (
            ("struct, first_field = half // 2, half % 2 * 4", "struct, first_field = half % n, half // n * 4"),
            ("4 * half, vec=4", "8 * struct + first_field, vec=4"),
        ),
        gate="traffic",
        sentence="no sector is asked for twice",
        easy="right values, full stores",
    ),
    WrongAnswer(
        FIELD,
        "the field's number as a stride",
        ((LAYOUT, "layout = cute.make_layout((GROUP, groups), stride=(FIELD, 8 * GROUP))"),),
        gate="values",
        sentence="elements differ",
        easy="compiles",
    ),
    WrongAnswer(
        FIELD,
        "groups beside each other",
        ((LAYOUT, "layout = cute.make_layout((GROUP, groups), stride=(8 * groups, 8))"),),
        gate="values",
        sentence="elements differ",
        easy="right for one group",
    ),
    WrongAnswer(
        FIELD,
        "a grid that rounds down",
        (("cute.ceil_div(mY.shape[0], THREADS)", "mY.shape[0] // THREADS"),),
        gate="values",
        sentence="n = 1",
        easy="right where blocks are full",
    ),
    WrongAnswer(
        FIELD,
        "the guard lets one too many in",
        (("if k < groups:", "if k <= groups:"),),
        gate="values",
        sentence="bytes behind the output",
        easy="right where blocks are full",
    ),
    WrongAnswer(
        FIELD,
        "counted from one",
        (("mX.iterator + FIELD", "mX.iterator + FIELD - 1"),),
        gate="values",
        sentence="elements differ",
        easy="compiles",
    ),
)
