"""Verbs as the command line takes them: the options of their structs flat, their docstrings read.

A docstring has a section for each panel of the help, with a line `name (--flag METAVAR): help` for
each parameter; the choices of a literal are added to its help.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import typer
from msgspec import Meta

from profkit.commands import groups
from profkit.commands.kinds import Input
from profkit.commands.options import OUTPUTS, choices_of, parts_of, writable

_PARAMETER = re.compile(r"^  (\w+)(?: \((.+?)\))?: (.+(?:\n    .+)*)", re.MULTILINE)
_FLAGS = re.compile(r"((?:--?[\w/-]+,? ?)*)(.*)")
_Found = TypeVar("_Found")


class _Entry(NamedTuple):
    """What a docstring says of a parameter: its section, flags and metavar, and help."""

    section: str
    words: str
    help: str


def flat(verb: Any) -> Callable[..., None]:
    """The verb with the options of its structs as parameters of its own, annotated for typer.

    Its `inputs` are the kinds of files that parameters take, `documented` those of its docstring.
    What is flat already stays as it is.
    """
    if hasattr(verb, "documented"):
        return verb  # type: ignore[no-any-return]

    def run(**values: Any) -> None:
        _call(verb, values)

    text, entries = _documented(verb.__doc__)
    parameters = list(_parameters(verb, entries))
    flattened: Any = run
    flattened.__name__, flattened.__doc__ = verb.__name__, text
    flattened.__signature__ = inspect.Signature([parameter for parameter, _ in parameters])
    flattened.__annotations__ = {each.name: each.annotation for each, _ in parameters}
    flattened.documented = entries.keys()
    flattened.inputs = {each.name: kind for each, kind in parameters if kind}
    return run


def _call(owner: Any, values: Mapping[str, Any]) -> Any:
    """What a verb, or a struct of options, makes of the values of its parameters."""
    hints, arguments = get_type_hints(owner), {}
    for name in inspect.signature(owner).parameters:
        kind = get_origin(hints[name]) or hints[name]
        if is_dataclass(kind):
            arguments[name] = _call(kind, values)
        else:
            arguments[name] = tuple(values[name] or ()) if kind is tuple else values[name]
    return owner(**arguments)


def _parameters(
    owner: Any, documented: Mapping[str, _Entry], choices: Any = None
) -> Iterator[tuple[inspect.Parameter, Input | None]]:
    """The parameters of a verb or a struct, with what their files must be; `documented` is what
    the verb says of them, `choices` the type that a type variable stands for."""
    entries = {**_common(), **_documented(owner.__doc__)[1], **documented}
    plain, hints = get_type_hints(owner), get_type_hints(owner, include_extras=True)
    for name, parameter in inspect.signature(owner).parameters.items():
        hint = choices if isinstance(plain[name], TypeVar) else plain[name]
        kind = get_origin(hint) or hint
        if is_dataclass(kind):
            yield from _parameters(kind, documented, next(iter(get_args(hint)), None))
            continue
        default = parameter.default
        if kind is tuple:
            hint = list.__class_getitem__(get_args(hint)[0])
            default = None if default == () else default
        if hint is not typer.Context:
            bounds = _first(Meta, hints[name])
            info = _info(name, hint, default, entries[name], bounds.ge if bounds else None)
            hint = Annotated[hint, info]
        changed = parameter.replace(
            annotation=hint, default=default, kind=inspect.Parameter.KEYWORD_ONLY
        )
        yield changed, _first(Input, hints[name])


def _info(name: str, hint: Any, default: object, entry: _Entry, least: float | None) -> Any:
    """What typer is told of a parameter."""
    choices = choices_of(hint)  # in the help, which wraps between words
    text = f"{entry.help}: {', '.join(choices)}." if choices else entry.help
    if entry.section == "Arguments":
        return typer.Argument(metavar=entry.words, help=text)
    words = _FLAGS.fullmatch(entry.words)
    assert words is not None
    # Without a name typer 0.27 and 0.28 take the metavar for one: --FORMAT.
    option = name.replace("_", "-")
    usual = f"--{option}/--no-{option}" if default is True else f"--{option}"
    return typer.Option(
        *(words[1].replace(",", "").split() or [usual]),
        metavar=words[2] or (name.upper() if choices else None),
        min=least,
        help=text,
        rich_help_panel=None if entry.section == "Options" else entry.section,
        callback=writable if name in OUTPUTS and words[2] == "FILE" else None,
    )


@cache
def _common() -> dict[str, _Entry]:
    return _documented(groups.__doc__)[1]


def _documented(docstring: str | None) -> tuple[str, dict[str, _Entry]]:
    """A docstring without its sections of parameters, and those parameters."""
    rest: list[str] = []
    entries: dict[str, _Entry] = {}
    for paragraph in inspect.cleandoc(docstring or "").split("\n\n"):
        title, _, body = paragraph.partition(":\n")
        listed = _PARAMETER.findall(body)
        for name, words, text in listed:
            entries[name] = _Entry(title, " ".join(words.split()), " ".join(text.split()))
        if not listed:
            rest.append(paragraph)
    return "\n\n".join(rest), entries


def _first(kind: type[_Found], hint: Any) -> _Found | None:
    return next((part for part in parts_of(hint) if isinstance(part, kind)), None)
