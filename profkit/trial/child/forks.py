"""A process that has imported what the program imports, and is forked for each run.

It is the program itself, stopped where it imports torch: a fork goes on from there, with arguments,
variables, folder and handlers of its own as they are in a fresh process. What a fork can't inherit
(a device in use, threads) is a reason against it, by which `profkit.trial.prepared` starts anew.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import stat
import sys
import threading
import time
from importlib.util import find_spec
from itertools import chain
from types import ModuleType
from typing import Any

from .state import is_installed

GENERATORS = ("random", "numpy.random")
_LATE = ("torch._inductor", "triton", "jax")  # they start processes and threads, or hook into fork
_POLLED = 0.002  # s, chosen: no time beside that of a run
_IN_USE = "use the GPU"
_TIMED_OUT = 124  # as of timeout(1)
_IMPORTING = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1", "TORCH_WARM_POOL": "0"}  # no device, no threads
_AFTER = 2.0  # s, as of `trial.run`
_DRAWS = 1000  # chosen: words of 32 bits, more than imports draw for names
# Read when a device is first used, or when a function of a library is called.
_DEVICE = ("CUDA_MODULE_LOADING", "CUDA_DEVICE_ORDER")
_OWN = ("PROFKIT_", *_DEVICE, *_IMPORTING, "PL_", "ACCELERATE_", "TRITON_")
_seeded: dict[str, bytes] = {}
_before = dict(os.environ)


def note(module: ModuleType) -> None:
    """Keep the state of a generator of random numbers as it is after its import."""
    _seeded[module.__name__] = _state(module)


def changed() -> list[str]:
    """The environment variables that have changed since torch was imported."""
    names = _before.keys() | os.environ.keys()
    return sorted(name for name in names if _before.get(name) != os.environ.get(name))


def serve(path: str) -> None:
    """Return in a fork of this process, each time that a plan is at `path`; modules that are named
    beside it are imported before."""
    folder = os.path.dirname(path)
    named, fault = os.path.join(folder, "modules"), ""
    while not fault:
        if os.path.exists(named):
            fault = _say(folder, named)
        elif not os.path.exists(path):
            time.sleep(_POLLED)
        else:
            states = _states()
            process = os.fork()
            if not process:
                _begin(folder, states.get("random"))
                return
            status = _end(process, path)
            os.unlink(path)
            write(folder, "end", status)
    os._exit(0)


def _say(folder: str, named: str) -> str:
    """Import what is named; why forks would not be as fresh processes, "" where they are."""
    try:
        with open(named, encoding="utf-8") as file:
            first = json.load(file)
        os.unlink(named)
        before = _states()
        package = _import(first["modules"])
        fault = _fault(set(first["changed"])) if not package else f"imports of {package} {_IN_USE}"
        if not _is_as_before({**_seeded, **before}):
            fault = fault or "its imports seed or draw random numbers"
    except Exception as error:
        package, fault = "", repr(error)
    write(folder, "ready", {"fault": fault, "package": package, "parent": os.getppid()})
    return fault


def _is_as_before(states: dict[str, bytes]) -> bool:
    """Whether imports have left generators as they were; numbers of `random` that were drawn while
    nobody had seeded it are taken back, as they only lead from one random state to another."""
    module: Any = sys.modules["random"]
    first = pickle.loads(_seeded["random"])
    generator, after = module.Random(), module.getstate()
    generator.setstate(first)
    for _ in range(_DRAWS):
        if generator.getstate() == after:
            module.setstate(first)
            states["random"] = _seeded["random"]
            break
        generator.getrandbits(32)
    return all(state == states.get(name) for name, state in _states().items())


def _import(names: Any) -> str:
    """Import modules; the package after which the GPU is in use, "" without."""
    saved = {name: os.environ[name] for name in _IMPORTING if name in os.environ}
    os.environ.update(_IMPORTING)
    culprit = package = ""
    late = (name for name in names if name not in sys.modules)
    for name in chain(late, ["torch._dynamo"]):  # the last, for what is before it
        if name.split(".")[0] != package:
            if _has_device():
                culprit = package
                break
            package = name.split(".")[0]
        if not name.startswith(_LATE):
            with contextlib.suppress(Exception):
                module, is_statement, parts = name.partition(".:")  # which loads parts, perhaps
                if not is_statement or is_installed(str(getattr(find_spec(package), "origin", ""))):
                    __import__(module, fromlist=["__name__", *filter(None, parts.split(","))])
    for name in _IMPORTING:
        os.environ.pop(name, None)
    os.environ.update(saved)
    return culprit


def _has_device() -> bool:
    """Whether this process uses a device, or has asked for one, which a fork can't use again."""
    torch = sys.modules["torch"]
    numbers = os.listdir("/proc/self/fd")
    if any("nvidia-uvm" in os.path.realpath(f"/proc/self/fd/{number}") for number in numbers):
        return True
    process = os.fork()
    if not process:
        os._exit(bool(torch.cuda._is_in_bad_fork()))
    return bool(os.waitpid(process, 0)[1] or torch.cuda.is_initialized())


def _fault(program: set[str]) -> str:
    """Why forks of this process would not be as fresh ones, "" where they are."""
    if _has_device():
        return f"its imports {_IN_USE}"
    # Forks share positions and locks of a file, and what comes over a connection.
    opened = map(int, os.listdir("/proc/self/fd"))
    shared = [os.path.realpath(f"/proc/self/fd/{n}") for n in opened if n > 2 and _is_shared(n)]
    if shared:
        return f"it opens {os.path.basename(min(shared))} before its imports"
    others = [n for n in sorted(program - set(changed())) if not n.startswith(_OWN)]
    if others:
        return "it sets " + ", ".join(others) + " between imports"
    if threading.active_count() > 1 or threading.current_thread() is not threading.main_thread():
        return "its imports start threads"
    # Libraries that take part in a fork, BLAS for instance, have ended their threads for it.
    return "its imports start threads" if len(_threads()) > 1 else ""


def _threads() -> list[str]:
    """Names of the threads of this process that a fork lacks: jemalloc makes its own again."""
    names = []
    for task in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{task}/comm", encoding="utf-8") as file:
            names.append(file.read().strip())
    return [name for name in names if name != "jemalloc_bg_thd"]


def _is_shared(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:  # the listing's own
        return False
    return stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def _states() -> dict[str, bytes]:
    names = ("torch", *GENERATORS)
    return {name: _state(sys.modules[name]) for name in names if name in sys.modules}


def _state(module: ModuleType) -> bytes:
    if module.__name__ == "torch":
        return bytes(module.get_rng_state().tolist())
    return pickle.dumps((getattr(module, "getstate", None) or module.get_state)())


def _begin(folder: str, state: bytes | None) -> None:
    """Make this fork a process of its own: its output, and numbers of `random`, of which this is
    the state, where nobody has seeded it."""
    os.setsid()
    for name in ("PROFKIT_SEEDED", "PROFKIT_SEEDED_RANK"):
        if os.environ.get(name) == str(os.getppid()):
            os.environ[name] = str(os.getpid())
    output = os.open(os.path.join(folder, "output"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with open(os.path.join(folder, "before"), "rb") as before:
        os.write(output, before.read())
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    if stat.S_ISREG(os.fstat(0).st_mode):  # whose position forks share
        place = os.lseek(0, 0, os.SEEK_CUR)
        os.dup2(os.open("/proc/self/fd/0", os.O_RDONLY), 0)
        os.lseek(0, place, os.SEEK_SET)
    module: Any = sys.modules.get("random")
    if state is not None and _seeded.get("random") == state:
        module.seed()
    elif state is not None:  # it is seeded anew in each fork
        module.setstate(pickle.loads(state))


def _end(process: int, path: str) -> int:
    """The exit status of a fork, 124 after the time that its plan gives; nothing is left of it."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    end, marker, is_stopped = time.monotonic() + plan["timeout"], plan["folder"] + "/stopped", False
    ended = status = 0
    while not ended and time.monotonic() < end:
        time.sleep(_POLLED)
        ended, status = os.waitpid(process, os.WNOHANG)
        if not is_stopped and os.path.exists(marker):  # others may wait for what was stopped
            is_stopped, end = True, min(end, time.monotonic() + _AFTER)
    with contextlib.suppress(OSError):
        os.killpg(process, signal.SIGKILL)
    if not ended:
        os.waitpid(process, 0)
        return 0 if is_stopped else _TIMED_OUT
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def write(folder: str, name: str, document: Any) -> None:
    """Write a file of JSON that others see as a whole or not at all."""
    path = os.path.join(folder, name)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(document, file)
    os.replace(f"{path}.part", path)
