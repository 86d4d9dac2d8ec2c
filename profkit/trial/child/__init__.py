"""What runs inside the measured program: it records steps and results, and turns switches on.

Any Python from 3.9 on loads this package beside the program, without profkit
(`profkit.execution.injection`); `profkit.trial.run` writes the plan that it follows.
"""

from __future__ import annotations

import json
import os
from types import ModuleType
from typing import Any

from .record import Record
from .switching import load_switches

_programs: Any = {}


def install(module: ModuleType) -> None:
    """Hook into a library that has just been imported."""
    with open(os.environ["PROFKIT_TRIAL"], encoding="utf-8") as file:
        plan = json.load(file)
    if "record" not in _programs:
        _programs["record"] = Record(plan)
    record = _programs["record"]
    name = module.__name__
    if name == "torch":
        from .torch_program import TorchProgram

        _programs["torch"] = TorchProgram(module, record)
        load_switches(plan, "torch", _programs["torch"])
    elif name == "jax":
        from .jax_program import JaxProgram

        _programs["jax"] = JaxProgram(module, record)
        load_switches(plan, "jax", _programs["jax"])
    elif name == "transformers.generation.utils":
        _programs["torch"].watch_generation(module)
    else:
        for function in _programs["jax"].after.get(name, ()):
            function(module)
