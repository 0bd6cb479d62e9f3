"""What the compiler makes of the package's kernels, and that the counting can be wrong. No GPU."""

import pytest

from quack_lite import facts

PTX = """
.reqntid 128, 1, 1
	ld.global.v4.b32 	{%r25, %r26, %r27, %r28}, [%rd3];
	ld.global.nc.L1::no_allocate.v2.f32 	{%r1, %r2}, [%rd3];
	ld.global.b16 	%rs1, [%rd3];
	st.global.v4.b32 	[%rd4], {%r1, %r2, %r3, %r4};
	st.shared.v2.b32 	[%r204+136], {%r25, %r26};
	cp.async.cg.shared.global 	[%r1], [%rd1], 16, 16;
	cp.async.commit_group;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];
	cp.async.bulk.commit_group;
	shfl.sync.bfly.b32 	%r205, %r338, 1, 31, -1;
	shfl.sync.idx.b32 	%r258, %r52, 0, 31, -1;
	bar.sync 	0;
	barrier.cluster.arrive.relaxed.aligned;
	barrier.cluster.wait;
	st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32	 [%r256], {%r28, %r29}, [%r257];
"""
REMARKS = """ptxas         .     16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 36 registers, used 1 barriers"""


def test_every_count_comes_from_its_own_line():
    found = facts.read(PTX, REMARKS)
    assert found.ld_global == {128: 1, 64: 1, 16: 1}
    assert found.st_global == {128: 1}
    assert (found.cp_async, found.bulk_copies) == (1, 1)
    assert (found.shfl_bfly, found.barriers, found.cluster_barriers, found.st_async) == (1, 1, 1, 1)
    assert (found.registers, found.spill_bytes, found.stack_bytes, found.block) == (36, 8, 16, 128)
    assert found.cluster is None and found.shared_bytes is None


@pytest.mark.parametrize("line", [line for line in PTX.splitlines() if "\t" in line and "commit" not in line])
def test_a_line_more_changes_the_facts_unless_it_is_not_counted(line):
    counted = "shared.v2" not in line and "shfl.sync.idx" not in line and "cluster.arrive" not in line
    assert (facts.read(PTX + line + "\n", REMARKS) != facts.read(PTX, REMARKS)) == counted


def test_remarks_without_registers_are_an_error():
    with pytest.raises(ValueError, match="no line like .*registers"):
        facts.read(PTX, "")


def test_the_table_leaves_out_what_is_not_known():
    table = facts.read(PTX, REMARKS).table()
    assert "1 x 128-bit, 1 x 64-bit, 1 x 16-bit" in table
    assert "cluster  " not in table and "shared" not in table


def test_a_line_has_the_widths_the_registers_and_the_spill():
    line = facts.read(PTX, REMARKS).line()
    assert line.startswith("loads 1 x 128-bit, 1 x 64-bit, 1 x 16-bit; stores 1 x 128-bit")
    assert line.endswith("36 registers, 8 bytes spilled")


@pytest.mark.compile
class TestThePackagesKernels:
    def facts_of(self, operator, dtype, n):
        from quack_lite import catalog

        return catalog.find(operator, dtype, n).facts

    def test_softmax_bf16_4096_loads_128_bits_and_an_edge_and_spills_nothing(self):
        found = self.facts_of("softmax", "bfloat16", 4096)
        assert found.ld_global == {128: 6, 16: 1} and found.st_global == {128: 6, 16: 1}
        assert found.spill_bytes == found.stack_bytes == 0
        assert found.barriers == 1 and found.st_async == 0

    def test_an_odd_row_has_the_same_kernel(self):
        from quack_lite import catalog

        assert catalog.find("softmax", "bfloat16", 4095) is catalog.find("softmax", "bfloat16", 4096)

    def test_a_cluster_exchanges_one_pair_by_st_async(self):
        found = self.facts_of("softmax", "bfloat16", 131072)
        assert found.st_async == 1 and found.cluster_barriers == 1

    def test_a_norm_brings_its_rows_by_cp_async_and_a_softmax_does_not(self):
        assert self.facts_of("rms_norm", "bfloat16", 8192).cp_async == 4
        assert self.facts_of("rms_norm", "bfloat16", 32768).cp_async > 4
        assert self.facts_of("softmax", "bfloat16", 8192).cp_async == 0

    @pytest.mark.parametrize("dtype, n", [("bfloat16", 256), ("float32", 300_000), ("float16", 262144)])
    def test_no_spill(self, dtype, n):
        assert self.facts_of("softmax", dtype, n).spill_bytes == 0

    def test_copy(self):
        found = self.facts_of("copy", "bfloat16", 1)
        assert found.ld_global == found.st_global == {128: 1, 16: 1}  # a vector, an element after the last vector
