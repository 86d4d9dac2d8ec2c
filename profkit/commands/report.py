"""`profkit report`: a report or run as one page for a browser."""

from pathlib import Path

from profkit.commands.groups import Advice, Number, RuleOptions
from profkit.commands.kinds import ReportFile, Trial
from profkit.commands.options import put, say, warn


def report(
    path: ReportFile,
    *,
    file: Path = Path("report.html"),
    force: bool = False,
    open_it: bool = False,
    kernel: str | None = None,
    top: Number = 12,
    rules: RuleOptions,
    with_host: bool = False,
    tried: Trial | None = None,
) -> None:
    """Write a report or run as one self-contained HTML page.

    It has bottlenecks with estimated speedups, verdicts on timed variants, the checklist, all
    kernels, a roofline, phases and source of each kernel, environment and provenance.

    Arguments:
      path (FILE): A report (.ncu-rep, .ncu-repz) or a run.

    Options:
      file (-o, --output FILE): Output file.
      open_it (--open): Open the page in the browser.
      top (N): Kernels shown in detail, 0: all.
      with_host: Include computer name, paths and full command line.
      tried (FILE): What `profkit try -o FILE` gave (default: try.json in the run).

    Examples:
      profkit report reports/h200/sdpa_s512 --open
      profkit report run.ncu-rep -o run.html --kernel flash
    """
    from profkit.commands.reading import whole

    whole(path)
    html = page_of(path, kernel, None, top, rules.advice(None), with_host=with_host, tried=tried)
    put(html, file, force=force)
    hint = "" if open_it else "; open it in a browser"
    say(f"Wrote {file} ({len(html.encode()) / 1e6:.1f} MB){hint}")
    if open_it:
        import webbrowser

        if not webbrowser.open(file.absolute().as_uri()):
            warn(f"no browser could be started; open {file} in a browser")


def page_of(
    path: Path,
    kernel: str | None,
    nvtx: str | None,
    top: int,
    advice: Advice,
    *,
    with_host: bool,
    sort: str = "time",
    tried: Path | None = None,
) -> str:
    """The page of the report that a path names, its kernels sorted as `analyze` does."""
    from profkit.application.picks_file import is_application
    from profkit.commands.reading import checklist_of, read_report, sorted_groups
    from profkit.page.page import page_html
    from profkit.rules.known_trial import NO_TRIAL

    application = None
    if is_application(path):
        from profkit.application.answer import answer
        from profkit.application.run import read_run
        from profkit.page.application import application_section, page_without_report
        from profkit.trial.of_program import program_trial

        run = read_run(path)
        gpus = (gpu.name for gpu in run.events.gpus)
        run = run.with_trial(program_trial(path, gpus, tried))
        if run.report is None:
            return page_without_report(run)
        application = application_section(run, answer(run))
    report = read_report(path, kernel, nvtx)
    groups = sorted_groups(report.summary, sort)
    items, trial = checklist_of(report, advice, tried)
    if application is None and trial is not NO_TRIAL:
        from profkit.page.application import trial_section

        application = trial_section(trial)
    return page_html(
        report, items, groups=groups, top=top, with_host=with_host, application=application
    )
