"""Loaded by a child Python before the user's program: `profkit.execution.injection` puts this
folder first on PYTHONPATH.

Any Python from 3.9 on runs it, without profkit. It changes nothing but this: after a module that
PROFKIT_HOOKS names has been imported, or now if it is, `install(module)` of each hook file of it is
called; PROFKIT_EARLY, as "a=b", has module b imported before a, which imports it. A hook that fails
is reported in the file PROFKIT_HOOK_LOG and never in the program. A sitecustomize that this file
hides is executed in its place.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing's, which takes 5 ms to import
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _report(place: str, error: Exception) -> None:
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        with open(os.environ["PROFKIT_HOOK_LOG"], "a", encoding="utf-8") as log:
            log.write(f"{place} in process {os.getpid()}: {text}\n")
    except (KeyError, OSError):
        pass


def _hooks() -> dict[str, list[str]]:
    """Paths of hook files, in their order, by the name of a module."""
    files: dict[str, list[str]] = {}
    for entry in os.environ.get("PROFKIT_HOOKS", "").split(os.pathsep):
        name, _, path = entry.partition("=")
        if path:
            files.setdefault(name, []).append(path)
    return files


def _run(path: str, module: ModuleType) -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    try:
        folder, file = os.path.split(os.path.splitext(path)[0])
        if file == "__init__":  # a package, whose modules import each other
            folder, file = os.path.split(folder)
        name = f"profkit_{os.path.basename(folder)}_{file}"
        hook = sys.modules.get(name)
        if hook is None:
            spec = spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            hook = module_from_spec(spec)
            sys.modules[name] = hook
            spec.loader.exec_module(hook)
        hook.install(module)
    except Exception as error:
        _report(path, error)


class _Loader:
    """A module's own loader, with the hooks after it; it takes itself out again."""

    def __init__(self, loader: Any, files: dict[str, list[str]]) -> None:
        self._loader = loader
        self._files = files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        for path in self._files.pop(module.__name__, ()):
            _run(path, module)


class _Imported:
    """A loader of a module that was imported while it was looked for."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, _: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


class _Finder:
    """Finds the modules that have hooks, by the finders after it."""

    def __init__(self, files: dict[str, list[str]]) -> None:
        self._files = files
        self._later, _, self._early = os.environ.get("PROFKIT_EARLY", "").partition("=")

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == self._later:
            from importlib import import_module
            from importlib.machinery import ModuleSpec

            self._later = ""
            import_module(self._early)
            if name in sys.modules:  # by a hook
                loader: Any = _Imported(sys.modules[name])
                sys.modules[name].__spec__ = ModuleSpec(name, loader)  # which is asked for
                return sys.modules[name].__spec__
        if name not in self._files:
            return None
        for finder in list(sys.meta_path):
            search = getattr(finder, "find_spec", None)
            spec = search(name, path, target) if search and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._files)
                return spec
        return None


def _start() -> ModuleSpec | None:
    """Hook; the spec of the sitecustomize that would have been found without this folder."""
    try:
        from importlib.machinery import PathFinder

        sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
        files = _hooks()
        for name in [each for each in files if each in sys.modules]:  # imported by a .pth file
            for path in files.pop(name):
                _run(path, sys.modules[name])
        if files:
            sys.meta_path.insert(0, _Finder(files))
        return PathFinder.find_spec("sitecustomize", sys.path)
    except Exception as error:
        _report("sitecustomize", error)
        return None


_spec = _start()
if _spec is not None and _spec.loader is not None:
    from importlib.util import module_from_spec as _module_from_spec

    # Failures of it are the program's own, as they would be without this file.
    sys.modules["sitecustomize"] = _module = _module_from_spec(_spec)
    _spec.loader.exec_module(_module)
