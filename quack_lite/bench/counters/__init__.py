"""Nsight Compute's counters of the Model's access patterns, read on a GPU: `python -m quack_lite.bench.counters`."""
