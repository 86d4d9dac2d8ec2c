"""Writes what profkit derives from recorded runs: `python -m kernels.run_files [--prune] [RUN ...]`

A recorded run is tracked without its analysis, checklist, page, table and roofline, a baseline
without its summary and table: they are made again from what was recorded, with today's code. The
cells of a baseline are tracked in an archive. --prune removes what is
derived and its lines in the manifest, for a run that is about to be tracked.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from msgspec import structs

import profkit
from profkit.analysis.json import report_json
from profkit.core.errors import ProfkitError
from profkit.core.integrity import MANIFEST
from profkit.core.typed_file import encode
from profkit.rules.checklist_view import checklist_markdown
from profkit.runs.run import is_run_name, read_manifest
from profkit.score.pair_archive import ARCHIVE, unpack
from profkit.study.folder import PLAN
from profkit.study.run import summarize

DERIVED = (
    "analysis.json",
    "checklist.md",
    "kernels.parquet",
    "report.html",
    "roofline.png",
    "roofline.svg",
)


def runs_below(folder: Path) -> list[Path]:
    """The runs of `profkit profile` anywhere below a folder, by path."""
    manifests = sorted(folder.rglob(MANIFEST))
    return [path.parent for path in manifests if is_run_name(path.parent.name)]


def derive(run: Path) -> None:
    """Write the derived files of a run; raises BadInput where the run can't be read."""
    from profkit.roofline.plot import plot_rooflines

    report = profkit.load(run)
    checklist = report.checklist()
    text = report_json(report.summary, checklist)
    (run / "analysis.json").write_text(text, encoding="utf-8")
    text = checklist_markdown(report.summary, checklist)
    (run / "checklist.md").write_text(text, encoding="utf-8")
    report.kernels.to_parquet(run / "kernels.parquet")
    (run / "report.html").write_text(report.page(), encoding="utf-8")
    picture = report.roofline()
    for suffix in (".png", ".svg") if picture.points else ():
        plot_rooflines([picture], run / f"roofline{suffix}", title=run.parent.name)


def prune(run: Path) -> None:
    """Remove the derived files of a run, and what its manifest lists of them."""
    manifest = read_manifest(run)
    for name in DERIVED:
        (run / name).unlink(missing_ok=True)
    files = {name: entry for name, entry in manifest.files.items() if name not in DERIVED}
    text = encode(structs.replace(manifest, files=files), dense=False)
    (run / MANIFEST).write_text(text, encoding="utf-8")


def main() -> int:
    """Derive or prune the runs that the command line names, all recorded ones by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN")
    parser.add_argument("--prune", action="store_true", help="remove what is derived")
    options = parser.parse_args()
    runs = options.runs or runs_below(Path("reports"))
    try:
        if options.prune:
            for run in runs:
                prune(run)
        elif len(runs) == 1:
            derive(runs[0])
        else:  # the vendor's reader frees nothing: a process a run
            for cells in Path("reports").rglob(f"cells{ARCHIVE}"):
                unpack(cells, cells.parent)
            for plan in sorted(Path("reports").rglob(PLAN)):
                summarize(plan.parent)
            for run in runs:
                print(run, flush=True)
                subprocess.run([sys.executable, "-m", "kernels.run_files", str(run)], check=True)
    except ProfkitError as error:
        print(f"profkit: {error}", file=sys.stderr)
        return error.exit_code
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main())
