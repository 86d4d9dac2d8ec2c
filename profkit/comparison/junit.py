"""Comparisons as JUnit XML: a suite each, a case a kernel, a failure where a gate failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as Xml

from profkit.comparison import text as words
from profkit.comparison.comparison import Diff, KernelDiff
from profkit.comparison.document import Document
from profkit.comparison.gates import Failure
from profkit.comparison.repeats import Change
from profkit.ui.text import extent, literal

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'
_WHOLE = "all launches"
_NO_CHARACTERS = frozenset({0xFFFE, 0xFFFF})


def diff_junit(document: Document) -> str:
    """The cases' times are what a launch takes after the change, in seconds.

    A gate that failed is a `failure`; what can't be concluded an `error` where a gate forbids it,
    or where the reports can't be compared; a kernel that can't be compared is `skipped` otherwise.
    """
    root = Xml.Element("testsuites", name="profkit diff")
    for judged in document.comparisons:
        suite = Xml.SubElement(root, "testsuite", name=xml_text(judged.label))
        suite.extend(_cases(xml_text(judged.label), judged.diff, judged.failures))
        count_results(suite)
    return document_text(root)


def _cases(label: str, diff: Diff, failed: Sequence[Failure]) -> Iterator[Xml.Element]:
    if diff.refused:
        case = Xml.Element("testcase", name=_WHOLE, classname=label, time="0")
        why = xml_text(diff.obstacle_words)
        Xml.SubElement(case, "error", message=why, type="incomparable").text = why
        yield case
        failed = [failure for failure in failed if not failure.undecided]
    names = Counter(kernel.after.name for kernel in diff.kernels)
    for index, kernel in enumerate(diff.kernels):
        own = [failure for failure in failed if failure.index == index]
        yield _case(label, kernel, own, alone=names[kernel.after.name] == 1)
    others: dict[str, list[Failure]] = {}
    for failure in failed:
        if failure.index < 0:
            others.setdefault(failure.kernel or _WHOLE, []).append(failure)
    for name, own in others.items():
        case = Xml.Element("testcase", name=xml_text(name), classname=label, time="0")
        _tell(case, own)
        yield case


def _case(label: str, kernel: KernelDiff, failed: Sequence[Failure], *, alone: bool) -> Xml.Element:
    after = kernel.after
    name = after.name if alone else f"{after.name} {extent(after.grid)} × {extent(after.block)}"
    seconds = 0.0 if math.isnan(after.median) else after.median
    case = Xml.Element("testcase", name=xml_text(name), classname=label, time=f"{seconds:.9f}")
    if failed:
        _tell(case, failed)
    elif kernel.change is Change.incomparable:
        Xml.SubElement(case, "skipped", message=xml_text(kernel.obstacle_words))
    lines = (words.headline(kernel), *words.evidence(kernel))
    Xml.SubElement(case, "system-out").text = "\n".join(map(xml_text, lines))
    return case


def _tell(case: Xml.Element, failed: Sequence[Failure]) -> None:
    """One element for all gates that a case failed: readers look at the first alone."""
    undecided = all(failure.undecided for failure in failed)
    gates = ",".join(dict.fromkeys(str(failure.gate) for failure in failed))
    message = "; ".join(failure.why for failure in failed)
    element = Xml.SubElement(
        case, "error" if undecided else "failure", message=xml_text(message), type=xml_text(gates)
    )
    element.text = "\n".join(xml_text(str(failure)) for failure in failed)


def document_text(root: Xml.Element) -> str:
    """The file, its results counted."""
    count_results(root)
    Xml.indent(root)
    return f"{_DECLARATION}\n{Xml.tostring(root, encoding='unicode')}\n"


def count_results(element: Xml.Element) -> None:
    """Count the cases below an element in its attributes, and sum their seconds."""
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for tag, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))
    element.set("time", f"{sum(float(case.get('time', '0')) for case in cases):.9f}")


def xml_text(text: str) -> str:
    """What XML may hold: control characters spelled out, code points it has no place for lost."""
    return "".join(
        character if ord(character) not in _NO_CHARACTERS else "�" for character in literal(text)
    )
