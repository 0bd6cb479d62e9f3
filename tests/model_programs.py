"""Programs on the Model that the tests of the drawings run."""

import numpy as np

from quack_lite import simt


def warp_total(b, v):
    for mask in (16, 8, 4, 2, 1):
        v = v + b.shfl_bfly(v, mask)
    return v


def block_total(b, v):
    s = b.shared(32, "float32")
    v = warp_total(b, v)
    b.st_shared(s, b.warpid, v, where=b.laneid == 0)
    b.bar_sync()
    return warp_total(b, b.ld_shared(s, b.laneid, where=b.laneid < b.ntid // 32, fill=0))


def block_sum(b, x, y):
    total = block_total(b, b.ld_global(x, b.tid))
    b.st_global(y, 0, total, where=b.tid == 0)


def cluster_sum(b, x, y):
    s, m = b.shared(b.ranks, "float32"), b.mbarrier(1)
    m.expect_tx(4 * b.ranks, where=b.tid == 0)
    m.arrive(where=b.tid == 0)
    b.cluster_arrive()
    total = block_total(b, b.ld_global(x, b.ctaid * b.ntid + b.tid))
    b.cluster_wait()
    b.st_async(s, b.tid, b.rank, total, m, where=b.tid < b.ranks)
    m.wait(0)
    total = warp_total(b, b.ld_shared(s, b.laneid, where=b.laneid < b.ranks, fill=0))
    b.st_global(y, 0, total, where=(b.tid == 0) & (b.rank == 0))


def two_stages(b, x, y, steps):
    s = b.shared((2, b.ntid), "float32")
    b.cp_async(s, (0, b.tid), x, b.tid)
    b.commit_group()
    for j in range(steps):
        if j + 1 < steps:
            b.cp_async(s, ((j + 1) % 2, b.tid), x, (j + 1) * b.ntid + b.tid)
        b.commit_group()
        b.wait_group(1)
        b.st_global(y, j * b.ntid + b.tid, b.ld_shared(s, (j % 2, b.tid)))


def column(b, x, y, pad):
    s = b.shared((32, 32 + pad), "float32")
    b.st_shared(s, (b.laneid, 0), b.ld_global(x, b.tid * 16))
    b.bar_sync()
    b.st_global(y, b.tid, b.ld_shared(s, (b.laneid, 0)))


def lost_warp(b, y):
    b.bar_sync(where=b.warpid != 1)
    b.st_global(y, b.tid, b.tid)


def run_block_sum():
    return simt.run(block_sum, np.arange(128, dtype=np.float32), simt.empty(1, "float32"), grid=1, block=128)


def run_cluster_sum():
    x = np.arange(256, dtype=np.float32)
    return simt.run(cluster_sum, x, simt.empty(1, "float32"), grid=4, block=64, cluster=4)


def run_two_stages():
    x = np.arange(96, dtype=np.float32)
    return simt.run(two_stages, x, simt.empty(96, "float32"), 3, grid=1, block=32)


def run_column(pad):
    x = np.arange(512, dtype=np.float32)
    return simt.run(column, x, simt.empty(32, "float32"), pad, grid=1, block=32)


def run_lost_warp():
    return simt.run(lost_warp, simt.empty(96, "int32"), grid=1, block=96)
