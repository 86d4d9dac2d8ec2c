"""A hook of MkDocs: files of the repository that pages link to become pages of the site.

Pages link to kernels, schemas and reports beside docs/. On the site a text file becomes a page with
its highlighted lines, so that `before.cu#L18` leads to the line; a link to anything else (a folder,
a compressed report) becomes plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, InclusionLevel

_ROOT = Path(__file__).parent.parent
_FOLDER = "files"
_LANGUAGES = {".cu": "cuda", ".py": "python", ".json": "json", ".yaml": "yaml", ".md": "markdown"}
_LARGEST = 1 << 18  # bytes; beyond it a page would be slow to open
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
_LINE = re.compile(r'<a data-line="(\d+)" href="([^"]*)">')
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.DOTALL | re.MULTILINE)
_NESTED = re.compile(r"^ {2,}(?=(?:[-*]|\d+\.) )", re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, *, config: Any) -> Any:
    """Add a page for each file outside docs/ that a page links to."""
    for page in list(files.documentation_pages()):
        for _, _, link, _ in _LINK.findall(page.content_string):
            target = _outside(page.src_uri, link)
            if target is None or files.get_file_from_path(_page_of(target)):
                continue
            listing = File.generated(
                config,
                _page_of(target),
                content=_listing(target),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
            files.append(listing)
    return files


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """Lead links outside docs/ to the pages made of those files, and read Markdown in folds.

    Items are nested by two spaces on GitHub, by four on the site.
    """
    markdown = markdown.replace("<details>", '<details markdown="1">')
    parts = _FENCE.split(markdown)
    parts[::2] = [_NESTED.sub(lambda spaces: 2 * spaces[0], part) for part in parts[::2]]
    markdown = "".join(parts)
    return _LINK.sub(lambda link: _link(link, page.file.src_uri), markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Lead links to a line to its anchor, which MkDocs can't see while it checks links.

    In tables GitHub shows an escaped pipe in code as a pipe; so does the site.
    """
    html = _LINE.sub(lambda link: f'<a href="{link[2]}#__codelineno-0-{link[1]}">', html)
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def _link(link: re.Match[str], source: str) -> str:
    image, words, path, anchor = link.groups()
    if not (path_outside := _repository_path(source, path)) or image:
        return link.group()
    target = _outside(source, path)
    if target is None:
        if not (_ROOT / path_outside).exists():
            return link.group()  # MkDocs warns of it
        return words
    to = posixpath.relpath(_page_of(target), posixpath.dirname(source))
    line = re.fullmatch(r"#L(\d+)", anchor or "")
    return f"[{words}]({to}){{data-line={line[1]}}}" if line else f"[{words}]({to})"


def _repository_path(source: str, link: str) -> str | None:
    """Where a link leads in the repository, where that is outside docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), link))
    return None if path.startswith(("docs/", "..")) else path


def _outside(source: str, link: str) -> str | None:
    """The file outside docs/ that a link leads to, where it can be shown."""
    path = _repository_path(source, link)
    if path is None or Path(path).suffix not in _LANGUAGES:
        return None
    file = _ROOT / path
    return path if file.is_file() and file.stat().st_size <= _LARGEST else None


def _page_of(path: str) -> str:
    return f"{_FOLDER}/{path}.md"


def _listing(path: str) -> str:
    text = (_ROOT / path).read_text(encoding="utf-8")
    language = _LANGUAGES[Path(path).suffix]
    front = "---\nsearch:\n  exclude: true\nhide: [navigation]\n---\n"
    return f'{front}# {path}\n\n````{language} linenums="1"\n{text.rstrip()}\n````\n'
