"""What launches the kernels of a step: ranges of the user, else operators, else modules.

Modules have ranges in some calls alone, mostly before the steps. A kernel's time in the steps is
divided among them as its launches in these calls are, those outside of modules included.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from profkit.core.grouping import grouped
from profkit.core.typed_file import Amount, Model
from profkit.timeline import modules, nesting
from profkit.timeline.events import Events
from profkit.timeline.modules import ModuleLabel

_CALLERS = 2  # that are named, chosen
_CALLER = 0.1  # of a group's time from which one is, chosen
_MOST = 2 / 3  # of a group's time in the named modules, chosen; else those around them are
_ALONE = 0.9  # of a group's time from which no share is shown, chosen
_PAUSE = 0.5  # of a step, chosen: calls with ranges are no further apart
_NUMBERS = re.compile(r", (op_id|seq|sizes|input_op_ids)\b.*")
"""What torch's emit_nvtx puts behind the name of an operator."""
_THUNK = re.compile(r"^Thunk:#(?:name=([^,#]*),?)?(?:hlo_op=([^,#]*))?.*")
"""XLA's name of a range: an operation's path in the program, and its instruction."""


class Caller(Model, frozen=True, kw_only=True):
    """What launches kernels of a group: a range of the program, an operator, or a module by its
    place in the outermost one, with its class; `*` stands for numbers. `share` is of the group's
    time, `forward` and `backward` what of it is known to be one of them."""

    name: str
    module_class: str = ""
    share: Amount
    forward: Amount = 0.0
    backward: Amount = 0.0


def caller_words(callers: Sequence[Caller]) -> str:
    """What launches kernels; "" for unknown."""
    if not callers:
        return ""
    is_most = len(callers) == 1 and callers[0].share >= _ALONE
    names = [each.name if is_most else f"{each.name} {each.share:.0%}" for each in callers]
    passes = {
        name: sum(getattr(each, name) for each in callers) for name in ("forward", "backward")
    }
    known = sum(passes.values())
    parts = [f"{name} {share / known:.0%}" for name, share in passes.items() if share]
    divided = f" ({', '.join(parts)})" if len(parts) > 1 else ""
    return f"{', '.join(names)}{divided}"


class Launched(Struct, frozen=True, eq=False):
    """The kernels of a process in its steps: ns of each row of `Events.kernels`, 0 for others; the
    group of each kernel's name; the range of a step, if they are found by one; its length (ns)."""

    process: int
    times: npt.NDArray[np.float64]
    groups: Sequence[str]
    range: str | None
    step: float


def callers(events: Events, launched: Launched) -> Mapping[str, tuple[Caller, ...]]:
    """By group of kernels what launches most of its time in the steps, but the range of a step."""
    times = _times(events, launched)
    names = _Names(each for table in times.values() for each in table)
    return {group: tuple(_most(table, names)) for group, table in times.items()}


def _times(events: Events, launched: Launched) -> Mapping[str, Mapping[ModuleLabel, float]]:
    """Time in the steps (ns) by group and caller; of an empty name what is launched by none."""
    kernels = events.kernels
    rows = np.flatnonzero((launched.times > 0) & (kernels.call >= 0)).astype(np.int32)
    if not len(events.ranges) + len(events.operators) + len(events.modules) or not len(rows):
        return {}
    around = nesting.origins(events, rows)
    labels = [ModuleLabel(_own_name(path, launched.range)) for path in around.paths]
    weights = modules.launches(events, launched.process, round(_PAUSE * launched.step))
    by_kernel = modules.by_kernel(weights)
    times: dict[str, dict[ModuleLabel, float]] = defaultdict(lambda: defaultdict(float))
    for (name, shape, path), time in modules.sums_of(
        (kernels.name[rows], kernels.configuration[rows], around.path), launched.times[rows]
    ):
        table, label = times[launched.groups[name]], labels[path]
        known = {} if label.name else weights.get((name, shape)) or by_kernel.get(name, {})
        total = sum(known.values())
        for each, weight in known.items():
            table[each] += time * weight / total
        if not known:
            table[label] += time
    return times


def _own_name(path: Sequence[str], step: str | None) -> str:
    """The innermost range of the program, or operator, but that of a step."""
    name = path[-1] if path else ""
    if thunk := _THUNK.match(name):
        name = thunk[1] or thunk[2] or ""
    return "" if name == step or name.startswith("command_buffer") else _NUMBERS.sub("", name)


class _Names:
    """The names of modules: those around them, and how they are shown."""

    def __init__(self, labels: Iterable[ModuleLabel]) -> None:
        known = {label.name: label.path for label in labels if label.is_module}
        classes = grouped((path, name) for name, path in known.items())
        self._by_path = {
            path: min(names) if len(names) == 1 else path for path, names in classes.items()
        }
        roots = {path.partition(".")[0] for path in known.values() if "." in path}
        self._root = f"{roots.pop()}." if len(roots) == 1 else ""

    def above(self, name: str) -> str:
        """The module around one; "" where that is the outermost."""
        path = ModuleLabel(name).path.rpartition(".")[0]
        return self._by_path.get(path, path) if "." in path else ""

    def shown(self, name: str) -> tuple[str, str]:
        """A module's name and class; one of repeated layers with its class."""
        path, _, kind = name.removesuffix(")").partition(" (")
        path = path.removeprefix(self._root)
        return (f"{path} ({kind})" if path.endswith("*") and kind else path), kind


def _most(table: Mapping[ModuleLabel, float], names: _Names) -> Iterator[Caller]:
    """The callers of most of a group's time. Modules that are too many for that are named by those
    around them, the innermost ones first."""
    total = sum(table.values())
    sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    depths = {}
    for label, time in table.items():
        sums[label.name][label.kind] += time
        depths[label.name] = label.path.count(".") if label.is_module else 0
    while True:
        ordered = sorted(filter(None, sums), key=lambda name: -sum(sums[name].values()))
        shares = {name: sum(sums[name].values()) / total for name in ordered}
        known = sum(shares.values())
        depth = max((depths[name] for name in ordered), default=0)
        if sum(shares[name] for name in ordered[:_CALLERS]) >= _MOST * known or depth < 2:
            break
        for name in [name for name in ordered if depths[name] == depth]:
            above = names.above(name)
            depths[above] = ModuleLabel(above).path.count(".")
            for kind, time in sums.pop(name).items():
                sums[above][kind] += time
    for name in ordered[:_CALLERS]:
        if shares[name] >= _CALLER:
            yield _caller(name, shares[name], sums[name], total, names)


def _caller(
    name: str, share: float, kinds: Mapping[str, float], total: float, names: _Names
) -> Caller:
    passes = {kind: kinds.get(kind, 0.0) / total for kind in ("forward", "backward")}
    shown = names.shown(name) if any(passes.values()) else (name, "")
    return Caller(name=shown[0], module_class=shown[1], share=share, **passes)
