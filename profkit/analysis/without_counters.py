"""A report or a run without hardware counters: launches, durations, machine code, declared work."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.analysis.run_files import SUFFIXES, TIMELINE, reports_in
from profkit.core.errors import BadInput, UsageError
from profkit.core.integrity import check_unchanged
from profkit.report.counter_free import read_without_counters
from profkit.report.machine_code import Cubin, cubin_code, launch_code, read_cubin
from profkit.report.summary import Group
from profkit.rules.declared_headroom import DeclaredWork
from profkit.rules.outlook import Call, Codes, Outlook, outlook
from profkit.timing.variants import read_variants

if TYPE_CHECKING:
    from profkit.report.sass_flow import Flow
    from profkit.rules.code_signs import Factors
    from profkit.timing.variants import Variants

CODE_FOLDER = "code"
"""The folder of a run that holds the cubins of its kernels."""


@dataclass(frozen=True)
class Analysis:
    """What is known of a path without counters, and its timeline in one line, "" without one."""

    path: str
    outlook: Outlook
    timeline: str = ""


def analysis_without_counters(path: Path, kernel: str | None = None) -> Analysis:
    """Of a report, whose counters are not read, a timeline, or a run of either.

    `kernel` keeps kernels whose demangled name the regular expression is found in. Raises BadInput
    where there is neither or it is damaged, UsageError where a folder has several.
    """
    source = _source(path)
    if source.suffix in SUFFIXES:
        return replace(_of_report(source, kernel), path=str(path))
    return replace(_of_timeline(source, kernel), path=str(path))


