"""Switches: what each needs, what it changes, and what to write to keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from profkit.core.errors import UsageError
from profkit.core.suggestion import did_you_mean
from profkit.core.text_files import error_words
from profkit.core.yaml_files import shipped_yaml
from profkit.trial.trial_file import Changes

GROUP = "profkit.switches"
EMPTY = "no-change"
_NAMES = {
    "cuda": "work on a GPU",
    "generate": "call of generate",
    "jax": "call of JAX",
    "transformed": "modules called in transformations, as vmap or grad",
    "changing-dataset": "a dataset that changes as it is read",
}
_FUNCTIONS = Path(__file__).with_name("switches")


class Switch(Struct, frozen=True, eq=False, kw_only=True, forbid_unknown_fields=True):
    """A change of a program from outside.

    `function` is "FILE.FUNCTION" in `switches/`, or a path of a plugin's file and `:FUNCTION`; it
    is called after the import of `library`. `environment` are variables, in which {folder} is the
    trial's folder. The program must have all features of `needs` and none of `unless`. `helps` is
    what a program is limited by that it helps most, and `typical` the gain to expect there. Of a
    `group`, one is used at a time. `start` are seconds that its first run takes to compile.
    """

    name: str
    what: str
    needs: tuple[str, ...]
    changes: Changes
    keep: str
    function: str = ""
    library: str = "torch"
    environment: Mapping[str, str] = {}
    unless: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    typical: float = 1.05
    group: str = ""
    start: float = 0.0

    @property
    def hook(self) -> tuple[str, str, str] | None:
        """The library, the file and the function; None where variables are all."""
        if not self.function:
            return None
        file, colon, function = self.function.rpartition(":")
        if not colon:
            module, _, function = self.function.partition(".")
            file = str(_FUNCTIONS / f"{module}.py")
        return self.library, file, function

    def lacks(self, features: frozenset[str]) -> str:
        """Why the switch does nothing for a program of these features; "" where it may."""
        lacking = (f"no {_named(need)}" for need in self.needs if need not in features)
        beside = (f"not beside {_named(each)}" for each in self.unless if each in features)
        return next(lacking, "") or next(beside, "")


def _named(feature: str) -> str:
    return _NAMES.get(feature, feature.replace("-", " "))


def all_switches(tell: Callable[[str], None] | None = None) -> tuple[Switch, ...]:
    """The shipped switches, then those of plugins; one of a shipped name is left out, and what is
    none, which `tell` is told."""
    shipped = {
        name: msgspec.convert({"name": name, **entry}, Switch)
        for name, entry in shipped_yaml("profkit.trial", "switches.yaml").items()
    }
    plugins = {}
    for entry in entry_points(group=GROUP):
        try:
            switch = _checked(entry.load())
            plugins[switch.name] = switch
        except (Exception, SystemExit) as error:  # whatever a package does at its import
            package = entry.dist.name if entry.dist else entry.module
            if tell:
                tell(f"{package}: its switch {entry.name} is left out: {error_words(error)}")
    return tuple((plugins | shipped).values())


def _checked(switch: Any) -> Switch:
    if not isinstance(switch, Switch):
        raise TypeError("it is not a Switch")
    msgspec.convert(msgspec.to_builtins(switch), Switch)
    return switch


def chosen_switches(names: Sequence[str], switches: Sequence[Switch]) -> tuple[Switch, ...]:
    """Of switches those of these names; without names all but the one that changes nothing.

    Raises UsageError for a name that there isn't.
    """
    by_name = {switch.name: switch for switch in switches}
    for name in names:
        if name not in by_name:
            remedy = did_you_mean(name, sorted(by_name), "see `profkit try --list`")
            raise UsageError(f"{name!r} is not a switch", remedy)
    return tuple(by_name[n] for n in names or [name for name in by_name if name != EMPTY])
