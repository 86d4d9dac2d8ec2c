"""A script that is run again in a child process, to get at the functions that it defines."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from profkit.core.errors import TargetFailed

_NAME = "__profkit_main__"  # not "__main__": what a script guards so is not run again
_running = False


class Reached(BaseException):
    """A script has reached its first measurement; no `except Exception` of it stops that."""


def stop_at_measurement() -> None:
    """Raise Reached where this is a script that is run for its functions; called before one."""
    if _running:
        raise Reached


def run_to_measurement(path: Path) -> ModuleType:
    """Run a script until its first measurement, or its end; its module, which is "__main__" then.

    Raises TargetFailed for a script that can't be read as Python.
    """
    global _running
    spec = importlib.util.spec_from_file_location(_NAME, path)
    if spec is None or spec.loader is None:
        raise TargetFailed(f"{path}: not a Python file", "name it with the extension .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = sys.modules["__main__"] = module  # where pickled arguments look
    _running = True
    try:
        spec.loader.exec_module(module)
    except (Reached, SystemExit):
        pass
    finally:
        _running = False
    return module
