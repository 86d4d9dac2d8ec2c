"""The part of the report page about an application: its answer, and a few steps to zoom into."""

from __future__ import annotations

from dataclasses import dataclass

from profkit.application.answer import Answer
from profkit.application.answer_view import (
    NOTHING,
    facts,
    gain,
    grid,
    kernel_name,
    reasons,
    title,
)
from profkit.application.application import Application, read_application
from profkit.application.drawing import timeline_html_fragment, timeline_script, timeline_style
from profkit.core.text_files import shipped_text
from profkit.ui.template import templates
from profkit.ui.text import factor


@dataclass(frozen=True)
class ApplicationSection:
    """Sections of the page, which need this style and script."""

    html: str
    style: str
    script: str


def page_without_report(answer: Answer) -> str:
    """The page of an application whose kernels were not profiled."""
    from profkit.application.page import application_html

    events = answer.application.events
    return application_html(
        read_application(events, answer.application.nvtx), answer.application.name
    )


def application_section(answer: Answer) -> ApplicationSection:
    """The sections of an application's answer and timeline."""
    from markupsafe import Markup

    page = templates("profkit.page", {"factor": factor}).get_template("application.html.j2")
    html = page.render(
        title=title(answer),
        facts=facts(answer),
        grid=grid(answer),
        reasons=reasons(answer),
        plan=[
            (gain(item.likely, item.ceiling), item, kernel_name(answer, item.part))
            for item in answer.plan
        ],
        nothing=NOTHING,
        together=answer.together if len(answer.plan) > 1 else None,
        fragment=Markup(
            timeline_html_fragment(
                read_application(answer.application.events, answer.application.nvtx)
            )
        ),
    )
    style = shipped_text("profkit.page", "assets/application.css") + timeline_style()
    return ApplicationSection(html, style, timeline_script())


def _timeline(answer: Answer) -> Application:
    return read_application(answer.application.events, answer.application.nvtx)
