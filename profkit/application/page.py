"""An application's timeline as one page for a browser: the table and a zoomable view."""

from __future__ import annotations

import base64
import hashlib

from profkit.application.application import Application, table, wall_row
from profkit.application.drawing import timeline_html_fragment, timeline_script, timeline_style
from profkit.application.view import explained, headline, recording_facts, row_cells, short_lines
from profkit.core.text_files import shipped_text
from profkit.ui.template import templates


def application_html(application: Application, file: str) -> str:
    """The page; it loads nothing."""
    from markupsafe import Markup

    first = application.processes[0]
    script = timeline_script()
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rows = [*table(first), wall_row(first)]
    page = templates("profkit.application").get_template("timeline.html.j2")
    return page.render(
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hashed}'",
        file=file,
        headline=headline(first),
        facts=list(recording_facts(application, file)),
        rows=[(row, row_cells(row)) for row in rows],
        others=list(short_lines(application)),
        explained=explained(first),
        picks=[(pick, first.named.kernel_names[pick.name].name) for pick in first.ranking.picks],
        style=Markup(timeline_style()),
        colors=Markup(_colors()),
        script=Markup(script),
        fragment=Markup(timeline_html_fragment(application)),
    )


def _colors() -> str:
    return shipped_text("profkit.application", "assets/page.css")
