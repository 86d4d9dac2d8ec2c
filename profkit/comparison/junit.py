"""Comparisons as JUnit XML: a suite each, a case a kernel, a failure where a gate failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from xml.etree import ElementTree as Xml

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.gates import Failure
from profkit.comparison.repeats import Change
from profkit.comparison.result import Comparisons
from profkit.ui.text import extent, literal

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_WHOLE = "all launches"
_NO_CHARACTERS = frozenset({0xFFFE, 0xFFFF})


class FailedGate(Protocol):
    """A gate that failed, a sentence as text; `undecided`: nothing can be concluded."""

    @property
    def gate(self) -> object: ...
    @property
    def why(self) -> str: ...
    @property
    def undecided(self) -> bool: ...


def diff_junit(comparisons: Comparisons) -> str:
    """The cases' times are what a launch takes after the change, in seconds.

    A gate that failed is a `failure`; what can't be concluded an `error` where a gate forbids it,
    or where the reports can't be compared; a kernel that can't be compared is `skipped` otherwise.
    """
    return junit_text(
        "profkit diff",
        [
            (judged.label, _cases(judged.label, judged.diff, judged.failures))
            for judged in comparisons.judged
        ],
    )


def _cases(label: str, diff: Diff, failed: Sequence[Failure]) -> Iterator[Xml.Element]:
    if diff.refused:
        case = case_of(label, _WHOLE)
        why = _xml_text(diff.obstacle_words)
        Xml.SubElement(case, "error", message=why, type="incomparable").text = why
        yield case
        failed = [failure for failure in failed if not failure.undecided]
    names = Counter(kernel.after.name for kernel in diff.kernels)
    for index, kernel in enumerate(diff.kernels):
        own = [failure for failure in failed if failure.index == index]
        yield _kernel_case(label, kernel, own, alone=names[kernel.after.name] == 1)
    others: dict[str, list[Failure]] = {}
    for failure in failed:
        if failure.index is None:
            others.setdefault(failure.kernel or _WHOLE, []).append(failure)
    for name, own in others.items():
        yield case_of(label, name, failed=own)


def _kernel_case(
    label: str, kernel: KernelDiff, failed: Sequence[Failure], *, alone: bool
) -> Xml.Element:
    after = kernel.after
    return case_of(
        label,
        after.name if alone else f"{after.name} {extent(after.grid)} × {extent(after.block)}",
        0.0 if math.isnan(after.median) else after.median,
        failed,
        skipped=kernel.obstacle_words if kernel.change is Change.incomparable else "",
        lines=(words.headline(kernel), *words.evidence(kernel)),
    )


def case_of(
    suite: str,
    name: str,
    seconds: float | None = None,
    failed: Sequence[FailedGate] = (),
    *,
    skipped: str = "",
    lines: Sequence[str] = (),
) -> Xml.Element:
    """A case with what it printed; `skipped` says why, where no gate failed.

    One element for all gates that failed: readers look at the first alone.
    """
    time = "0" if seconds is None else f"{seconds:.9f}"
    case = Xml.Element("testcase", name=_xml_text(name), classname=_xml_text(suite), time=time)
    if failed:
        undecided = all(failure.undecided for failure in failed)
        gates = ",".join(dict.fromkeys(str(failure.gate) for failure in failed))
        message = "; ".join(failure.why for failure in failed)
        element = Xml.SubElement(
            case,
            "error" if undecided else "failure",
            message=_xml_text(message),
            type=_xml_text(gates),
        )
        element.text = "\n".join(_xml_text(str(failure)) for failure in failed)
    elif skipped:
        Xml.SubElement(case, "skipped", message=_xml_text(skipped))
    if lines:
        Xml.SubElement(case, "system-out").text = "\n".join(map(_xml_text, lines))
    return case


def junit_text(name: str, suites: Sequence[tuple[str, Iterable[Xml.Element]]]) -> str:
    """The file of suites, their results counted."""
    root = Xml.Element("testsuites", name=name)
    for label, cases in suites:
        suite = Xml.SubElement(root, "testsuite", name=_xml_text(label))
        suite.extend(cases)
        _count_results(suite)
    _count_results(root)
    Xml.indent(root)
    return f"{_DECLARATION}\n{Xml.tostring(root, encoding='unicode')}\n"


def _count_results(element: Xml.Element) -> None:
    """Count the cases below an element in its attributes, and sum their seconds."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.9f}")


def _xml_text(text: str) -> str:
    """What XML may hold: control characters spelled out, code points it has no place for lost."""
    return "".join(
        character if ord(character) not in _NO_CHARACTERS else "�" for character in literal(text)
    )
