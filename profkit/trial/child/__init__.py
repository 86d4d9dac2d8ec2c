"""What runs inside the measured program: it records steps and results, and turns switches on.

Any Python from 3.9 on loads this package beside the program, without profkit
(`profkit.execution.injection`); `profkit.trial.run` writes the plan that it follows.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from . import forks
from .record import Record, importing

_programs: Any = {}
_imported: list[ModuleType] = []


def install(module: ModuleType) -> None:
    """Hook into a library that has just been imported."""
    if module.__name__ in forks.GENERATORS:
        forks.note(module)
        return
    _imported.append(module)
    if len(_imported) == 1:
        _programs["record"] = record = Record(_plan(os.environ["PROFKIT_TRIAL"]))
        if (outer := importing()) != module.__name__:
            record.facts["importing"] = outer
        for library in _imported[:]:
            _hook(library)
    elif "record" in _programs:
        _hook(module)


def _plan(path: str) -> Any:
    """The plan to follow; without one, in a fork of this process for each that comes."""
    if not os.path.exists(path):
        forks.serve(path)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _hook(module: ModuleType) -> None:
    name, record = module.__name__, _programs["record"]
    if name == "torch":
        from .torch_program import TorchProgram

        _switch("torch", TorchProgram(module, record))
    elif name == "jax":
        from .jax_program import JaxProgram

        _switch("jax", JaxProgram(module, record))
    elif name == "transformers.generation.utils":
        _programs["torch"].watch_generation(module)
    else:
        for function in _programs["jax"].after.get(name, ()):
            function(module)


def _switch(library: str, program: Any) -> None:
    """Turn on the switches of a library that the plan names, as rows of library, file, function."""
    _programs[library] = program
    for needs, path, function in _programs["record"].plan["switches"]:
        if needs == library:
            getattr(_loaded(path), function)(program)


def _loaded(path: str) -> Any:
    """The module of a file of switches, beside which others may be."""
    name = f"profkit_switches_{abs(hash(path))}"
    if name not in sys.modules:
        beside = [os.path.dirname(path)]
        spec = spec_from_file_location(name, path, submodule_search_locations=beside)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
