"""`make notebooks`: run lessons and solutions in place on a Hopper GPU and save their outputs."""

import datetime
import sys
import time
from pathlib import Path

CELL_LIMIT = 300  # seconds


def run_notebook(path: Path, device: str) -> float:
    """Run a notebook from top to bottom and save it with its outputs, the device and the date; returns the seconds.

    A cell that raises ends it with nbclient's CellExecutionError, and the file stays as it was.
    """
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    begin = time.perf_counter()
    NotebookClient(
        notebook,
        timeout=CELL_LIMIT,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata["quack_lite"] = {"device": device, "date": datetime.date.today().isoformat()}
    nbformat.write(notebook, path)
    return time.perf_counter() - begin


def main(names: list[str]) -> int:
    """Run the notebooks named, one after the other.

    Refuses without a Hopper GPU, since saved outputs come from one, and beside other processes that hold a GPU, since
    not all that a lesson times waits for the lock.
    """
    from quack_lite import machine

    if not machine.places()["hopper"]:
        print(f"make notebooks needs a Hopper GPU: {machine.reasons('hopper')}", file=sys.stderr)
        return 2
    if others := machine.nvidia_smi("--query-compute-apps=pid"):
        print(
            f"make notebooks: other processes hold a GPU ({len(others)}): end them, or times are theirs too",
            file=sys.stderr,
        )
        return 2
    import torch

    device = torch.cuda.get_device_name()
    for name in names:
        print(f"{name}: {run_notebook(Path(name), device):.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
