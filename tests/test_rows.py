"""Constants in the place of a weight that is not given; matrices and vectors are in test_ops.py."""

import torch

from quack_lite import rows


def test_a_graph_owns_its_constants(monkeypatch):
    kept = torch.ones(3)
    monkeypatch.setattr(rows, "CONSTANTS", {(1.0, 3, kept.device): kept})
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    assert rows.constant(1.0, 3, kept.device) is kept
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    own = rows.constant(1.0, 3, kept.device)
    assert own is not kept and torch.equal(own, kept)
    assert list(rows.CONSTANTS) == [(1.0, 3, kept.device)]
