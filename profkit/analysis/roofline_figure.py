"""A roofline in Python: one that draws itself."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from profkit.core.extras import lacking, require
from profkit.core.output_file import output_file
from profkit.roofline.roofline import Roofline as ComputedRoofline
from profkit.ui.picture import check_picture
from profkit.ui.text import literal, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Roofline(ComputedRoofline, frozen=True):
    """Kernels under their roofs. In a notebook it shows itself as a picture (extra: plots)."""

    def plot(self, path: str | Path | None = None, *, title: str = "") -> Figure:
        """The roofline as a matplotlib figure, also written to `path` (.png, .svg or .pdf).

            >>> report.roofline(levels=["dram"]).plot("roofline.svg", title="sdpa")

        Raises EnvironmentProblem without matplotlib, UsageError for another kind of file and
        BadInput where no kernel has a point.
        """
        require("Roofline.plot()", "matplotlib")
        from profkit.roofline.plot import figure_of, plot_rooflines

        title = title or Path(self.title).stem
        if path is not None:
            check_picture(Path(path))
            with output_file(Path(path), force=True) as temporary:
                plot_rooflines([self], temporary, title=title)
        figure: Figure = figure_of([self], title=title)
        return figure

    def __repr__(self) -> str:
        extent = f"{plural(len(self.points), 'point')}, {plural(len(self.roofs), 'roof')}"
        return f"<Roofline {literal(Path(self.title).name)}: {extent} on {self.gpu}>"

    def _repr_svg_(self) -> str | None:
        """None where it can't be drawn: a notebook shows the text then."""
        if not self.points or lacking("a plot", "matplotlib"):
            return None
        text = io.StringIO()
        self.plot().savefig(text, format="svg")
        return text.getvalue()
