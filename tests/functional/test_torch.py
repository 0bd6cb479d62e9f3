"""How the functions sit in torch: autograd, torch.library, torch.compile, streams, graphs, devices, memory."""

import subprocess
import sys
import textwrap

import pytest
import torch

import quack_lite
from functional import problems
from functional.problems import OPERATORS, normal, problem, run, same_bits

pytestmark = pytest.mark.hopper

ROWS, N = 6, 1000


def leaves_of(tensors):
    """Floating tensors require grad."""
    return [x.detach().requires_grad_() if x.is_floating_point() else x for x in tensors]


@pytest.mark.parametrize("name", OPERATORS)
def test_grad_is_recorded_only_where_it_is_wanted(name):
    leaves = leaves_of(problem(name, ROWS, N))
    with torch.no_grad():
        outputs = problems.call(name, *leaves)
    assert not any(y.requires_grad for y in outputs)
    with torch.inference_mode():
        again = problems.call(name, *leaves)
    assert same_bits(outputs, again)
    plain = problems.call(name, *(x.detach() for x in leaves))
    assert same_bits(outputs, plain) and not any(y.requires_grad for y in plain)
    recorded = problems.call(name, *leaves)
    assert all(y.requires_grad for y in recorded) and same_bits([y.detach() for y in recorded], outputs)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_input_is_left_alone(name):
    tensors = problem(name, ROWS, N)
    before = [x.clone() for x in tensors]
    versions = [x._version for x in tensors]
    run(name, tensors)
    assert same_bits(before, tensors) and versions == [x._version for x in tensors]


@pytest.mark.parametrize("name", OPERATORS)
def test_an_output_is_new_memory(name):
    tensors = problem(name, ROWS, N)
    ran = run(name, tensors)
    addresses = [x.untyped_storage().data_ptr() for x in (*tensors, *ran.outputs)]
    assert len(set(addresses)) == len(addresses)


def block(x, residual, target, w1, w2, b2):
    """All operators one behind the other; returns a loss."""
    y, residual = quack_lite.add_rms_norm(x, residual, (x.shape[-1],), w1)
    y = quack_lite.softmax(quack_lite.swiglu(y, quack_lite.rms_norm(residual, (x.shape[-1],), w1)))
    y = quack_lite.layer_norm(quack_lite.copy(y), (x.shape[-1],), w2, b2) + quack_lite.log_softmax(residual)
    return quack_lite.cross_entropy(y, target, label_smoothing=0.1) + quack_lite.cross_entropy(y, target)


@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile_with_its_own_kernels_in_between(dynamic):
    torch.compiler.reset()
    compiled = torch.compile(block, fullgraph=True, dynamic=dynamic)
    for m, n in ((ROWS, N), (9, 520)):
        x, residual = normal(m, n, dtype="float32"), normal(m, n, dtype="float32", seed=1)
        rest = problem("layer_norm", 1, n)[1:]
        leaves = [t.detach().clone().requires_grad_() for t in (x, residual, rest[0], *rest)]
        arguments = (*leaves[:2], problems.labels(m, n), *leaves[2:])
        right = torch.autograd.grad(block(*arguments), leaves)
        for found, wanted in zip(torch.autograd.grad(compiled(*arguments), leaves), right, strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_it_runs_on_the_current_stream(name):
    tensors = problem(name, 1024, 1024)
    right = run(name, tensors)
    late = [torch.zeros_like(x) for x in tensors]
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        for x, value in zip(late, tensors, strict=True):
            x.copy_(value)
        ran = run(name, late, right.sent)
    stream.synchronize()
    assert same_bits(ran.outputs, right.outputs) and same_bits(ran.gradients, right.gradients)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("name", OPERATORS)
def test_it_runs_on_the_device_of_its_tensors(name):
    tensors = problem(name, ROWS, N)
    right = run(name, tensors)
    with torch.cuda.device(0):
        ran = run(name, [x.to("cuda:1") for x in tensors], [dy.to("cuda:1") for dy in right.sent])
        assert torch.cuda.current_device() == 0
    assert all(y.device.index == 1 for y in (*ran.outputs, *ran.gradients))
    assert same_bits([y.to("cuda:0") for y in ran.outputs], right.outputs)
    assert same_bits([g.to("cuda:0") for g in ran.gradients], right.gradients)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_graph_replays_forward_and_backward(name):
    tensors = leaves_of(problem(name, ROWS, N))
    right = run(name, tensors)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run(name, tensors, right.sent)
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        ran = run(name, tensors, right.sent)
    for x in (*ran.outputs, *ran.gradients):
        x.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert same_bits(ran.outputs, right.outputs) and same_bits(ran.gradients, right.gradients)


def test_capture_before_a_warm_up_is_a_clear_error():
    script = """
        import torch, quack_lite
        x = torch.randn(4, 1000, device="cuda")
        try:
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                quack_lite.softmax(x)
        except RuntimeError as error:
            print(error)
        torch.cuda.synchronize()
        print(quack_lite.softmax(x).sum().item())
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "softmax" in ran.stdout and "before the capture" in ran.stdout, ran.stdout
    assert abs(float(ran.stdout.split()[-1]) - 4) < 1e-4


@pytest.mark.parametrize("name", OPERATORS)
def test_opcheck(name):
    """torch's own test of schema, fake tensors and autograd, over every operator that one call goes through."""
    calls = recorded(name)
    assert {op._opname for op, _ in calls} == {name} | ({f"{name}_backward"} if name != "copy" else set())
    for op, arguments in calls:
        torch.library.opcheck(op, arguments, raise_exception=True)


def recorded(name):
    """(operator of ours, its arguments) of one forward and backward."""
    from torch.utils._python_dispatch import TorchDispatchMode

    calls = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function.namespace == "quack_lite":
                calls.append((function, tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in args)))
            return function(*args, **(kwargs or {}))

    with Recorder():
        run(name, problem(name, ROWS, 40))
    return calls


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_add_up_over_two_uses(name):
    tensors = problem(name, ROWS, N, "float32")
    leaves = leaves_of(tensors)
    one = run(name, tensors)
    first, second = problems.call(name, *leaves), problems.call(name, *leaves)
    torch.autograd.backward((*first, *second), (*one.sent, *one.sent))
    assert same_bits([x.grad for x in leaves if x.requires_grad], [2 * g for g in one.gradients])


@pytest.mark.parametrize("used", [0, 1])
def test_an_output_of_add_rms_norm_that_nobody_uses_sends_nothing(used):
    leaves = leaves_of(problem("add_rms_norm", ROWS, N))
    outputs = problems.call("add_rms_norm", *leaves)
    dy = normal(ROWS, N, seed=9)
    gradients = torch.autograd.grad(outputs[used], leaves, dy, materialize_grads=True)
    sent = [dy if i == used else torch.zeros_like(dy) for i in range(2)]
    assert all(map(torch.equal, gradients, run("add_rms_norm", leaves, sent).gradients))


@pytest.mark.parametrize("name", OPERATORS)
def test_a_checkpoint_computes_it_again(name):
    from torch.utils.checkpoint import checkpoint

    tensors = problem(name, ROWS, N)
    right = run(name, tensors)
    leaves = leaves_of(tensors)
    outputs = checkpoint(lambda *given: problems.call(name, *given), *leaves, use_reentrant=False)
    gradients = torch.autograd.grad(outputs, [x for x in leaves if x.requires_grad], right.sent)
    assert same_bits(gradients, right.gradients)


@pytest.mark.parametrize("name", OPERATORS)
def test_only_the_results_take_memory(name):
    tensors = leaves_of(problem(name, 16384, 8192))
    slack = 64 * 2**20  # partial sums of a weight's gradient, statistics of the rows
    first = run(name, tensors)
    results = {"outputs": size_of(first.outputs), "all": size_of((*first.outputs, *first.gradients))}
    sent = first.sent
    del first
    assert peak(lambda: problems.call(name, *(x.detach() for x in tensors))) <= results["outputs"] + slack
    assert peak(lambda: run(name, tensors, sent)) <= results["all"] + slack


def size_of(tensors):
    """Their bytes."""
    return sum(x.numel() * x.itemsize for x in tensors)


def peak(function):
    """The bytes of GPU memory that a call takes at most."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    function()
    return torch.cuda.max_memory_allocated() - before


def test_overwriting_the_logits_takes_no_memory():
    target = problems.labels(4096, 8192)
    logits = normal(4096, 8192).requires_grad_() * 1
    loss = quack_lite.cross_entropy(logits, target, inplace_backward=True)
    assert peak(lambda: torch.autograd.grad(loss, logits)) < 2**20


@pytest.mark.parametrize("name", OPERATORS)
def test_another_number_of_rows_or_a_neighbouring_length_compiles_nothing(name, monkeypatch):
    run(name, problem(name, ROWS, N))

    def refuse(*args, **kwargs):
        raise AssertionError("a kernel was compiled")

    monkeypatch.setattr("quack_lite.launch.compile_host", refuse)
    for m, n in ((1, N), (77, N), (ROWS, N - 1), (ROWS, N + 8)):
        run(name, problem(name, m, n))
