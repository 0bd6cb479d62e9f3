"""Mistakes that people make in exercise 17, planted in its solution."""

from quack_lite.grading.proofs import WrongAnswer

ROOM = "cluster.room"
LARGEST = "cluster.largest"
ARGMAX = "cluster.argmax"

MEET = "    b.cluster_arrive()\n    b.cluster_wait()\n"
READ = "    for rank, warp in np.ndindex(4, 2):\n"
STORE = "    b.st_global(y, row, best[1]"

WRONG_ANSWERS = (
    WrongAnswer(
        ROOM,
        "clusters over the edge of a group",
        (("sum(group // size for group in groups)", "sum(groups) // size"),),
        gate="numbers",
        sentence="a cluster lies in one group",
        easy="right where the size divides each group",
    ),
    WrongAnswer(
        ROOM,
        "the last turn forgotten",
        (("math.ceil(rows / at_a_time(groups, size))", "rows // at_a_time(groups, size)"),),
        gate="numbers",
        sentence="the last turn counts",
        easy="right where the rows fill every turn",
    ),
    WrongAnswer(
        ROOM,
        "a turn too many",
        (("math.ceil(rows / at_a_time(groups, size))", "rows // at_a_time(groups, size) + 1"),),
        gate="numbers",
        sentence="none behind it",
        easy="right where the last turn is not full",
    ),
    WrongAnswer(
        ROOM,
        "the last vector forgotten",
        (("math.ceil(n / 8) <=", "n // 8 <="),),
        gate="numbers",
        sentence="not full",
        easy="right where 8 divides the row",
    ),
    WrongAnswer(
        ROOM,
        "elements for vectors",
        (("math.ceil(n / 8) <=", "n <="),),
        gate="numbers",
        sentence="8 elements",
        easy="right for rows that one block holds by far",
    ),
    WrongAnswer(
        LARGEST,
        "no barrier before the peers are read",
        ((MEET + READ, READ),),
        gate="checks",
        sentence="may not have started",
        easy="right where the peers happen to be faster",
    ),
    WrongAnswer(
        LARGEST,
        "no barrier at the end",
        ((MEET + STORE, STORE),),
        gate="checks",
        sentence="may have ended",
        easy="right where nobody is late",
    ),
    WrongAnswer(
        LARGEST,
        "a barrier of the block only",
        ((MEET + READ, "    b.bar_sync()\n" + READ),),
        gate="checks",
        sentence="may not have started",
        easy="right where the peers happen to be faster",
    ),
    WrongAnswer(
        LARGEST,
        "the own block's pairs only",
        (("b.ld_peer(sV, rank, warp)", "b.ld_peer(sV, b.rank, warp)"), ("(sI, rank, warp)", "(sI, b.rank, warp)")),
        gate="values",
        sentence="and should be",
        easy="right where the first block has the largest",
    ),
    WrongAnswer(
        LARGEST,
        "any of equal values",
        ((" & (a[1] < b[1])", " & (a[1] > b[1])"),),
        gate="values",
        sentence="and should be",
        easy="right where all values differ",
    ),
    WrongAnswer(
        LARGEST,
        "starts from 0",
        (("best = np.full(256, -np.inf, np.float32)", "best = np.full(256, 0, np.float32)"),),
        gate="values",
        sentence="and should be",
        easy="right where a row's maximum is positive",
    ),
    WrongAnswer(
        LARGEST,
        "neighbours to one thread",
        (
            ("for j in range(0, n, 256):", "for j in range(-(-n // 256)):"),
            ("i = j + b.rank * 64 + b.tid", "i = j + (b.rank * 64 + b.tid) * -(-n // 256)"),
        ),
        gate="traffic",
        sentence="neighbouring lanes take neighbouring elements",
        easy="right at every length",
    ),
    WrongAnswer(
        LARGEST,
        "a meeting for each peer",
        ((READ, READ + "        b.cluster_arrive()\n        b.cluster_wait()\n"),),
        gate="traffic",
        sentence="one before the peers are read, one after",
        easy="right at every length",
    ),
    WrongAnswer(
        ARGMAX,
        "no cluster barrier at the end",
        (
            (
                "        mY[row] = best[1]\n    cute.arch.cluster_arrive()\n    cute.arch.cluster_wait()\n",
                "        mY[row] = best[1]\n",
            ),
        ),
        gate="shape",
        sentence="nobody has left",
        easy="right where nobody is late",
    ),
    WrongAnswer(
        ARGMAX,
        "the barrier of the block",
        (
            (
                "    cute.arch.cluster_arrive()\n    cute.arch.cluster_wait()\n    best =",
                "    cute.arch.barrier()\n    best =",
            ),
        ),
        gate="shape",
        sentence="so that they are there",
        easy="right where the peers happen to be faster",
    ),
    WrongAnswer(
        ARGMAX,
        "any of equal values",
        (
            (
                "wins = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))\n    return cutlass",
                "wins = a[0] > b[0]\n    return cutlass",
            ),
        ),
        gate="values",
        sentence="differ",
        easy="right where all values differ",
    ),
    WrongAnswer(
        ARGMAX,
        "half of the peers",
        (("cutlass.range(lane, CLUSTER * WARPS, 32)", "cutlass.range(lane, CLUSTER * WARPS // 2, 32)"),),
        gate="values",
        sentence="differ",
        easy="right where the first half of the blocks has the largest",
    ),
    WrongAnswer(
        ARGMAX,
        "peer and slot in each other's place",
        (
            (
                "(of_peer(sV, k % WARPS, k // WARPS), of_peer(sI, k % WARPS, k // WARPS))",
                "(of_peer(sV, k % WARPS, k // WARPS), of_peer(sI, k // WARPS, k % WARPS))",
            ),
        ),
        gate="values",
        sentence="differ",
        easy="right where one element is in the row",
    ),
)
