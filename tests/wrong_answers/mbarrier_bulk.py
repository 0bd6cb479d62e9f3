"""Mistakes that people make in exercise 16, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

PHASES = "mbarrier_bulk.phases"
COLUMNS = "mbarrier_bulk.columns"
SCALED = "mbarrier_bulk.scaled"

WRONG_ANSWERS = (
    WrongAnswer(
        PHASES,
        "counts the arrivals only",
        (("if missing == 0 and to_come == 0:", "if missing == 0:"),),
        gate="numbers",
        sentence="its arrivals and its bytes have come, both",
        easy="right without bytes",
    ),
    WrongAnswer(
        PHASES,
        "the second expect replaces the first",
        (
            (
                "over, missing, to_come, found = 0, count, 0, []",
                "over, missing, to_come, said, found = 0, count, 0, 0, []",
            ),
            (
                'to_come += number if kind == "expect" else -number',
                'to_come, said = (to_come - said + number, number) if kind == "expect" else (to_come - number, said)',
            ),
            ("over, missing = over + 1, count", "over, missing, to_come, said = over + 1, count, 0, 0"),
        ),
        gate="numbers",
        sentence="two of them in a phase add up",
        easy="right where all bytes of a phase are expected at once",
    ),
    WrongAnswer(
        PHASES,
        "counts the bytes only",
        (("if missing == 0 and to_come == 0:", "if to_come == 0 and kind == 'bytes':"),),
        gate="numbers",
        sentence="arrival or byte",
        easy="right where the bytes come last",
    ),
    WrongAnswer(
        PHASES,
        "bytes that come early are lost",
        (
            (
                'to_come += number if kind == "expect" else -number',
                'to_come = max(0, to_come + (number if kind == "expect" else -number))',
            ),
        ),
        gate="numbers",
        sentence="bytes may come before they are expected",
        easy="right where a copy is started behind expect",
    ),
    WrongAnswer(
        PHASES,
        "the arrivals are not missing again",
        (("over, missing = over + 1, count", "over = over + 1"),),
        gate="numbers",
        sentence="the next begins with all arrivals missing",
        easy="right in the first phase",
    ),
    WrongAnswer(
        PHASES,
        "the parity of the phase that runs",
        (("return over % 2 != parity", "return over % 2 == parity"),),
        gate="numbers",
        sentence="goes on if the last phase that is over has it",
        easy="it alternates",
    ),
    WrongAnswer(
        COLUMNS,
        "as many arrivals as threads",
        (("came = [b.mbarrier(count=1), b.mbarrier(count=1)]", "came = [b.mbarrier(count=64), b.mbarrier(count=64)]"),),
        gate="checks",
        sentence="arrivals came",
        easy="right where all threads arrive",
    ),
    WrongAnswer(
        COLUMNS,
        "elements for bytes",
        (("came[stage].expect_tx(1024, where=there)", "came[stage].expect_tx(256, where=there)"),),
        gate="checks",
        sentence="expect_tx what all copies bring",
        easy="right for elements of one byte",
    ),
    WrongAnswer(
        COLUMNS,
        "the parity changes each turn",
        (("wait(turn // 2 % 2, where=row < m)", "wait(turn % 2, where=row < m)"),),
        gate="checks",
        sentence="m.wait(phase) before it",
        easy="right with one stage",
    ),
    WrongAnswer(
        COLUMNS,
        "sends again without a barrier",
        (("fill=0)\n        b.bar_sync()\n        send_row", "fill=0)\n        send_row"),),
        gate="checks",
        sentence="nothing between that orders",
        easy="right for a block's last two rows",
    ),
    WrongAnswer(
        COLUMNS,
        "the factors anew for each row",
        (("value * factor, where", "value * b.ld_global(w, 4 * b.tid, vec=4), where"),),
        gate="traffic",
        sentence="load the factors before the first turn",
        easy="right values, nothing to report",
    ),
    WrongAnswer(
        SCALED,
        "the factors one by one",
        (
            (
                "rW[None, j].store(gW[None, thread + j * THREADS].load())",
                "for i in cutlass.range_constexpr(VECTOR):\n"
                "                rW[i, j] = mW[(thread + j * THREADS) * VECTOR + i]",
            ),
        ),
        gate="shape",
        sentence="by four in 128",
        easy="right values",
    ),
    WrongAnswer(
        SCALED,
        "the wait behind the read",
        (
            ("        cute.arch.mbarrier_wait(came + stage, turn // STAGES % 2)\n", ""),
            (
                "        best = block_max(",
                "        cute.arch.mbarrier_wait(came + stage, turn // STAGES % 2)\n        best = block_max(",
            ),
        ),
        gate="values",
        sentence="look at when a stage is read",
        easy="right where the stage holds the same row from before",
    ),
    WrongAnswer(
        SCALED,
        "the largest before the factors",
        (("greatest(rX.load().to(Float32) * rW.load())", "greatest(rX.load().to(Float32))"),),
        gate="values",
        sentence="of what the largest is taken",
        easy="right where all factors are 1",
    ),
    WrongAnswer(
        SCALED,
        "the largest without the sign taken off",
        (("for side in (x, -x))", "for side in (x, x))"),),
        gate="values",
        sentence="of what the largest is taken",
        easy="right where a row's largest magnitude is positive",
    ),
)
