"""A check of a history as JUnit XML: a case a series, a failure where a gate failed."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from profkit.comparison.junit import document_text, xml_text
from profkit.history import check_text as words
from profkit.history.check import Check, size_words
from profkit.history.selection import label


def check_junit(check: Check) -> str:
    """The cases' times are the levels of the series, in seconds.

    A series that regressed is a `failure`, what a gate forbids to be open an `error`; a series with
    too few runs is `skipped` otherwise.
    """
    root = Xml.Element("testsuites", name="profkit history check")
    suite = Xml.SubElement(root, "testsuite", name="history")
    for checked in check.series:
        series = checked.points[0].series
        case = Xml.SubElement(
            suite,
            "testcase",
            name=xml_text(label(series)),
            classname="history",
            time=f"{checked.level:.9f}",
        )
        failed = [failure for failure in check.failures if failure.series == series]
        if failed:
            tag = "error" if all(failure.undecided for failure in failed) else "failure"
            gates = ",".join(dict.fromkeys(str(failure.gate) for failure in failed))
            message = "; ".join(failure.why for failure in failed)
            element = Xml.SubElement(case, tag, message=xml_text(message), type=xml_text(gates))
            element.text = "\n".join(xml_text(str(failure)) for failure in failed)
        elif checked.reason:
            Xml.SubElement(case, "skipped", message=xml_text(checked.reason))
        lines = [
            line
            for alarm in check.alarms
            if alarm.series == series
            for line in (
                f"{words.KINDS[alarm.change.kind]}: {size_words(alarm.change)}",
                *words.details(alarm),
            )
        ]
        if lines:
            Xml.SubElement(case, "system-out").text = "\n".join(map(xml_text, lines))
    return document_text(root)
