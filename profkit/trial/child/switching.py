"""Loads the functions of switches, by file, and turns them on."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any


def load_switches(plan: Any, library: str, program: Any) -> None:
    """Turn on the switches of a library that a plan names, as rows of library, file, function."""
    for needs, path, function in plan["switches"]:
        if needs == library:
            getattr(_loaded(path), function)(program)


def _loaded(path: str) -> Any:
    name = f"profkit_switches_{abs(hash(path))}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
