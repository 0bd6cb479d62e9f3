"""build: what it takes, what it promises, what it says."""

import pytest

pytestmark = pytest.mark.compile


@pytest.fixture(scope="module")
def doubling():
    import cutlass.cute as cute

    @cute.kernel
    def double_kernel(mX: cute.Tensor, mY: cute.Tensor):
        block, _, _ = cute.arch.block_idx()
        thread, _, _ = cute.arch.thread_idx()
        i = block * 256 + thread
        if i < mX.shape[0]:
            mY[i] = mX[i] + mX[i]

    @cute.jit
    def double(mX: cute.Tensor, mY: cute.Tensor, stream):
        double_kernel(mX, mY).launch(grid=(cute.ceil_div(mX.shape[0], 256), 1, 1), block=(256, 1, 1), stream=stream)

    return double


@pytest.fixture(scope="module")
def built(doubling):
    import torch

    from quack_lite import launch

    x = torch.empty(4, dtype=torch.bfloat16)
    return launch.build(doubling, x, x)


def test_it_compiles_without_a_gpu_for_hopper_and_keeps_ptx_and_facts(built):
    assert ".target sm_" in built.ptx
    assert built.facts.ld_global == {16: 1} and built.facts.block == 256
    assert built.name == "double"


def test_a_cpu_tensor_is_refused_with_what_still_works(built):
    import torch

    with pytest.raises(ValueError, match="double was called with a tensor on cpu; .* read .ptx and .facts"):
        built(torch.empty(4), torch.empty(4))


def test_a_call_goes_past_the_executors_search_for_keywords():
    from types import SimpleNamespace

    from quack_lite import launch

    loaded, not_for_this_machine = (SimpleNamespace(__tvm_ffi_object__=lambda found=f: found) for f in (print, None))
    assert launch.Built("a", loaded, "").function is print
    assert launch.Built("a", not_for_this_machine, "").function is not_for_this_machine


def test_what_is_compiled_already_or_takes_other_arguments_is_refused(doubling, built):
    import torch

    from quack_lite import launch

    x = torch.empty(4)
    with pytest.raises(TypeError, match="double is compiled already"):
        launch.build(built, x, x)
    with pytest.raises(TypeError, match="double takes 3 arguments; 1 tensors and a stream are handed to it"):
        launch.build(doubling, x)
    with pytest.raises(TypeError, match="double takes 3 arguments; 3 tensors and a stream are handed to it"):
        launch.build(doubling, x, x, x)
    with pytest.raises(TypeError, match="a int was given; hand over the @cute.jit function"):
        launch.build(3, x)
    with pytest.raises(TypeError, match="torch.float64 was given; kernels here take"):
        launch.build(doubling, x.double(), x)


def test_timing_an_uncompiled_function_is_refused(doubling):
    from quack_lite.bench.protocol import refuse_uncompiled

    with pytest.raises(TypeError, match="double is not compiled"):
        refuse_uncompiled(doubling)
    refuse_uncompiled(lambda: None)


@pytest.mark.hopper
def test_it_runs_at_any_length_compiled_once(built):
    import torch

    for n in (1, 255, 256, 100_003):
        x = torch.randn(n, device="cuda").bfloat16()
        y = torch.empty_like(x)
        built(x, y)
        assert torch.equal(y, x + x)


@pytest.mark.hopper
def test_a_tensor_that_breaks_the_promised_alignment_is_refused(built):
    import torch

    x = torch.zeros(9, device="cuda", dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="Misaligned"):
        built(x[1:], torch.empty(8, device="cuda", dtype=torch.bfloat16))


@pytest.fixture(scope="module")
def shifting():
    import torch
    from cutlass import cute

    from quack_lite import launch

    @cute.kernel
    def shift_kernel(mX: cute.Tensor, number):
        thread, _, _ = cute.arch.thread_idx()
        if thread < mX.shape[0]:
            mX[thread] = mX[thread] + number

    @cute.jit
    def shift(mX: cute.Tensor, number, stream):
        shift_kernel(mX, number).launch(grid=(1, 1, 1), block=(32, 1, 1), stream=stream)

    return launch.build(shift, torch.empty(2, device="meta"), 0.0)


def test_a_float_stands_for_a_number_that_comes_with_the_call(shifting):
    assert ".param .f32 " in shifting.ptx


@pytest.mark.hopper
def test_the_number_is_that_of_each_call(shifting):
    import torch

    x = torch.zeros(3, device="cuda")
    shifting(x, 1.5)
    shifting(x, 2.0)
    assert x.tolist() == [3.5] * 3
