"""What Python imports for a script: the modules beside it, as if the script were the program."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType


@dataclass(eq=False)
class ImportScope:
    """The imports of the scripts in a folder, in force from `enter` until another scope is entered.

    While it is in force the folder leads `sys.path`, and the modules that were imported from it are
    in `sys.modules`; modules of the same names from another script's folder are not.
    """

    folder: Path
    _modules: dict[str, ModuleType] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()

    def enter(self) -> None:
        """Put the scope in force, in place of the one that was."""
        global _current
        if _current is self:
            return
        if _current is not None:
            _current._leave()
        self._present = frozenset(name.partition(".")[0] for name in sys.modules)
        sys.path.insert(0, str(self.folder))
        sys.modules.update(self._modules)
        importlib.invalidate_caches()
        _current = self

    def _leave(self) -> None:
        if str(self.folder) in sys.path:
            sys.path.remove(str(self.folder))
        own = {
            name
            for name, module in list(sys.modules.items())
            if "." not in name and name not in self._present and self._holds(module)
        }
        names = [name for name in sys.modules if name.partition(".")[0] in own]
        self._modules = {name: sys.modules.pop(name) for name in names}

    def _holds(self, module: ModuleType) -> bool:
        """Whether a top-level module lies directly in the folder: a file, or a package there."""
        file = getattr(module, "__file__", None)
        places = getattr(module, "__path__", ()) if file is None else [file]
        for place in map(Path, places):
            path = place.parent if file is not None and place.stem == "__init__" else place
            if path.resolve().parent == self.folder:
                return True
        return False


_current: ImportScope | None = None
_scopes: dict[Path, ImportScope] = {}


def scope_of(folder: Path) -> ImportScope:
    """The scope of the scripts in a folder: loading one again does not import its modules again."""
    return _scopes.setdefault(folder, ImportScope(folder))
