"""The tools: each is a verb, a function of its arguments to the verb's command line.

A tool's arguments and their types are those of its function, its description the docstring: an
agent reads both. Each also takes those of a job (`JOB`). `run` is what `profile` names: the folder
of a run, or a report's file.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from profkit.agents.access import Access, word
from profkit.core.errors import UsageError
from profkit.core.suggestion import did_you_mean
from profkit.ui.text import cut, literal

JOB: Mapping[str, type] = {"job": int, "page": int, "stop": bool}
"""The number of a job to wait on, of any tool; the page of what it wrote; whether to end it."""
_LONGEST = 4096  # characters of a value, chosen: no path may be longer
_MOST_WORDS = 256  # of a program's arguments, chosen
_SHOWN = 60  # characters of a wrong name in an error, chosen
_SCHEMAS: Mapping[object, Mapping[str, object]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    list[str]: {"type": "array", "items": {"type": "string"}},
}
_FORMER = {
    "report": "run", "path": "run", "file": "run", "before": "run", "targets": "target",
    "script": "target", "args": "arguments",
}  # fmt: skip
"""Names that agents give arguments, and those that they have."""


def doctor(_: Access) -> list[str]:
    """What this machine can profile, and the remedy for each thing it can't."""
    return ["doctor"]


def profile(access: Access, target: str, arguments: list[str] = []) -> list[str]:  # noqa: B006
    """Record a target script with ncu; the first line names the run that other tools take.
    job: a number to wait on, of any tool; stop ends it."""
    access.check_run()
    return ["profile", access.path(target), "--", *arguments]


def analyze(
    access: Access, run: str, kernel: str = "", without_counters: bool = False
) -> list[str]:
    """Kernels by time, what limits each, and what fixing it would give. without_counters: of a
    run where ncu's were refused."""
    words = ["--without-counters"] if without_counters else []
    return ["analyze", *words, access.path(run), *_options(kernel=kernel)]


def explain(access: Access, run: str, kernel: str = "", top: int = 1) -> list[str]:
    """The first findings: evidence, source lines, actions, and how to verify the fix."""
    return ["checklist", f"--top={top}", access.path(run), *_options(kernel=kernel)]


def source(access: Access, run: str, kernel: str = "", sass: bool = False) -> list[str]:
    """The hottest source lines, or SASS instructions, of a kernel."""
    words = ["--sass"] if sass else []
    return ["source", *words, access.path(run), *_options(kernel=kernel)]


def timeline(access: Access, run: str, nvtx: str = "") -> list[str]:
    """What the steps of a program are made of; nvtx: the range that is a step."""
    return ["timeline", access.path(run), *_options(nvtx=nvtx)]


def next_experiment(access: Access, run: str, after: str = "") -> list[str]:
    """The experiment that tells most now; with after: whether the last prediction held."""
    return ["next", access.path(run), *([access.path(after)] if after else [])]


def diff(access: Access, run: str, after: str) -> list[str]:
    """Whether a change made kernels faster, why, and what limits them now."""
    return ["diff", access.path(run), access.path(after)]


def time(access: Access, target: list[str], compare: str = "") -> list[str]:
    """Time targets' variants; compare="a,b" judges whether b is faster than a."""
    access.check_run()
    return ["time", *map(access.path, target), *_options(compare=compare)]


def try_switches(
    access: Access,
    target: str,
    arguments: list[str] = [],  # noqa: B006
    variant: str = "",
    switch: list[str] = [],  # noqa: B006
    budget: str = "",
    run: str = "",
) -> list[str]:
    """Prove which switches make a Python program faster with the same results, and what to write
    to keep each; with variant those of a target script's kernels. run: its run of profile --app,
    whose plan is tried first."""
    access.check_run()
    words = ["try", *(f"--switch={word(name)}" for name in switch), *_options(budget=budget)]
    script = access.path(target)
    if variant:
        return [*words, f"{script}:{word(variant)}", *(["--", *arguments] if arguments else [])]
    words += [f"--from={access.path(run)}"] if run else []
    return [*words, "--", sys.executable, script, *arguments]


Tool = Callable[..., list[str]]
TOOLS: Mapping[str, Tool] = {
    "doctor": doctor, "profile": profile, "analyze": analyze, "explain": explain, "source": source,
    "timeline": timeline, "next": next_experiment, "diff": diff, "time": time, "try": try_switches,
}  # fmt: skip
"""The tools by name, in the order in which they are used."""


def description(tool: Tool) -> str:
    """What an agent reads of a tool."""
    return " ".join((tool.__doc__ or "").split())


def schema(tool: Tool) -> dict[str, object]:
    """The JSON Schema of its arguments. None is required: a call may be about a job."""
    properties = {name: _SCHEMAS[kind] for name, kind in _kinds(tool).items()}
    return {"type": "object", "properties": properties}


class Call(NamedTuple):
    """A verb's words, without a `job` to wait on; the page of its output, and whether to end it."""

    words: Sequence[str]
    job: int
    page: int
    stop: bool


def parse(name: str, access: Access, arguments: Mapping[str, object]) -> Call:
    """A call of a tool.

    Raises UsageError for a tool that does not exist, for arguments that it does not take, or lacks,
    and for what is not allowed.
    """
    if name not in TOOLS:
        remedy = did_you_mean(name[:_SHOWN], list(TOOLS), f"there are {', '.join(TOOLS)}")
        raise UsageError(f"no tool {_brief(name)}", remedy)
    kinds = _kinds(TOOLS[name])
    takes = f"it takes {', '.join(kinds)}"
    values: dict[str, object] = {"job": 0, "page": 1, "stop": False}
    for key, value in arguments.items():
        if key not in kinds:
            meant = _FORMER.get(key, "")
            guess = did_you_mean(meant if meant in kinds else key[:_SHOWN], kinds)
            raise UsageError(f"{name}: no argument {_brief(key)}", f"{guess} {takes}".strip())
        values[key] = _checked(f"{name}: {key}", value, kinds[key])
    state: Any = [values.pop(key) for key in JOB]
    waits_on = Call((), *state)
    if waits_on.job:
        return waits_on
    if waits_on.stop:
        raise UsageError("stop without a job", "pass the number that the tool answered")
    for key, parameter in list(inspect.signature(TOOLS[name]).parameters.items())[1:]:
        if parameter.default is parameter.empty and not values.get(key):
            raise UsageError(f"{name}: {key} is missing", takes)
    return waits_on._replace(words=TOOLS[name](access, **values))


def _checked(name: str, value: object, kind: object) -> object:
    """A value of a kind; a text alone is a list of it."""
    if kind == list[str] and isinstance(value, str):
        value = [value]
    parts = value if isinstance(value, list) and kind == list[str] else [value]
    if {type(part) for part in parts} - {str if kind == list[str] else kind}:
        raise UsageError(f"{name} is of another type", f"give {_SCHEMAS[kind]['type']}")
    if len(parts) > _MOST_WORDS:
        raise UsageError(f"{name} has {len(parts):,} words", f"give {_MOST_WORDS} at most")
    longest = max((len(part) for part in parts if isinstance(part, str)), default=0)
    if longest > _LONGEST:
        raise UsageError(f"{name} has {longest:,} characters", f"give {_LONGEST:,} at most")
    return value


@cache
def _kinds(tool: Tool) -> Mapping[str, object]:
    """The types of its arguments and of those of a job."""
    hints = get_type_hints(tool)
    own = {name: hints[name] for name in list(inspect.signature(tool).parameters)[1:]}
    return {**own, **JOB}


def _brief(name: str) -> str:
    return repr(cut(literal(name[:_LONGEST]), _SHOWN))


def _options(**values: str) -> list[str]:
    return [f"--{name}={word(value)}" for name, value in values.items() if value]
