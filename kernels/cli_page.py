"""The page of the command line: usage, help, arguments and options of every verb."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, get_args

import typer

from profkit.commands.cli import app
from profkit.ui.markdown import cell, code, escape, table

_LEAD = """\
Every verb with its arguments and options, as `profkit VERB --help` has them. `make docs` writes
this page. [Exit codes](limits.md#exit-codes) are the same for all verbs. Options that many verbs
have:"""
_COMMON = 10  # verbs with an option of the same words, chosen: it is described once


def cli_page() -> str:
    """The page docs/reference/cli.md."""
    root: Any = typer.main.get_command(app)
    # A verb keeps the names of --help, which are the root's, from the first context that asks.
    parent = root.make_context("profkit", [], resilient_parsing=True)
    known = [*verbs(root, "profkit")]
    counted = Counter(row for _, verb in known for row in _options(verb))
    common = {row: None for row, count in counted.items() if count >= _COMMON}
    lines = ["# Command line", "", _LEAD, "", *table(("Option", "Value", "Meaning"), common)]
    for name, verb in known:
        context = verb.context_class(verb, info_name=name, parent=parent)
        lines += ["", f"## {name}", *_verb(verb, name, context, common)]
    return "\n".join(lines) + "\n"


def verbs(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The verbs of a group by what is typed for them, those of its groups in their places."""
    for word, verb in group.commands.items():
        if hasattr(verb, "commands"):
            yield from verbs(verb, f"{name} {word}")
        else:
            yield f"{name} {word}", verb


def _options(verb: Any) -> list[tuple[str, str, str]]:
    return [_row(each) for each in verb.params if _is_option(each) and not each.hidden]


def _verb(verb: Any, name: str, context: Any, common: Collection[Any]) -> Iterator[str]:
    yield from ("", "```text", " ".join([name, *verb.collect_usage_pieces(context)]), "```")
    yield from _help(verb.help or "")
    if arguments := [_row(each) for each in verb.params if not _is_option(each)]:
        rows = [(name, meaning) for name, _, meaning in arguments]
        yield from ("", *table(("Argument", "Meaning"), rows))
    options = _options(verb)
    if own := [row for row in options if row not in common]:
        yield from ("", *table(("Option", "Value", "Meaning"), own))
    if shared := [row[0] for row in options if row in common]:
        yield from ("", f"Also {'; '.join(shared)}.")


def _help(text: str) -> Iterator[str]:
    """The help's paragraphs; its examples as a block of commands."""
    examples = []
    for paragraph in re.split(r"\n\s*\n", text):
        title, *lines = paragraph.splitlines()
        if title == "Examples:":
            examples += [f"$ {line.strip()}" for line in lines]
        else:
            yield from ("", " ".join(paragraph.split()))
    if examples:
        yield from ("", "```console", *examples, "```")


def _is_option(parameter: Any) -> bool:
    return any(name.startswith("-") for name in parameter.opts)


def _row(parameter: Any) -> tuple[str, str, str]:
    names = [*parameter.opts, *parameter.secondary_opts]
    if not _is_option(parameter):
        names = [parameter.metavar or names[0].upper()]
    meaning = escape(parameter.help or "")
    if parameter.required:
        meaning += " Required."
    default = parameter.default
    if default not in (None, False, (), [], "") and not callable(default):
        value = default.value if isinstance(default, Enum) else default
        meaning += f" Default: {code(_default(parameter, value), in_table=True)}."
    names_shown = ", ".join(code(name, in_table=True) for name in names)
    return names_shown, cell(_value(parameter)), meaning.strip()


def _default(parameter: Any, value: object) -> str:
    if isinstance(value, bool):
        return str(parameter.opts[0] if value else parameter.secondary_opts[0])
    return str(value)


def _value(parameter: Any) -> str:
    """The name of a parameter's value."""
    annotation = parameter.type_descriptor.annotation
    if bool in (annotation, *get_args(annotation)):
        return ""
    word = parameter.metavar or getattr(annotation, "__name__", str(annotation)).upper()
    low, high = getattr(parameter, "min", None), getattr(parameter, "max", None)
    if low is not None:
        word += f" ≥ {low:g}"
    return word if high is None else f"{word} ≤ {high:g}"
