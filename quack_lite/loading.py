"""A Python file as a module, wherever it lies."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load(name: str, path: Path | str) -> ModuleType:
    """Runs the file as the module `name`, which is found under that name from then on."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
