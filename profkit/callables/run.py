"""A measurement with what can be asked of it: report, findings, roofline, a file, its views."""

from __future__ import annotations

import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profkit.callables.measurement import Measurement
from profkit.core.atomic_file import write_atomic
from profkit.core.errors import EnvironmentProblem

if TYPE_CHECKING:
    import pandas as pd

    from profkit.analysis.roofline_figure import Roofline
    from profkit.page.report import Report
    from profkit.rules.checklist import Checklist


class Run(Measurement):
    """One measurement. In a notebook and in a terminal it shows itself."""

    @cached_property
    def report(self) -> Report:
        """The report that ncu recorded. Raises EnvironmentProblem where none was recorded."""
        from profkit.page.report import load

        if self.recording is None:
            raise EnvironmentProblem(
                f"{self.name}: nothing was recorded with ncu",
                f"profkit.profile({self.name.split()[-1]}, ..., ncu=True)",
            )
        return load(self.recording.folder)

    @property
    def kernels(self) -> pd.DataFrame:
        """The table of the recorded launches; raises as `report`."""
        return self.report.kernels

    def checklist(self, **options: Any) -> Checklist:
        """The findings on the recorded kernels, as `Report.checklist`; raises as `report`."""
        return self.report.checklist(**options)

    def roofline(self, **options: Any) -> Roofline:
        """The recorded kernels under their roofs with the measured times, as `Report.roofline`."""
        with tempfile.TemporaryDirectory() as folder:
            if self.times and "latency" not in options:
                options["latency"] = self.save(Path(folder) / "latency.json")
            return self.report.roofline(**options)

    def save(self, path: str | Path) -> Path:
        """Write times and verdict as `profkit.time/1`, which `profkit time --from` reads.

        Raises TargetFailed for a wrong result, EnvironmentProblem where the file can't be written.
        """
        from profkit.timing.latency_view import latency_json

        path = Path(path)
        self.latencies  # noqa: B018  (raises)
        assert self.times is not None
        try:
            write_atomic(path, latency_json(self.times))
        except OSError as error:
            raise EnvironmentProblem(f"{path} can't be written: {error.strerror}") from error
        return path

    def __repr__(self) -> str:
        from profkit.callables.run_view import run_text

        return run_text(self)

    def _repr_html_(self) -> str:
        from profkit.callables.run_view import run_html

        return run_html(self)

    def _repr_markdown_(self) -> str:
        from profkit.callables.run_view import run_markdown

        return run_markdown(self)
