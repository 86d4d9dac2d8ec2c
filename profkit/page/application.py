"""The part of the report page about an application: its answer, and a few steps to zoom into."""

from msgspec import Struct

from profkit.application.answer import Answer
from profkit.application.answer_view import answer_document
from profkit.application.drawing import timeline_widget
from profkit.application.run import ApplicationRun
from profkit.application.view import application_document
from profkit.core.text_files import shipped_text
from profkit.rules.known_trial import KnownTrial
from profkit.ui.html import document_cell, document_html


class ApplicationSection(Struct, frozen=True):
    """Sections of the page, which need this style and script; `links` are their ids and names."""

    html: str
    style: str
    script: str
    links: tuple[tuple[str, str], ...]


def page_without_report(run: ApplicationRun) -> str:
    """The page of an application whose kernels were not profiled."""
    return document_html(application_document(run.application, run.name, is_page=True))


def trial_section(trial: KnownTrial) -> ApplicationSection:
    """The section of what was tried on a report's kernels."""
    html = f'<section id="application" class="summary">\n{document_cell(trial.blocks)}</section>\n'
    style = shipped_text("profkit.page", "assets/application.css")
    return ApplicationSection(html, style, "", (("application", "Switches tried"),))


def application_section(run: ApplicationRun, answer: Answer) -> ApplicationSection:
    """The sections of an application's answer and timeline."""
    widget = timeline_widget(run.application)
    html = (
        f'<section id="application" class="summary">\n'
        f"{document_cell(answer_document(answer, run).blocks)}</section>\n"
        f'<section id="timeline">\n<h2>Timeline of a few steps</h2>\n{widget.markup}\n</section>\n'
    )
    style = shipped_text("profkit.page", "assets/application.css") + widget.style
    links = ("application", "Application"), ("timeline", "Timeline")
    return ApplicationSection(html, style, widget.script, links)
