"""Reading of untrusted YAML files.

Size, depth, number of values and digits are limited; an alias counts each time it is used. Files of
the package itself are read without limits.
"""

from pathlib import Path
from typing import Any, NamedTuple

import yaml
from yaml.constructor import SafeConstructor

from profkit.core.errors import inside
from profkit.core.text_files import (
    CHECK,
    DEEPEST,
    MOST_DIGITS,
    Malformed,
    WrongFormat,
    brief_words,
    read_text,
    shipped_text,
)

_LARGEST_YAML = 4 << 20  # 85 times all shipped rules; YAML takes 20 times as long as JSON
_MOST_YAML = 200_000  # values: 1.5 s
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NUMBERS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}


def read_yaml(path: Path, remedy: str = CHECK) -> Any:
    """The plain data of a YAML file; raises as `read_text`, and Malformed as `compose_yaml`."""
    text = read_text(path, remedy, _LARGEST_YAML)
    with inside(path, remedy):
        return _constructed(compose_yaml(text))


def compose_yaml(text: str) -> yaml.Node | None:
    """The nodes of a YAML document, an alias being the node that it names; None for an empty one.

    Raises Malformed for what is no YAML, nested too deep, of too many values (an alias counts as
    all that it names), or with numbers of too many digits.
    """
    if len(text) > _LARGEST_YAML:
        raise Malformed(f"{len(text):,} characters, at most {_LARGEST_YAML:,}", "split it")
    try:
        return _Composer(text).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        problem = getattr(error, "problem", None) or brief_words(error)
        raise WrongFormat(f"is not YAML ({problem})", line=line) from None


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
        root = self._part(self._parser.get_event(), DEEPEST)
        self._parser.get_event()  # the document's end
        another = self._parser.get_event()
        if not isinstance(another, yaml.StreamEndEvent):
            raise _malformed("a second document, at most one is read", another)
        return root.node

    def _part(self, event: Any, levels: int) -> _Part:
        """What begins with an event and may have so many levels."""
        part = self._named(event) if isinstance(event, yaml.AliasEvent) else None
        if levels < (part.levels if part else 1):
            raise _malformed(f"nested too deeply (more than {DEEPEST} levels)", event)
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
            raise _malformed(f"is not YAML (undefined alias {event.anchor[:80]!r})", event)
        return part

    def _scalar(self, event: Any) -> _Part:
        tag = self._tag(event, yaml.ScalarNode, event.value)
        if tag in _NUMBERS and len(event.value) > MOST_DIGITS:
            raise _malformed(
                f"contains a number of {len(event.value):,} digits, at most {MOST_DIGITS}", event
            )
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
                raise _malformed(f"too large, more than {_MOST_YAML:,} values", inner)
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
        # The constructor's message for a value that does not match its tag: a 13th month, !!int x
        raise Malformed(f"contains an invalid value ({brief_words(error)})") from None


def shipped_yaml(package: str, name: str) -> Any:
    """A YAML document that comes with the package."""
    return yaml.load(shipped_text(package, name), Loader=_LOADER)
