"""The document of a trial: proven gains, what keeps them, what did nothing, what failed.

Of a program that no switch applies to, how kernels respond to perturbations of their launches.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from profkit.core.duration import duration
from profkit.core.grouping import grouped
from profkit.core.unit_words import plural_of
from profkit.core.yaml_files import shipped_yaml
from profkit.trial.evidence import THRESHOLDS
from profkit.trial.responses import PERTURBATIONS
from profkit.trial.run import WALL
from profkit.trial.switch import Switch
from profkit.trial.trial_file import KernelResponses, Response, TrialFile, TrialRow
from profkit.ui import document as doc
from profkit.ui.text import factor, number, percent, plural


class _Words(Struct, frozen=True):
    """What units, limits, kinds of rows, changes of proven ones and states of files are called."""

    units: Mapping[str, str]
    limits: Mapping[str, str]
    groups: Mapping[str, str]
    proven: Mapping[str, frozenset[str]]
    states: Mapping[str, str]


_WORDS = msgspec.convert(shipped_yaml("profkit.trial", "words.yaml"), _Words)
_NAMED = 5  # files, chosen: a line of a terminal
_LISTED = {"not applicable", "not tried"}


def trial_document(trial: TrialFile) -> doc.Document:
    """What a trial found."""
    blocks: list[doc.Block] = [doc.Heading("Switches tried on " + shlex.join(trial.command), 1)]
    blocks.append(doc.Paragraph(_circumstances(trial)))
    if trial.interrupted:
        blocks.append(doc.Note("Interrupted: this is what was measured until then."))
    for title, changes in _WORDS.proven.items():
        rows = [r for r in trial.rows if r.status == "faster" and r.changes in changes]
        blocks += _proven(trial, title, rows)
    if trial.unchanged and not any(row.status == "faster" for row in trial.rows):
        blocks.append(doc.Paragraph("No switch is proven to make this program faster."))
    blocks += [*_keeping(trial), *_others(trial), *_responses(trial)]
    if trial.written:
        blocks.append(doc.Note(written_words(trial)))
    return doc.Document("Switches tried", tuple(blocks))


def _circumstances(trial: TrialFile) -> str:
    runs = f"{plural(trial.runs, 'run')} in {duration(trial.seconds)}"
    words = [", ".join(filter(None, (trial.gpu, trial.framework, runs))) + "."]
    if unchanged := trial.unchanged:
        spread = f" ±{percent(unchanged.spread)} between runs" if unchanged.spread else ""
        of = "for" if unchanged.unit == WALL else "per"
        time = f"Unchanged: {number(unchanged.seconds, 's', 3)} {of} {unit_name(unchanged.unit)}"
        limit = _WORDS.limits[unchanged.limit if trial.gpu or unchanged.limit == "input" else ""]
        words.append(f"{time}{spread}; {limit}".rstrip("; ") + ".")
        if unchanged.faulty:
            words.append(f"No gain is verified: {unchanged.faulty}.")
        elif unchanged.difference is not None:
            apart = f"differ by {unchanged.difference:.1g}" if unchanged.difference else "are equal"
            words.append(f"Results of {unchanged.runs} unchanged runs {apart}.")
        elif unchanged.runs > 1:
            words.append("It showed no results that could be compared.")
        if not unchanged.whole:
            words.append(f"Runs were ended after {unchanged.units} units, but for whole ones.")
    if trial.checked:
        words.append(f"{trial.checked}.")
    return " ".join(words)


def written_words(trial: TrialFile) -> str:
    """Which files the runs wrote, and as what they are left."""
    states = grouped(
        (_WORDS.states[each.state], each.path + (f" (as before: {each.copy})" if each.copy else ""))
        for each in trial.written
    )
    words = ". ".join(f"{state}: {_first(paths)}" for state, paths in states.items())
    return f"Files were written during these runs; their contents were not compared. {words}."


def _first(paths: Sequence[str]) -> str:
    more = len(paths) - _NAMED
    return ", ".join(paths[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def unit_name(unit: str) -> str:
    """The name of a unit of work."""
    return _WORDS.units.get(unit, unit.replace("calls of", "call of"))


def _proven(trial: TrialFile, title: str, rows: Sequence[TrialRow]) -> Iterator[doc.Block]:
    tried = sum(row.status not in _LISTED for row in trial.rows)
    if rows:
        yield doc.Table(
            f"Proven, {title}",
            ("Speedup", "Interval", "Switches", "Results differ by"),
            tuple((*_speedup(row), " + ".join(row.switches), _apart(row)) for row in rows),
            note=f"{THRESHOLDS.level:.0%} intervals, corrected for {plural(tried, 'comparison')}",
        )


def _speedup(row: TrialRow) -> tuple[str, str]:
    assert row.comparison is not None
    return factor(row.comparison.speedup), f"[{row.comparison.low:.2f}, {row.comparison.high:.2f}]"


def _apart(row: TrialRow) -> str:
    if row.difference is None:
        return "not compared"
    if row.difference and row.changes == "random":
        return "other draws"
    return f"{row.difference:.1g}"


def _keeping(trial: TrialFile) -> Iterator[doc.Block]:
    other = "Or, with other numbers" if trial.best else "To keep it, with other numbers"
    for names, title in ((trial.best, "To keep it"), (trial.lower, other)):
        if row := next((row for row in trial.rows if names and row.switches == names), None):
            yield doc.Heading(f"{title}: {' + '.join(names)}")
            yield doc.Code("\n".join(row.keep))
            if row.prepares and trial.unchanged:
                yield doc.Paragraph(_compiling(row, unit_name(trial.unchanged.unit)))


def _compiling(row: TrialRow, unit: str) -> str:
    """What compiling takes of a run, and how many units make up for it."""
    head, of, name = unit.partition(" of ")
    units = f"{plural_of(head)}{of}{name}"
    first, later = (
        f"roughly {duration(each.seconds)}, which {_range(*each.units)} {units} make up for"
        if each.units[-1] > 1
        else "hardly anything"
        for each in row.prepares
    )
    return f"What it compiles takes a first run {first}, and a later one {later}."


def _range(*ends: int) -> str:
    """From the least to the most, rounded to two digits."""
    return " to ".join(dict.fromkeys(f"{float(f'{end:.2g}'):,.0f}" for end in ends))


def _others(trial: TrialFile) -> Iterator[doc.Block]:
    bullets = []
    if not trial.unchanged:
        return
    if not trial.framework and all(row.status == "not applicable" for row in trial.rows):
        yield doc.Paragraph("No switch applies: it uses neither torch nor JAX.")
        return
    for status, title in _WORDS.groups.items():
        if status == "not tried" and not trial.interrupted:
            title = "Not tried, for lack of time"
        if status == "not applicable" and not trial.unchanged.whole:
            title = "Not applicable to what was measured"
        if rows := [row for row in trial.rows if row.status == status]:
            known = trial.unchanged.faulty if trial.unchanged else ""  # said above
            others = (_other(replace(r, reason="") if r.reason == known else r) for r in rows)
            words = _by_reason(rows) if status in _LISTED else ", ".join(others)
            bullets.append(doc.styled(doc.strong(title), f": {words}"))
    if bullets:
        yield doc.Heading("Everything else")
        yield doc.bullets(bullets)


def _by_reason(rows: Sequence[TrialRow]) -> str:
    groups = grouped((row.reason, " + ".join(row.switches)) for row in rows)
    return "; ".join(f"{why}: {', '.join(names)}" for why, names in groups.items())


def _other(row: TrialRow) -> str:
    name = " + ".join(row.switches)
    is_wrong = row.status in {"failed", "changes results"}
    gain = f" {row.speedup:.2f}x" if row.speedup and not is_wrong else ""
    return f"{name}{gain}" + (f" ({row.reason})" if row.reason else "")


def _responses(trial: TrialFile) -> Iterator[doc.Block]:
    """A table for each kernel, and what was not possible."""
    if trial.kernels:
        yield doc.Heading("Kernels, perturbed")
    for kernel in trial.kernels:
        rows = tuple(map(_response, kernel.responses))
        yield doc.Table(_title(kernel), ("Perturbation", "Slowdown", "Interval", "Says"), rows)
    if trial.unperturbed:
        yield doc.bullets(line[0].upper() + line[1:] for line in trial.unperturbed)


def _title(kernel: KernelResponses) -> str:
    grid, block = (" x ".join(str(n) for n in s if n > 1) for s in (kernel.grid, kernel.block))
    time = f"{number(kernel.seconds, 's', 3)}, {percent(kernel.share)} of timed kernels"
    launches = plural(kernel.launches, "launch")
    return f"{kernel.kernel}, {grid or 1} blocks of {block or 1}: {launches} of {time}"


def _response(response: Response) -> tuple[str, ...]:
    what = PERTURBATIONS[response.perturbation].what
    what += f" ({percent(1 / response.taken)} left)" if response.taken > 1 else ""
    if response.slowdown is None or response.low is None or response.high is None:
        return what, "", "", f"not perturbed: {response.reason}"
    interval = f"[{response.low:.2f}, {response.high:.2f}]"
    return what, f"{response.slowdown:.2f}x", interval, response.evidence or "undecided"


def switches_document(switches: Sequence[Switch]) -> doc.Document:
    """All switches, what each needs and changes."""
    rows = tuple(
        (switch.name, switch.what, ", ".join(switch.needs) or "nothing", switch.changes)
        for switch in switches
    )
    table = doc.Table("Switches", ("Switch", "What it does", "Needs", "Changes"), rows)
    return doc.Document("Switches", (table,))
