"""Text files that others may have written: the one place where JSON, YAML and text are read.

Each is read within limits on its size, depth, number of values and digits, of which YAML's aliases
count as often as they are used. What the package itself brings along is read without them.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from reprlib import repr as brief
from typing import Any, NamedTuple, NoReturn

import yaml
from yaml.constructor import SafeConstructor

from profkit.core.errors import BadInput
from profkit.core.regular_file import read_limited

_LARGEST_TEXT = 64 << 20  # 90 times the largest kept summary; a document of it takes under 300 MB
_LARGEST_YAML = 4 << 20  # 85 times all shipped rules; YAML takes 20 times as long as JSON
_MOST_JSON = 2_000_000  # values: 0.5 s, and under 300 MB where each is an object
_MOST_YAML = 200_000  # values: 1.5 s
_DEEPEST = 50  # levels: the deepest format of our own has 12
_MOST_DIGITS = 100  # of an integer; Python reads 4,300, and a double holds no number of 310

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+', re.DOTALL)
_BRACKETS = re.compile(r"[^\[\]{}]++")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_CHECK = "check the file"


class MissingFile(BadInput):
    """A file that is not there."""


class Malformed(BadInput):
    """Text that is not of its format, or beyond a limit; `line` counts from 1, 0 where unknown."""

    def __init__(self, message: str, remedy: str = _CHECK, line: int = 0) -> None:
        super().__init__(message, remedy)
        self.line = line


class WrongFormat(Malformed):
    """Text of another format."""


def read_text(path: Path, remedy: str = "check the path", largest: int = _LARGEST_TEXT) -> str:
    """The UTF-8 text of a regular file.

    Raises MissingFile, and BadInput with this `remedy` where it can't be read; BadInput too for
    what is no regular file, more than `largest` bytes or not UTF-8.
    """
    try:
        return read_limited(path, largest).decode("utf-8")
    except FileNotFoundError as error:
        raise MissingFile(f"{path}: can't be read ({error.strerror})", remedy) from None
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror})", remedy) from None
    except ValueError as error:
        why = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "no such name"
        raise BadInput(f"{path}: can't be read ({why})", remedy) from None


def read_json(path: Path, remedy: str = _CHECK) -> Any:
    """The document of a JSON file; raises as `read_text`, and Malformed as `parse_json`."""
    text = read_text(path, remedy)
    try:
        return parse_json(text)
    except Malformed as error:
        raise Malformed(f"{path}: {error.message}", remedy) from None


def read_yaml(path: Path, remedy: str = _CHECK) -> Any:
    """The plain data of a YAML file; raises as `read_text`, and Malformed as `compose_yaml`."""
    text = read_text(path, remedy, _LARGEST_YAML)
    try:
        return _constructed(compose_yaml(text))
    except Malformed as error:
        raise Malformed(f"{path}: {error.message}", remedy, error.line) from None


def parse_json(text: str, number: Callable[[str], Any] | None = None, **hooks: Any) -> Any:
    """A JSON document of finite numbers and whole characters; `hooks` are those of `json.loads`.

    `number` makes the values of numbers from their texts. Raises Malformed for what is no JSON,
    and for JSON that can't be handed on: NaN, infinities, halves of characters, lists nested too
    deep, too many values, numbers of too many digits.
    """
    _check_extent(text)
    if number is not None:
        hooks |= dict.fromkeys(("parse_float", "parse_int"), _limited(number))
    try:
        document = json.loads(
            text,
            **{"parse_constant": _not_finite, "parse_float": _finite, "parse_int": _whole, **hooks},
        )
    except (ValueError, RecursionError) as error:
        raise WrongFormat(f"is not JSON ({brief_words(error)})") from None
    if _SURROGATE.search(text):
        _check_characters(text)
    return document


def _check_extent(text: str) -> None:
    """Raise Malformed for more values or levels than are read; strings count at most once."""
    if text.count(",") + text.count("[") + text.count("{") > _MOST_JSON:
        bare = _STRING.sub("", text)
        if bare.count(",") + bare.count("[") + bare.count("{") > _MOST_JSON:
            raise Malformed(f"holds more than {_MOST_JSON:,} values", "split it")
    if text.count("[") + text.count("{") > _DEEPEST:
        brackets = _BRACKETS.sub("", _STRING.sub("", text))
        steps = (1 if bracket in "[{" else -1 for bracket in brackets)
        if max(itertools.accumulate(steps), default=0) > _DEEPEST:
            raise Malformed("its lists are nested too deep")


def _not_finite(word: str) -> NoReturn:
    raise Malformed(f"holds {word}", "numbers are finite")


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _not_finite(brief(word))


def _limited(number: Callable[[str], Any]) -> Callable[[str], Any]:
    """The same for a number of few enough digits."""

    def checked(word: str) -> Any:
        if len(word) > _MOST_DIGITS:
            raise Malformed(f"holds a number of {len(word):,} digits", f"at most {_MOST_DIGITS}")
        return number(word)

    return checked


_whole = _limited(int)


def _check_characters(text: str) -> None:
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Malformed("holds half a character (a lone surrogate)") from None


def brief_words(error: Exception) -> str:
    """What a parser's error says, on one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def compose_yaml(text: str) -> yaml.Node | None:
    """The nodes of a YAML document, an alias being the node that it names; None for an empty one.

    Raises Malformed for what is no YAML, nested too deep, of too many values (an alias counts as
    all that it names), or with numbers of too many digits.
    """
    if len(text) > _LARGEST_YAML:
        raise Malformed(f"has {len(text):,} characters, at most {_LARGEST_YAML:,}", "split it")
    try:
        return _Composer(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        raise WrongFormat(f"is not YAML ({brief_words(error)})", line=line) from None


class _Part(NamedTuple):
    """A node, and of what it stands for with its aliases: the number of values and of levels."""

    node: yaml.Node
    size: int = 1
    levels: int = 1


class _Composer:
    """Nodes of a parser's events. libyaml's own composer ends the process on deep nesting."""

    def __init__(self, text: str) -> None:
        self._parser = _LOADER(text)
        self._anchors: dict[str, _Part] = {}

    def document(self) -> yaml.Node | None:
        self._parser.get_event()  # the stream's start
        if isinstance(self._parser.get_event(), yaml.StreamEndEvent):
            return None
        root = self._part(self._parser.get_event(), _DEEPEST)
        self._parser.get_event()  # the document's end
        another = self._parser.get_event()
        if not isinstance(another, yaml.StreamEndEvent):
            raise _malformed("a second document", another)
        return root.node

    def _part(self, event: Any, levels: int) -> _Part:
        """What begins with an event and may have so many levels."""
        part = self._named(event) if isinstance(event, yaml.AliasEvent) else None
        if levels < (part.levels if part else 1):
            raise _malformed("its lists are nested too deep", event)
        if part:
            return part
        is_scalar = isinstance(event, yaml.ScalarEvent)
        part = self._scalar(event) if is_scalar else self._collection(event, levels)
        if event.anchor:
            self._anchors[event.anchor] = part
        return part

    def _named(self, event: Any) -> _Part:
        part = self._anchors.get(event.anchor)
        if part is None:
            raise _malformed(f"is not YAML (no {event.anchor[:80]!r} before this alias)", event)
        return part

    def _scalar(self, event: Any) -> _Part:
        tag = self._tag(event, yaml.ScalarNode, event.value)
        if tag in _NUMBERS and len(event.value) > _MOST_DIGITS:
            raise _malformed(f"holds a number of {len(event.value):,} digits", event)
        marks = event.start_mark, event.end_mark
        return _Part(yaml.ScalarNode(tag, event.value, *marks, style=event.style or None))

    def _collection(self, event: Any, levels: int) -> _Part:
        mapping = isinstance(event, yaml.MappingStartEvent)
        kind = yaml.MappingNode if mapping else yaml.SequenceNode
        nodes: list[yaml.Node] = []
        size, deepest = 1, 0
        while not isinstance(inner := self._parser.get_event(), yaml.CollectionEndEvent):
            part = self._part(inner, levels - 1)
            nodes.append(part.node)
            size, deepest = size + part.size, max(deepest, part.levels)
            if size > _MOST_YAML:
                raise _malformed(f"too large: more than {_MOST_YAML:,} values", inner)
        value = list(zip(nodes[::2], nodes[1::2], strict=True)) if mapping else nodes
        node = kind(self._tag(event, kind, None), value, event.start_mark)
        return _Part(node, size, deepest + 1)

    def _tag(self, event: Any, kind: type[yaml.Node], value: str | None) -> str:
        if event.tag is None or event.tag == "!":
            return str(self._parser.resolve(kind, value, event.implicit))
        return str(event.tag)


def _malformed(message: str, event: Any) -> Malformed:
    line = event.start_mark.line + 1
    return Malformed(f"line {line}: {message}", line=line)


def _constructed(node: yaml.Node | None) -> Any:
    """Plain data; what looks like a date stays a date."""
    if node is None:
        return None
    try:
        return SafeConstructor().construct_document(node)
    except yaml.YAMLError as error:
        raise Malformed(f"is not YAML ({brief_words(error)})") from None
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        # The constructor's own words for a value that is not of its tag: a 13th month, !!int x
        raise Malformed(f"holds a value that is none of its kind ({brief_words(error)})") from None


def shipped_text(package: str, name: str) -> str:
    """A text that comes with the package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def shipped_json(package: str, name: str) -> Any:
    """A JSON document that comes with the package."""
    return json.loads(shipped_text(package, name))


def shipped_yaml(package: str, name: str) -> Any:
    """A YAML document that comes with the package."""
    return yaml.load(shipped_text(package, name), Loader=_LOADER)
