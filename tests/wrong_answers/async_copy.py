"""Mistakes that people make in exercise 15, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

PAYS = "async_copy.pays"
MODEL = "async_copy.below_the_best"
BELOW = "async_copy.below"

WRONG_ANSWERS = (
    WrongAnswer(
        PAYS,
        "the reserved bytes forgotten",
        (("(shared // blocks - 1024) // row_bytes", "shared // blocks // row_bytes"),),
        gate="numbers",
        sentence="each block loses 1024 bytes",
        easy="right where a row does not come near to filling the rest",
    ),
    WrongAnswer(
        PAYS,
        "the reserved bytes once an SM",
        (("(shared // blocks - 1024) // row_bytes", "(shared - 1024) // blocks // row_bytes"),),
        gate="numbers",
        sentence="once a block, not once an SM",
        easy="right for one block",
    ),
    WrongAnswer(
        PAYS,
        "the reads only",
        (("2 * row_bytes * blocks / rate", "row_bytes * blocks / rate"),),
        gate="numbers",
        sentence="the rate counts both",
        easy="right where nothing is written",
    ),
    WrongAnswer(
        PAYS,
        "a turn as if a block had the SM for itself",
        (("2 * row_bytes * blocks / rate", "2 * row_bytes / rate"),),
        gate="numbers",
        sentence="the rate is shared by",
        easy="right for one block",
    ),
    WrongAnswer(
        PAYS,
        "the part of the turn that is summed in",
        (("max(0, 1 - busy / turn_time(row_bytes, blocks, rate))", "busy / turn_time(row_bytes, blocks, rate)"),),
        gate="numbers",
        sentence="it is in the rest",
        easy="right where a turn is twice as long as the sum",
    ),
    WrongAnswer(
        PAYS,
        "one of the blocks sums all the time",
        (
            (
                "row_bytes * blocks * max(0, 1 - busy / turn_time(row_bytes, blocks, rate))",
                "row_bytes * (blocks - 1)",
            ),
        ),
        gate="numbers",
        sentence="for a part of its turn only",
        easy="right where the sum is one turn, divided by the blocks",
    ),
    WrongAnswer(
        PAYS,
        "pays where just enough is on its way",
        (("< needed", "<= needed"),),
        gate="numbers",
        sentence="and 6592 are needed",
        easy="right wherever the two numbers differ",
    ),
    WrongAnswer(
        PAYS,
        "fewer than no bytes",
        (("max(0, 1 - busy / turn_time(row_bytes, blocks, rate))", "(1 - busy / turn_time(row_bytes, blocks, rate))"),),
        gate="numbers",
        sentence="and never fewer",
        easy="right where a turn is longer than the sum",
    ),
    WrongAnswer(
        PAYS,
        "pays where there is enough",
        (("rate, busy) < needed", "rate, busy) > needed"),),
        gate="numbers",
        sentence="are needed",
        easy="the bytes are right",
    ),
    WrongAnswer(
        MODEL,
        "one group too many on its way",
        (("b.wait_group(1)", "b.wait_group(2)"),),
        gate="checks",
        sentence="may still be on its way to",
        easy="right on a GPU whose memory is quick",
    ),
    WrongAnswer(
        MODEL,
        "no group for a turn that sends nothing",
        (
            (
                "where=row < m)\n    b.commit_group()",
                "where=row < m)\n    if k < -(-m // b.nctaid):\n        b.commit_group()",
            ),
        ),
        gate="checks",
        sentence="may still be on its way to",
        easy="right but for the last rows",
    ),
    WrongAnswer(
        MODEL,
        "the stage sent again before its row is taken out",
        (
            (
                "        value = b.ld_shared(s, (place, mine), vec=4, where=row < m, fill=0)\n"
                "        start(b, s, x, turn + 2, m)",
                "        start(b, s, x, turn + 2, m)\n"
                "        value = b.ld_shared(s, (place, mine), vec=4, where=row < m, fill=0)",
            ),
        ),
        gate="checks",
        sentence="may still be on its way to",
        easy="right for the last two rows of a block",
    ),
    WrongAnswer(
        MODEL,
        "one place for the sums of the warps",
        (
            ("b.st_shared(w, (place, b.warpid)", "b.st_shared(w, (0, b.warpid)"),
            (
                "np.maximum(b.ld_shared(w, (place, 0)), b.ld_shared(w, (place, 1)))",
                "np.maximum(b.ld_shared(w, (0, 0)), b.ld_shared(w, (0, 1)))",
            ),
        ),
        gate="checks",
        sentence="nothing between that orders",
        easy="right for one row a block",
    ),
    WrongAnswer(
        MODEL,
        "waits for all",
        (("b.wait_group(1)", "b.wait_group(0)"),),
        gate="traffic",
        sentence="let one group be on its way behind the wait",
        easy="right values, nothing to report",
    ),
    WrongAnswer(
        MODEL,
        "half a row's best",
        (("np.maximum(b.ld_shared(w, (place, 0)), b.ld_shared(w, (place, 1)))", "b.ld_shared(w, (place, b.warpid))"),),
        gate="values",
        sentence="and should be",
        easy="right where both halves have the same maximum",
    ),
    WrongAnswer(
        MODEL,
        "NumPy's maximum over all threads",
        (("value.max(1)", "value.max()"),),
        gate="traffic",
        sentence="value.max() of all threads",
        easy="right at every number of rows",
    ),
    WrongAnswer(
        MODEL,
        "a second barrier behind the maximum",
        (("        b.bar_sync()\n", "        b.bar_sync()\n        b.bar_sync()\n"),),
        gate="traffic",
        sentence="one barrier a row",
        easy="right at every number of rows",
    ),
    WrongAnswer(
        BELOW,
        "loads beside the copies",
        (
            (
                "rX[None, j].store(sX[None, thread + j * THREADS, stage].load())",
                "rX[None, j].store(row_vectors(mX[row, None])[None, thread + j * THREADS].load())",
            ),
        ),
        gate="shape",
        sentence="every element is to come by the latter",
        easy="right values",
    ),
    WrongAnswer(
        BELOW,
        "lanes without a vector hold 0",
        (("rX.fill(-mX.element_type.inf)", "rX.fill(0.0)"),),
        gate="values",
        sentence="lanes without a vector",
        easy="right where a row's maximum is above 0, or its length is 32768",
    ),
    WrongAnswer(
        BELOW,
        "one group too many on its way",
        (("cp_async_wait_group(STAGES - 1)", "cp_async_wait_group(STAGES)"),),
        gate="values",
        sentence="look at the wait",
        easy="right where a row has come by chance",
    ),
    WrongAnswer(
        BELOW,
        "rows behind the last are sent and the stage of the next turn read",
        (("stage = block + turn * BLOCKS, turn % STAGES", "stage = block + turn * BLOCKS, (turn + 1) % STAGES"),),
        gate="values",
        sentence="the stage that is read",
        easy="right where all rows are equal",
    ),
)
