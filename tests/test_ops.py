"""How torch sees the operators: registration, autograd, torch.compile, shapes without data. Kernels are stand-ins."""

import sys
import weakref

import hypothesis.strategies as st
import pytest
import stand_ins
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from torch._subclasses.fake_tensor import FakeTensorMode

import quack_lite

pytestmark = pytest.mark.compile
N, ROWS = 24, 5
LABELS = torch.tensor([0, 7, -100, 23, 7])


@pytest.fixture(scope="module", autouse=True)
def on_the_cpu():
    """The implementations of all operators, for CPU tensors too, over stand-ins of rows.kernel, which it gives."""
    from quack_lite import catalog, checks, functional, rows
    from quack_lite.ops.registry import RUNS

    real_kernel = rows.kernel
    with pytest.MonkeyPatch.context() as patch, torch.library._scoped_library("quack_lite", "IMPL") as library:
        for name, run in RUNS.items():
            library.impl(name, run, "CPU")
        for module in (checks, functional):
            patch.setattr(module, "check_input", lambda *_: None)
        patch.setattr(rows, "kernel", lambda operator, *_: unseen(getattr(stand_ins, operator)))
        patch.setattr(stand_ins, "swiglu_backward", swiglu_backward)
        patch.setattr(catalog, "partials", lambda *_: 3)
        patch.setattr(catalog, "groups", lambda *_: 3)
        patch.setattr(rows, "constant", lambda value, n, _: torch.full((n,), value))
        yield real_kernel


def unseen(kernel):
    """The kernel, of whose writing autograd learns nothing, as on a GPU."""
    return lambda *operands: kernel(*(x.data if isinstance(x, torch.Tensor) else x for x in operands))


def swiglu_backward(dy, gate, up, dgate, dup):
    """Without autograd, which is off inside an operator that opcheck calls."""
    share = torch.sigmoid(gate)
    dgate.copy_(dy * up * share * (1 + gate * (1 - share)))
    dup.copy_(dy * gate * share)


def leaf(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def inputs(name, dtype=torch.float32, rows=ROWS):
    """Tensors that require grad, and the other arguments, of a public function."""
    x, w = leaf(rows, N, dtype=dtype), leaf(N, seed=1)
    labels = LABELS.repeat(rows)[:rows]
    return {
        "rms_norm": ([x, w], lambda x, w: (x, N, w)),
        "add_rms_norm": ([x, leaf(rows, N, dtype=dtype, seed=2), w], lambda x, r, w: (x, r, (N,), w)),
        "layer_norm": ([x, w, leaf(N, dtype=dtype, seed=3)], lambda x, w, b: (x, (N,), w, b)),
        "cross_entropy": ([x], lambda x: (x, labels)),
        "swiglu": ([x, leaf(rows, N, dtype=dtype, seed=2)], lambda gate, up: (gate, up)),
    }.get(name, ([x], lambda x: (x,)))


def outputs(name, *arguments, **options):
    found = getattr(quack_lite, name)(*arguments, **options)
    return found if isinstance(found, tuple) else (found,)


def theirs(name, *arguments):
    """The same by torch's own functions."""
    x, *others = arguments
    if name == "add_rms_norm":
        residual, shape, weight = others
        return F.rms_norm(x + residual, shape, weight, torch.finfo(torch.float32).eps), x + residual
    found = {
        "softmax": lambda: F.softmax(x, -1),
        "log_softmax": lambda: F.log_softmax(x, -1),
        "rms_norm": lambda: F.rms_norm(x, (others[0],), others[1], torch.finfo(torch.float32).eps),
        "layer_norm": lambda: F.layer_norm(x, *others),
        "cross_entropy": lambda: F.cross_entropy(x, *others),
        "swiglu": lambda: F.silu(x) * others[0],
        "copy": lambda: x.clone(),
    }[name]()
    return (found,)


@pytest.mark.parametrize("name", quack_lite.__all__)
def test_outputs_and_gradients_are_those_of_torch(name):
    leaves, arguments = inputs(name)
    ours, torchs = outputs(name, *arguments(*leaves)), theirs(name, *arguments(*leaves))
    upstream = [leaf(*y.shape, seed=9).detach() if y.ndim else torch.tensor(3.0) for y in ours]
    for mine, right in zip(ours, torchs, strict=True):
        torch.testing.assert_close(mine, right)
    gradients = (torch.autograd.grad(ys, leaves, upstream) for ys in (ours, torchs))
    for mine, right in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, right)


@pytest.mark.parametrize("name", quack_lite.__all__)
def test_only_what_requires_grad_gets_a_gradient(name):
    leaves, arguments = inputs(name)
    for i in range(len(leaves)):
        some = [x.detach().requires_grad_(i == j) for j, x in enumerate(leaves)]
        outputs(name, *arguments(*some))[0].sum().backward()
        assert [x.grad is not None for x in some] == [i == j for j in range(len(leaves))]
    with torch.no_grad():
        assert not any(y.requires_grad for y in outputs(name, *arguments(*leaves)))


@pytest.mark.parametrize("name", quack_lite.__all__)
def test_a_gradient_of_a_gradient_is_refused(name):
    leaves, arguments = inputs(name)
    (gradient, *_) = torch.autograd.grad(outputs(name, *arguments(*leaves))[0].sum(), leaves, create_graph=True)
    with pytest.raises(RuntimeError, match=rf"quack_lite\.{name}: a gradient of its gradient was asked for"):
        gradient.sum().backward()


@pytest.mark.parametrize("name", ["layer_norm", "cross_entropy"])
def test_no_zeros_are_made_as_gradients_of_what_a_forward_keeps(name):
    leaves, arguments = inputs(name)
    (y,) = outputs(name, *arguments(*leaves))
    with torch.autograd.profiler.profile() as profile:
        torch.autograd.grad(y, leaves, torch.ones_like(y))
    called = {event.name for event in profile.function_events}
    assert "aten::empty_like" in called and "aten::zeros" not in called


class Ends(torch.autograd.Function):
    """The identity, through which no gradient goes."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, _):
        return None


@pytest.mark.parametrize("name", ["layer_norm", "cross_entropy"])
def test_a_result_that_no_gradient_reaches_sends_none(name):
    leaves, arguments = inputs(name)
    (y,) = outputs(name, *arguments(*leaves))
    found = torch.autograd.grad(Ends.apply(y).sum(), leaves, allow_unused=True)
    assert found == (None,) * len(leaves)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", quack_lite.__all__)
def test_torch_compile_takes_it_whole(name, dynamic):
    torch._dynamo.reset()
    compiled = torch.compile(getattr(quack_lite, name), fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for rows in (5, 8):
        leaves, arguments = inputs(name, torch.bfloat16, rows)
        found = compiled(*arguments(*leaves))
        found, eager = found if isinstance(found, tuple) else (found,), outputs(name, *arguments(*leaves))
        assert all(map(torch.equal, found, eager))
        gradients = [torch.autograd.grad([y.sum() for y in ys], leaves) for ys in (found, eager)]
        assert all(map(torch.equal, *gradients))


def registered():
    """(name, arguments) of calls of every registered operator."""
    x, y, z, w = (leaf(4, 8, dtype=torch.bfloat16, seed=i) for i in range(4))
    weight, labels, ones = w[0].detach().float().requires_grad_(), torch.tensor([0, 7, -100, 3]), torch.ones(4)
    losses = [("mean", 0.0, None), ("sum", 0.1, None), ("none", 0.0, torch.ones(8)), ("mean", 0.1, torch.ones(8))]
    return [
        *((name, (x,)) for name in ("softmax", "log_softmax", "copy")),
        ("copy", (leaf(8, 4).t(),)),
        *((f"{name}_backward", (x, y)) for name in ("softmax", "log_softmax")),
        *(("rms_norm", (x, w, 1e-5)) for w in (weight, None)),
        ("rms_norm_backward", (x, y, weight, 1e-5, True)),
        *(("add_rms_norm", (x, r, weight, 1e-5)) for r in (y, leaf(4, 8))),
        *(("add_rms_norm_backward", (x, r, r, weight, 1e-5, True)) for r in (y, leaf(4, 8))),
        ("layer_norm", (x, weight, weight.detach().bfloat16().requires_grad_(), 1e-5)),
        ("layer_norm", (x, None, None, 1e-5)),
        ("layer_norm_backward", (x, y, weight, ones, ones, True, False)),
        *(("cross_entropy", (x, labels, w, -100, how, smoothing, False)) for how, smoothing, w in losses),
        *(
            (
                "cross_entropy_backward",
                (ones if how == "none" else ones[0], x, labels, w, ones, total, 7, how, smoothing),
            )
            for how, smoothing, w in losses
            for total in [ones.sum() if how == "mean" else ones[:0]]
        ),
        ("swiglu", (x, y)),
        ("swiglu_backward", (x, y, z)),
    ]


@pytest.mark.parametrize("name, arguments", registered(), ids=[name for name, _ in registered()])
def test_opcheck(name, arguments):
    checks = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic", "test_autograd_registration"]
    if name.endswith("_backward"):
        arguments = [x.detach() if isinstance(x, torch.Tensor) else x for x in arguments]
        checks.pop()
    torch.library.opcheck(getattr(torch.ops.quack_lite, name).default, tuple(arguments), test_utils=checks)


def test_every_registered_operator_is_checked():
    from quack_lite.ops.registry import RUNS

    assert {name for name, _ in registered()} == set(RUNS)


@pytest.mark.parametrize("name", quack_lite.__all__)
def test_shapes_without_data(name):
    leaves, arguments = inputs(name, torch.bfloat16)
    real = outputs(name, *arguments(*leaves))
    with FakeTensorMode() as mode, torch.no_grad():
        found = outputs(name, *(mode.from_tensor(x) if isinstance(x, torch.Tensor) else x for x in arguments(*leaves)))
    assert [(y.shape, y.dtype, y.stride()) for y in found] == [(y.shape, y.dtype, y.stride()) for y in real]


class TestInplaceBackward:
    def loss(self, logits):
        return quack_lite.cross_entropy(logits, LABELS, inplace_backward=True)

    def test_the_gradient_lies_where_the_logits_were(self):
        x = leaf(ROWS, N)
        logits = x * 1
        (gradient,) = torch.autograd.grad(self.loss(logits), x)
        (right,) = torch.autograd.grad(F.cross_entropy(x, LABELS), x)
        torch.testing.assert_close(gradient, right)
        assert torch.equal(logits.detach(), gradient)

    def test_a_second_use_is_an_error(self):
        x = leaf(ROWS, N)
        loss = self.loss(x * 1)
        loss.backward(retain_graph=True)
        for second in (loss, self.loss(quack_lite.softmax(x))):
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                second.backward()

    def test_a_leaf_is_refused(self):
        with pytest.raises(ValueError, match="a leaf of the graph"):
            self.loss(leaf(ROWS, N))

    def test_logits_that_cannot_be_written_over_stay(self):
        x = leaf(N, ROWS)
        logits = (x * 1).t()
        before = logits.detach().clone()
        (gradient,) = torch.autograd.grad(self.loss(logits), x)
        assert torch.equal(logits, before)
        torch.testing.assert_close(gradient, torch.autograd.grad(F.cross_entropy(x.t(), LABELS), x)[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_residual_whose_gradient_nobody_wants(dtype):
    x, residual, weight = leaf(ROWS, N, dtype=torch.bfloat16), leaf(ROWS, N, dtype=dtype, seed=1), leaf(N)
    both = quack_lite.add_rms_norm(x, residual, N, weight)
    for some in ([0], [1], [0, 1]):
        ours = torch.autograd.grad([both[i].sum() for i in some], [x, residual, weight], None, True, allow_unused=True)
        total = x.detach().float() + residual.detach().float()
        total = total.to(dtype).float().requires_grad_()
        right = [F.rms_norm(total, (N,), weight, torch.finfo(torch.float32).eps), total]
        d, dw = torch.autograd.grad([right[i].sum() for i in some], [total, weight], allow_unused=True)
        torch.testing.assert_close(ours[0], d.bfloat16(), rtol=2**-6, atol=2**-6)
        torch.testing.assert_close(ours[1], d.to(dtype), rtol=2**-6, atol=2**-6)
        assert (ours[2] is None) == (dw is None)


@st.composite
def views(draw):
    """(m, n) or (k, m, n) tensors of every stride and offset."""
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16]))
    shape = draw(st.lists(st.integers(1, 20), min_size=1, max_size=3))
    strides = draw(st.lists(st.sampled_from([0, 1, 2, 8, 17, 24]), min_size=len(shape), max_size=len(shape)))
    offset = draw(st.integers(0, 17))
    flat = torch.arange(2048.0).to(dtype)
    return flat.as_strided(shape, strides, offset)


@settings(max_examples=300, deadline=None)
@given(x=views(), boundary=st.sampled_from([16, 32]))
def test_rows_keep_their_values_and_start_where_those_of_a_new_tensor_do(x, boundary):
    from quack_lite import rows

    found = rows.matrix(x, boundary)
    assert torch.equal(found, x.reshape(-1, x.shape[-1]))
    assert found.stride(1) == 1
    assert all(found[i].data_ptr() % boundary == i * found.shape[1] * x.itemsize % boundary for i in range(len(found)))


def test_rows_are_not_copied_without_need():
    from quack_lite import rows

    x = torch.zeros(6, 64)
    for view in (x, x[::2], x[:, :32], x.view(2, 3, 64), x[1:2, 4:8], x[:1].expand(6, 64)):
        assert rows.matrix(view).data_ptr() == view.data_ptr()
    for view in (x[:, 1:33], x[:, ::2], x.t()):
        assert rows.matrix(view).data_ptr() != view.data_ptr()


def test_a_new_tensor_is_a_matrix_without_a_copy():
    from quack_lite import rows

    for shape in ((6, 64), (2, 3, 64), (64,), (3, 1), (1, 1, 1)):
        y = rows.fresh(torch.zeros(shape))
        assert rows.flat(y).data_ptr() == y.data_ptr()
        assert rows.flat(y).shape == (y.numel() // shape[-1], shape[-1])
        assert rows.flat(y).stride() == (shape[-1], 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize(
    "shape, strides", [((9,), (1,)), ((9,), (3,)), ((9,), (0,)), ((1,), (5,)), ((), ()), ((3, 2), (1, 4))]
)
def test_a_vector_has_stride_1_and_the_dtype_that_is_asked_for(dtype, shape, strides):
    from quack_lite import rows

    values = torch.arange(64.0).to(dtype).as_strided(shape, strides, 2)
    found = rows.column(values, torch.float32)
    assert found.dtype == torch.float32 and found.stride() == (1,)
    assert torch.equal(found, values.reshape(-1).float())
    as_it_is = dtype == torch.float32 and strides == (1,)
    assert (found.data_ptr() == values.data_ptr()) == (as_it_is or (dtype == torch.float32 and values.numel() == 1))


def test_products_of_whole_pieces_are_taken_as_they_are_and_others_as_longer_rows():
    from quack_lite import catalog
    from quack_lite.ops.swiglu import PIECES, matrices

    assert all(PIECES % catalog.plan("swiglu", dtype, 1).capacity == 0 for dtype in catalog.FLOATS)
    for m, n, shape in ((4, 2048, (4, 2048)), (64, 512, (1, 2**15)), (3, 1000, (3, 1000)), (1024, 1000, (125, 8192))):
        x = torch.zeros(m, n)
        assert [found.shape for found in matrices(x, x)] == [shape, shape]
        assert all(found.data_ptr() == x.data_ptr() for found in matrices(x, x))


def test_more_elements_than_a_launch_takes_are_copied_in_parts(monkeypatch):
    monkeypatch.setattr(sys.modules["quack_lite.ops.copy"], "MOST_ELEMENTS", 16)
    for n in (15, 16, 17, 40):
        x = torch.arange(float(n))
        assert torch.equal(quack_lite.copy(x), x)


def test_few_constants_are_kept():
    from quack_lite import rows

    kept, first = {}, torch.ones(1)
    rows.keep(kept, 0, first)
    gone = weakref.ref(first)
    del first
    for n in range(1, 100):
        rows.keep(kept, n, torch.ones(1))
    assert len(kept) == rows.KEPT and 99 in kept and gone() is None


def test_a_kernel_that_is_new_while_a_graph_is_captured(on_the_cpu, monkeypatch):
    from quack_lite import catalog, rows

    kernel = on_the_cpu
    monkeypatch.setattr(rows, "BUILT", {})
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(RuntimeError, match=r"softmax: .* being captured: call the operator once .* \(warm up\)"):
        kernel("softmax", "float32", 77)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(catalog, "find", lambda *key: key)
    found = kernel("softmax", "float32", 77)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert kernel("softmax", "float32", 77) is found
