"""Which kernel a row gets, and how many rows of partial sums that kernel writes. Nothing is compiled."""

import pytest

from quack_lite import catalog, launch, tiling

RESIDENT = 33  # clusters, odd as on a GPU whose SMs do not all fit into clusters


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch):
    """find gives the plan's kernel instead of the compiled one."""
    monkeypatch.setattr(catalog, "compiled", lambda kernel: kernel)
    monkeypatch.setattr(launch, "resident_clusters", lambda size, device: RESIDENT)
    kept = catalog.find, catalog.group_limits
    for answers in kept:
        answers.cache_clear()
    yield
    for answers in kept:
        answers.cache_clear()


def listed(operator, dtype="bfloat16"):
    return [kernel for kernel in catalog.listed() if (kernel.operator, kernel.dtype) == (operator, dtype)]


def of_plan(operator, **fields):
    """The first kernel of an operator whose plan has these fields."""
    return next(kernel for kernel in listed(operator) if fields.items() <= vars(kernel.plan).items())


def test_lengths_go_on_where_those_of_the_plan_before_end():
    for operator in ("softmax", "softmax_backward", "rms_norm", "add_rms_norm_backward", "layer_norm_backward"):
        lengths = [catalog.lengths(kernel) for kernel in listed(operator)]
        assert lengths[0][0] == 1 and lengths[-1][1] == catalog.longest(operator, "bfloat16")
        assert all(after[0] == before[1] + 1 for before, after in zip(lengths, lengths[1:], strict=False))


@pytest.mark.parametrize("operator", ["copy", "swiglu", "cross_entropy_backward", "smoothed_cross_entropy"])
def test_a_kernel_of_pieces_takes_every_length(operator):
    (kernel,) = listed(operator)
    assert catalog.lengths(kernel) == (1, tiling.MAX_N)
    assert catalog.find(operator, "bfloat16", 1) == catalog.find(operator, "bfloat16", 10**6) == kernel


def test_a_length_that_no_plan_holds_is_refused():
    longest = catalog.longest("rms_norm_backward", "bfloat16")
    assert catalog.find("rms_norm_backward", "bfloat16", longest) == listed("rms_norm_backward")[-1]
    with pytest.raises(ValueError, match=f"a row has {longest + 1} elements; rows of 1 to {longest} elements"):
        catalog.find("rms_norm_backward", "bfloat16", longest + 1)


def test_the_input_decides_the_plan_of_a_pair_of_dtypes():
    for n in (100, 20_000, 131_072):
        pair = catalog.find("add_rms_norm", "bfloat16+float32", n)
        assert pair.plan == catalog.find("add_rms_norm", "bfloat16", n).plan
        assert pair.name != catalog.find("add_rms_norm", "bfloat16", n).name


def test_few_long_rows_get_another_kernel_in_cross_entropy_alone():
    few = [
        operator
        for operator in catalog.OPERATORS
        if catalog.find(operator, "bfloat16", 100_000, few_rows=True) != catalog.find(operator, "bfloat16", 100_000)
    ]
    assert few == ["cross_entropy"]
    assert catalog.find("cross_entropy", "bfloat16", 100_000, few_rows=True).plan.cluster == 16
    assert catalog.find("cross_entropy", "bfloat16", 300, True) == catalog.find("cross_entropy", "bfloat16", 300)


def test_a_name_leads_back_to_its_kernel():
    assert all(catalog.named(kernel.name) == kernel for kernel in catalog.listed())


@pytest.mark.parametrize("operator", ["softmax", "cross_entropy"])
def test_where_no_group_goes_on_all_rows_are_worked_on_at_once(operator):
    assert {catalog.partials(kernel, 10**6, 1000, "cuda") for kernel in listed(operator)} == {10**6}


def test_there_are_as_many_partial_sums_as_groups_fit_on_the_device():
    short, block = of_plan("rms_norm_backward", rows=8), of_plan("rms_norm_backward", rows=1, groups=2)
    cluster = of_plan("rms_norm_backward", cluster=16)
    assert catalog.partials(short, 10**6, 64, "cuda") == 2 * RESIDENT * 8
    assert catalog.partials(block, 10**6, 4096, "cuda") == 2 * RESIDENT
    assert catalog.partials(cluster, 10**6, 131_072, "cuda") == cluster.plan.groups * RESIDENT


def test_a_device_is_asked_once_for_clusters_of_the_plans_size(monkeypatch):
    asked = []
    monkeypatch.setattr(launch, "resident_clusters", lambda *given: asked.append(given) or RESIDENT)
    for m in (10, 100_000):
        catalog.partials(of_plan("layer_norm_backward", cluster=8), m, 30_000, "cuda:1")
    assert asked == [(8, "cuda:1")]


def test_a_forward_has_a_group_for_each_row_or_as_many_as_fit_on_the_device():
    short, long = of_plan("rms_norm", rows=8), of_plan("rms_norm", groups=2)
    assert catalog.groups(short, 10**6, 64, "cuda") == 10**6 // 8
    assert catalog.groups(long, 10**6, 65_536, "cuda") == 2 * RESIDENT
    assert catalog.groups(long, 5, 65_536, "cuda") == 5


@pytest.mark.parametrize("n, waves", [(131_072, 1), (131_068, 2), (131_070, 4), (131_071, 8)])
def test_rows_of_a_group_start_at_one_place_in_a_vector_and_all_groups_end_together(n, waves):
    kernel = of_plan("rms_norm_backward", cluster=16, groups=1)
    assert catalog.groups(kernel, 10**6, n, "cuda") == waves * RESIDENT
    assert waves * n % kernel.plan.vector == 0


@pytest.mark.parametrize("n", [64, 67])
def test_there_are_no_more_partial_sums_than_rows(n):
    kernel = of_plan("rms_norm_backward", rows=8)
    assert [catalog.partials(kernel, m, n, "cuda") for m in (1, 7, 100)] == [1, 7, 100]
