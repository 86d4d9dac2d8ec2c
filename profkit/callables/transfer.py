"""A call passed to a child process: the function by its value or by its place, its arguments.

By value (cloudpickle) nothing of a program is run again. What has no value that could be passed,
as a kernel of Triton's, is found at its place: its script is run again until its first measurement.
The file holds two pickles: the place, None by value, then name, function and arguments. `main` is
the program of the child process.
"""

import importlib.util
import io
import pickle
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from msgspec import Struct

from profkit.callables.examination import Invocation, called
from profkit.capture import driver
from profkit.core.errors import EnvironmentProblem, ProfkitError, TargetFailed
from profkit.core.text_files import brief_words

_MAIN = "__profkit_main__"  # not "__main__": what a script guards so is not run again
_LOCAL = "<locals>"

_running = False


class Place(Struct, frozen=True):
    """Where a function is defined: in a module, that of `script` where it is "__main__".

    `decorated`: there it is measured when it is called, and the function is what it wraps.
    """

    module: str
    qualified_name: str
    script: str = ""
    decorated: bool = False


def dumped(call: Invocation) -> bytes:
    """A call as a file; raises EnvironmentProblem for a function or arguments that can't be."""
    reason = "it has no place in a file, and cloudpickle is not installed"
    if importlib.util.find_spec("cloudpickle"):
        import cloudpickle

        try:
            return _dumped(None, call, call.function, cloudpickle.dump)
        except Exception as error:  # whatever the function refers to may raise
            reason = brief_words(error)
    if place := _place(call.function):
        try:
            return _dumped(place, call, None, pickle.dump)
        except Exception as error:
            reason = brief_words(error)
    raise EnvironmentProblem(
        f"{call.name} can't be passed to a child process: {reason}",
        "define it at the top level of a file, and pass arrays and numbers as arguments",
    )


def _dumped(
    place: Place | None,
    call: Invocation,
    function: Callable[..., Any] | None,
    dump: Callable[[Any, io.BytesIO], None],
) -> bytes:
    file = io.BytesIO()
    pickle.dump(place, file)
    dump((call.name, function, tuple(call.args), dict(call.kwargs)), file)
    return file.getvalue()


def loaded(path: Path) -> Invocation:
    """The call of a file that this profkit has written.

    Raises TargetFailed where its script does not define the function any more.
    """
    with path.open("rb") as file:
        place = pickle.load(file)
        if place and place.script:
            run_to_measurement(Path(place.script))
        name, function, args, kwargs = pickle.load(file)
    if place:
        try:
            function = resolve_name(f"{place.module}:{place.qualified_name}")
        except AttributeError:
            raise TargetFailed(
                f"{place.qualified_name} is not defined before the first measurement of the script",
                "define functions above it",
            ) from None
        function = function.__wrapped__ if place.decorated else function
    return Invocation(name, function, args, kwargs)


def _place(function: Callable[..., Any]) -> Place | None:
    """Where a function can be found again; None for one of a notebook, a lambda, or a local one."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", "")
    if module is None or not name or _LOCAL in name:
        return None
    try:
        there: Any = reduce(getattr, name.split("."), module)
    except AttributeError:
        return None
    decorated = there is not function
    if decorated and getattr(there, "__wrapped__", None) is not function:
        return None
    if module.__name__ != "__main__":
        return Place(module.__name__, name, decorated=decorated)
    file = getattr(module, "__file__", None)
    return Place(module.__name__, name, str(Path(file).resolve()), decorated) if file else None


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
    spec = importlib.util.spec_from_file_location(_MAIN, path)
    if spec is None or spec.loader is None:
        raise TargetFailed(f"{path}: not a Python file", "name it with the extension .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MAIN] = sys.modules["__main__"] = module  # where pickled arguments look
    _running = True
    try:
        spec.loader.exec_module(module)
    except (Reached, SystemExit):
        pass
    finally:
        _running = False
    return module


def main(path: Path) -> None:
    """Call what the file holds, warmed up, inside the region that ncu records."""
    try:
        call = loaded(path)
    except ProfkitError as error:
        sys.exit(f"profkit: {error}")
    called(call)
    driver.start_profiler()
    torch = sys.modules.get("torch")
    by_torch = torch is not None and torch.cuda.is_initialized()
    with torch.cuda.nvtx.range(call.name) if torch and by_torch else nullcontext():
        called(call)
    driver.stop_profiler()
