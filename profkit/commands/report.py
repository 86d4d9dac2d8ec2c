"""`profkit report`: a report or run as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from profkit.commands.options import put, warn

if TYPE_CHECKING:
    from profkit.commands.reading import Advice


def report(
    path: Path,
    output: Path = Path("report.html"),
    open_it: bool = False,
    kernel: str | None = None,
    top: int = 12,
    rules: Path | None = None,
    disable: list[str] | None = None,
    with_host: bool = False,
) -> None:
    """Write a report or run as one self-contained HTML page.

    It has bottlenecks with estimated speedups, verdicts on timed variants, the checklist, all
    kernels, a roofline, phases and source of each kernel, environment and provenance.

    Examples:
      profkit report reports/h200/sdpa_s512 --open
      profkit report run.ncu-rep -o run.html --kernel flash
    """
    from profkit.commands.reading import chosen_advice

    advice = chosen_advice(rules, disable, None)
    html = page_of(path, kernel, None, top, advice, with_host=with_host)
    put(html, output)
    hint = "" if open_it else "; open it in a browser"
    typer.echo(f"Wrote {output} ({len(html.encode()) / 1e6:.1f} MB){hint}", err=True)
    if open_it:
        import webbrowser

        if not webbrowser.open(output.absolute().as_uri()):
            warn(f"no browser could be started; open {output} in a browser")


def page_of(
    path: Path,
    kernel: str | None,
    nvtx: str | None,
    top: int,
    advice: Advice,
    *,
    with_host: bool,
    sort: str = "time",
) -> str:
    """The page of the report that a path names, its kernels sorted as `analyze` does."""
    from profkit.application.picks_file import is_application
    from profkit.commands.reading import read_report, sorted_groups
    from profkit.page.page import page_html

    application = None
    if is_application(path):
        from profkit.application.answer import answer
        from profkit.application.run import read_run
        from profkit.page.application import application_section, page_without_report

        result = answer(read_run(path))
        if result.application.report is None:
            return page_without_report(result)
        application = application_section(result)
    report = read_report(path, kernel, nvtx)
    groups = sorted_groups(report.summary, sort)
    items = report.checklist(*advice)
    return page_html(
        report, items, groups=groups, top=top, with_host=with_host, application=application
    )
