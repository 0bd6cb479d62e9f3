"""The language model: it learns with torch's operators on a CPU, and a comparison of two runs sees a fault."""

import contextlib
import json
import math
import statistics

import pytest
import stand_ins
import torch

from quack_lite import catalog, checks, functional, rows
from quack_lite.bench import corpus, records, training
from quack_lite.bench.model import Size, rotary_tables, rotate
from quack_lite.bench.training import FLOAT32, QUACK_LITE, TORCH, TORCHS, Run, Schedule
from quack_lite.draw.training import curves

SIZE = Size(width=32, layers=2, heads=2, hidden=64, length=32)
SCHEDULE = Schedule(steps=30, batch=8, rate=3e-3, rise=5, skipped=2)
TEXT = (records.RECORDS.parent / "LICENSE").read_bytes()  # the same under every version of Python


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """So small a model is faster so, and its bits do not depend on the machine's cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def losses(operators=TORCHS, dtype=torch.float32, device="cpu"):
    """Of a tiny model's first steps."""
    starts = corpus.starts(TEXT, SCHEDULE.steps, SCHEDULE.batch, SIZE.length, seed=0).to(device)
    content = torch.frombuffer(bytearray(TEXT), dtype=torch.uint8).to(device)
    model = training.fresh(SIZE, operators, seed=0, dtype=dtype).to(device)
    return [float(loss) for loss in training.train(model, SCHEDULE, content, starts, SIZE.length)]


def apart(one, other):
    return max(training.differences(one, other))


@pytest.fixture(scope="module")
def plain():
    return losses()


def test_it_learns(plain):
    assert math.isclose(plain[0], math.log(256), rel_tol=0.01)
    assert statistics.mean(plain[-5:]) < 4.5


def test_two_runs_are_equal_whatever_was_drawn_before(plain):
    torch.rand(1)
    assert losses() == plain


@pytest.fixture(scope="module")
def rounded():
    return losses(dtype=torch.bfloat16)


def test_in_bfloat16_it_learns_nearly_the_same(plain, rounded):
    assert 0 < apart(rounded, plain) < 0.005


@pytest.mark.parametrize("dtype, allowed", [(torch.float32, 1e-5), (torch.bfloat16, 1e-3)])
def test_over_stand_ins_of_our_kernels_it_learns_the_same(dtype, allowed, monkeypatch):
    monkeypatch.setattr(rows, "kernel", lambda operator, *key: getattr(stand_ins, operator))
    monkeypatch.setattr(catalog, "partials", lambda *given: 3)
    monkeypatch.setattr(catalog, "groups", lambda *given: 3)
    for module in (checks, functional):
        monkeypatch.setattr(module, "check_input", lambda *given: None)
    assert apart(losses(training.OURS, dtype=dtype), losses(dtype=dtype)) < allowed


def without_the_residuals_own_gradient(x, residual, weight):
    y, total = TORCHS.add_rms_norm(x, residual, weight)
    return y, total.detach()


def without_the_gradient_of_the_statistics(x, residual, weight):
    total = residual + x
    return total * (total.square().mean(-1, keepdim=True) + training.EPS).rsqrt().detach() * weight, total


@pytest.mark.parametrize(
    "name, fault",
    [
        ("add_rms_norm", without_the_residuals_own_gradient),
        ("add_rms_norm", without_the_gradient_of_the_statistics),
        ("swiglu", lambda gate, up: TORCHS.swiglu(gate, up.detach())),
        ("cross_entropy", lambda logits, targets: TORCHS.cross_entropy(logits[:-1], targets[:-1])),
    ],
    ids=["residual", "statistics", "half_a_gradient", "last_row"],
)
def test_a_fault_in_an_operator_is_seen_in_the_losses(name, fault, plain, rounded):
    faulty = losses(TORCHS._replace(**{name: fault}))
    assert apart(faulty, plain) > 2 * apart(rounded, plain)


def test_norms_and_loss_get_float32_the_rest_bfloat16_and_the_loss_a_matrix():
    seen = []

    def spy(operator):
        def called(*tensors):
            seen.append([(*x.shape, str(x.dtype).removeprefix("torch.")) for x in tensors])
            return operator(*tensors)

        return called

    model = training.fresh(SIZE, training.Operators(*map(spy, TORCHS)), seed=0, dtype=torch.bfloat16)
    tokens = torch.zeros(3, 32, dtype=torch.int64)
    model(tokens, tokens)
    stream, weight, low = (3, 32, 32, "float32"), (32, "float32"), (3, 32, 32, "bfloat16")
    add, swiglu = [low, stream, weight], [(3, 32, 64, "bfloat16")] * 2
    block = [add, swiglu, add]
    assert seen == [[stream, weight], *block, *block, [(96, 256, "float32"), (96, "int64")]]


def test_the_text_is_python_and_a_record_names_it():
    content = corpus.text()
    assert len(content) > 10**6 and b"def " in content
    found = corpus.description(content)
    assert found["bytes"] == len(content) and found["text"].startswith("standard library of Python 3")


def test_a_python_without_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus.sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(ValueError, match="no standard library as files"):
        corpus.text()


def test_a_byte_is_predicted_from_those_before_it():
    model = training.fresh(SIZE, TORCHS, seed=0, dtype=torch.float32)
    tokens = torch.arange(SIZE.length)[None]
    ignored = torch.full_like(tokens, -100)
    ignored[0, :10] = tokens[0, 1:11]
    changed = tokens.clone()
    changed[0, 10:] += 1
    assert model(tokens, ignored) == model(changed, ignored)


def test_rotation_keeps_lengths_and_depends_on_the_distance_only():
    cosines, sines = rotary_tables(SIZE).values()
    query, key = (rotate(torch.randn(16).expand(SIZE.length, 16), cosines, sines) for _ in range(2))
    torch.testing.assert_close(query.norm(dim=1), query.norm(dim=1)[:1].expand(SIZE.length))
    torch.testing.assert_close(query[5] @ key[2], query[20] @ key[17])


def test_targets_are_the_tokens_one_further_on():
    tokens, targets = corpus.sequences(torch.arange(9, dtype=torch.uint8), torch.tensor([0, 4]), length=4)
    assert tokens.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]] and targets.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_the_last_sequence_ends_within_the_text():
    assert corpus.starts(b"x" * 5, steps=50, batch=4, length=4, seed=0).max() == 0


def test_the_rate_rises_and_falls_to_nothing():
    schedule = Schedule(steps=100, rise=10)
    rates = [training.share_of_rate(step, schedule) for step in range(101)]
    assert rates[0] == 0.1 and 0.9 < max(rates) <= 1 and rates.index(max(rates)) == 9
    assert math.isclose(rates[100], 0, abs_tol=1e-12)


def made_up():
    falling = [5 - 0.5 * step for step in range(6)]
    return {
        TORCH: Run(falling, [90.0, 80.0, 70.0, 4.2, 4.1, 4.0], 2.0),
        QUACK_LITE: Run([*falling[:3], falling[3] + 0.25, *falling[4:]], [900.0, 3.0, 3.0, 2.1, 2.0, 2.0], 3.0),
        FLOAT32: Run([falling[0] - 0.5, *falling[1:]], [8.0] * 6, 1.0),
    }


def test_the_summary_has_the_largest_differences_and_the_medians_after_the_warm_up():
    assert training.summary(made_up(), skipped=3) == {
        "apart": 0.25,
        "at_step": 3,
        "from_float32": {QUACK_LITE: 0.5, TORCH: 0.5},
        "milliseconds": {TORCH: 4.1, QUACK_LITE: 2.0, FLOAT32: 8.0},
        "speedup": 2.05,
    }


def test_what_is_printed_names_the_difference_the_times_and_the_ratio():
    runs = made_up()
    lines = "\n".join(training.sentences(training.summary(runs, skipped=3), runs))
    assert "quack_lite: 2.00 ms a step" in lines and "0.2500, in step 3" in lines and "2.050 times" in lines


def test_a_loss_that_is_not_a_number_is_infinitely_far_away():
    assert training.differences([1.0, math.nan], [1.0, 2.0]) == [0.0, math.inf]


def test_the_picture_has_a_curve_a_run():
    runs = made_up()
    record = {"parameters": 7.3e6, "device": "a GPU", "date": "2026-01-01", **training.summary(runs, skipped=3)}
    figure = curves(record | {"runs": {name: run._asdict() for name, run in runs.items()}})
    loss, apart, times = figure.axes
    assert [line.get_label() for line in loss.lines] == [TORCH, QUACK_LITE, FLOAT32]
    assert list(loss.lines[1].get_ydata()) == runs[QUACK_LITE].losses
    assert [line.get_label() for line in apart.lines] == [FLOAT32, QUACK_LITE]
    assert [bar.get_width() for bar in times.patches] == [4.1, 2.0]


class Mark:
    """An event of a GPU that takes 5 ms for each step."""

    count = 0

    def __init__(self):
        Mark.count += 1
        self.number = Mark.count

    def elapsed_time(self, later):
        return 5.0 * (later.number - self.number)


def test_a_run_is_recorded_with_losses_times_and_circumstances(tmp_path, monkeypatch, capsys):
    for kind in (torch.Tensor, torch.nn.Module):
        monkeypatch.setattr(kind, "cuda", lambda self: self)
    asked = iter([True])  # by training; torch's optimizer asks later, and would look for a stream
    monkeypatch.setattr(torch.cuda, "is_available", lambda: next(asked, False))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(records, "RECORDS", tmp_path)
    monkeypatch.setattr(records, "circumstances", lambda: {"device": "a GPU", "date": "2026-01-01"})
    replaced = {"mark": Mark, "OURS": TORCHS, "gpu_lock": lambda exclusive: contextlib.nullcontext()}
    monkeypatch.setattr(corpus, "text", lambda: TEXT)
    replaced |= {"Size": lambda: SIZE, "Schedule": lambda: SCHEDULE}
    for name, value in replaced.items():
        monkeypatch.setattr(training, name, value)
    assert training.main() == 0
    record = records.read("model")
    assert record["apart"] == 0 < record["from_float32"][QUACK_LITE] < 0.005 and record["speedup"] == 1
    assert record["text"]["bytes"] == len(TEXT) and record["device"] == "a GPU"
    assert record["size"]["width"] == 32 and record["schedule"]["steps"] == 30 and record["parameters"] > 10**4
    assert all(len(run["losses"]) == len(run["milliseconds"]) == SCHEDULE.steps for run in record["runs"].values())
    assert record["milliseconds"] == {TORCH: 5, QUACK_LITE: 5, FLOAT32: 5}
    assert "written: model.json" in capsys.readouterr().out and len(curves(record).axes) == 3


def test_without_a_gpu_it_says_so(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert training.main() == 1
    assert "training needs an NVIDIA GPU" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted(records.RECORDS.glob("model.json")), ids=lambda path: path.stem)
def test_the_committed_curves_lie_on_each_other(path):
    content = json.loads(path.read_text())
    assert "H200" in content["device"] and content["driver"] and content["date"] and content["versions"]["torch"]
    runs = {name: Run(**run) for name, run in content["runs"].items()}
    found = training.summary(runs, content["schedule"]["skipped"])
    assert found == {name: content[name] for name in found}
    exact = found["from_float32"]
    assert found["apart"] < 2 * exact[TORCH] and exact[QUACK_LITE] < 2 * exact[TORCH]
    assert runs[QUACK_LITE].losses[-1] < 0.5 * runs[QUACK_LITE].losses[0]


@pytest.mark.hopper
def test_with_our_operators_it_learns_the_same():
    found = losses(training.OURS, dtype=torch.bfloat16, device="cuda")
    assert apart(found, losses(dtype=torch.bfloat16, device="cuda")) < 0.1
