"""Reads the YAML of frontmatter: the core schema of YAML 1.2, as JSON values (F4).

PyYAML's C parser reads the text. Its loaders interpret plain scalars as YAML 1.1 (``yes`` as a boolean, ``012`` as
an octal number, ``2026-01-01`` as a date), so the values are built here from the parser's events instead. At this
level, everything that JSON cannot express or that other programs reject is refused before memory grows: anchors
and aliases (the "YAML bomb"), tags, keys that are not text, duplicate keys, infinities, and deep nesting.

``format_text`` writes a text that every reader of YAML, also of YAML 1.1, reads as the same text.

This is the only file that imports ``yaml``.
"""

from __future__ import annotations

import json
import math
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from yaml import cyaml
from yaml.error import MarkedYAMLError, YAMLError
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from skillwire.errors import FormatError
from skillwire.skill.diagnostics import Position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillwire.skill.frontmatter import Json

_WORDS: dict[str, Json] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_WORDS_OF_OLDER_YAML = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false", "null"})  # in any case
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")

_COMMENT = re.compile(r"#[ \t]*([^\r\n]*)")
_DEEPEST = 64  # far more than the limit for frontmatter
_MANY_DIGITS = 400  # more than the largest double has: a longer finite number begins with zeros
_LARGEST = int(sys.float_info.max)

# The C parser follows YAML 1.1, which breaks lines at these three characters; YAML 1.2 does not. They are replaced
# by private-use characters before parsing, and restored afterwards.
_BREAKS = "\x85\u2028\u2029"
_STAND_INS = "\uf8f0\uf8f1\uf8f2"
_MENTIONS_STAND_IN = re.compile("[\uf8f0-\uf8f2]|[fF]8[fF][0-2]")  # literally, or as an escape
_HIDE = str.maketrans(_BREAKS, _STAND_INS)
_SHOW = str.maketrans(_STAND_INS, _BREAKS)


class YamlDocument(NamedTuple):
    """A mapping read from YAML, and the position of each top-level value."""

    values: dict[str, Json]
    positions: dict[str, Position]


def parse_yaml_mapping(text: str, *, max_depth: int, first_line: int = 1) -> YamlDocument:
    """Read ``text`` as one YAML mapping. ``FormatError`` with line and column if it is anything else."""
    restore: Callable[[str], str] | None = None
    if any(character in text for character in _BREAKS):
        if _MENTIONS_STAND_IN.search(text):
            raise FormatError(
                "yaml-invalid",
                "the frontmatter mixes Unicode line separators with private-use characters",
                "remove the characters U+0085, U+2028 and U+2029",
                line=first_line,
            )
        text = text.translate(_HIDE)
        restore = _restore
    reader = _Reader(text, max_depth, first_line, restore)
    try:
        return reader.document()
    except YAMLError as error:
        raise _syntax_error(error, text, first_line) from error
    except UnicodeDecodeError as error:  # only from percent escapes in tags, which the parser decodes itself
        raise FormatError(
            "yaml-tag", "a tag of the frontmatter is not text", "remove the tag", line=first_line
        ) from error
    finally:
        reader.close()


def find_comments(text: str) -> Iterator[tuple[int, str]]:
    """The comments in ``text`` with their offsets. Every ``#`` that is not part of a value begins one.

    After invalid YAML, the rest of the text is searched line by line.
    """
    if "#" not in text:
        return
    parser = cast("Any", cyaml).CParser(text.translate(_HIDE))
    at = depth = 0
    try:
        while (event := parser.get_event()) is not None and depth <= _DEEPEST:
            if type(event) is not ScalarEvent:
                depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
                continue
            start, end = event.start_mark.index, event.end_mark.index
            yield from _comments(text, at, start)
            if event.style in ("|", ">"):
                yield from _comments(text, start, min(text.find("\n", start) % (len(text) + 1), end))
            at = max(at, end)
    except (YAMLError, UnicodeDecodeError):
        pass
    finally:
        parser.dispose()
    yield from _comments(text, at, len(text))


def _comments(text: str, start: int, end: int) -> Iterator[tuple[int, str]]:
    for match in _COMMENT.finditer(text, start, end):
        yield match.start(), match[1]


def _with_many_zeros(text: str) -> int:
    """Python refuses to parse thousands of digits; here all but the last few hundred are leading zeros."""
    whole = int(text.lstrip("+-0") or "0")
    return -whole if text.startswith("-") else whole


def _restore(text: str) -> str:
    return text.translate(_SHOW)


class _Reader:
    """A recursive descent over the C parser's events."""

    def __init__(self, text: str, max_depth: int, first_line: int, restore: Callable[[str], str] | None) -> None:
        parser = cast("Any", cyaml).CParser(text)
        self._text = text
        self._next: Callable[[], Any] = parser.get_event
        self.close: Callable[[], None] = parser.dispose
        self._max_depth = max_depth
        self._first_line = first_line
        self._restore = restore
        self._positions: dict[str, Position] = {}

    def document(self) -> YamlDocument:
        self._next()  # start of the stream
        if type(self._next()) is StreamEndEvent:
            raise FormatError("frontmatter-empty", "the frontmatter is empty", _NAME_HINT, line=1)
        root = self._next()
        if type(root) is not MappingStartEvent:
            raise self._error(root, "frontmatter-not-mapping", "the frontmatter is not a mapping", _NAME_HINT)
        values = cast("dict[str, Json]", self._value(root, 0))
        self._next()  # end of the document
        extra = self._next()
        if type(extra) is not StreamEndEvent:
            raise self._error(
                extra,
                "yaml-invalid",
                "the frontmatter holds more than one YAML document",
                "remove the '...' line",
            )
        return YamlDocument(values, self._positions)

    def _value(self, event: Any, depth: int) -> Json:
        kind = cast("type[object]", type(event))
        if kind is AliasEvent or event.anchor is not None:
            raise self._error(
                event, "yaml-alias", "anchors and aliases are not allowed in frontmatter", "write the value out"
            )
        if event.tag is not None:
            raise self._error(
                event,
                "yaml-tag",
                f"the tag {event.tag!r:.60} is not allowed in frontmatter",
                "remove the tag; quote the value if it is text",
            )
        if kind is ScalarEvent:
            return self._scalar(event)
        if depth >= self._max_depth:
            raise self._error(
                event,
                "yaml-too-deep",
                f"the frontmatter nests deeper than {self._max_depth} levels",
                "flatten it, or move the data into a file of the skill",
            )
        return self._mapping(event, depth) if kind is MappingStartEvent else self._sequence(depth)

    def _mapping(self, event: Any, depth: int) -> dict[str, Json]:
        values: dict[str, Json] = {}
        while type(event := self._next()) is not MappingEndEvent:
            key = self._key(event)
            if key in values:
                raise self._error(
                    event,
                    "yaml-duplicate-key",
                    f"the key {key!r:.60} is written twice",
                    "keep one of the two",
                )
            value = self._next()
            if depth == 0:
                self._positions[key] = self._position(value)
            values[key] = self._value(value, depth + 1)
        return values

    def _sequence(self, depth: int) -> list[Json]:
        items: list[Json] = []
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._value(event, depth + 1))
        return items

    def _key(self, event: Any) -> str:
        key = self._value(event, 0) if type(event) in (ScalarEvent, AliasEvent) else None
        before = event.start_mark.index - 1
        if before >= 0 and self._text[before] == "?":  # [?x] is text in YAML 1.2, a key in 1.1
            raise self._error(event, "yaml-key", "a value begins with '?'", "put it in quotes if it is text")
        if isinstance(key, str):
            return key
        raise self._error(
            event, "yaml-key", "a key of the frontmatter is not text", "put the key in quotes if it is text"
        )

    def _scalar(self, event: Any) -> Json:
        text: str = event.value
        if event.implicit[0]:  # plain: unquoted, not a block
            if text in _WORDS:
                return _WORDS[text]
            if text[0] in _NUMBER_START:
                return self._number(event, text)
        return text if self._restore is None else self._restore(text)

    def _number(self, event: Any, text: str) -> Json:
        if _FLOAT.match(text):
            number = float(text)
            if math.isinf(number):
                raise self._not_json(event, text)
            if not _INTEGER.match(text):
                return number
            return int(text) if len(text) < _MANY_DIGITS else _with_many_zeros(text)
        if _OCTAL.match(text) or _HEXADECIMAL.match(text):
            whole = int(text[2:], 8 if text[1] == "o" else 16)
            if whole > _LARGEST:
                raise self._not_json(event, text)
            return whole
        if _NOT_FINITE.match(text):
            raise self._not_json(event, text)
        return text if self._restore is None else self._restore(text)

    def _not_json(self, event: Any, text: str) -> FormatError:
        return self._error(
            event, "yaml-number", f"JSON cannot express the number {text!r:.40}", "quote it if it is text"
        )

    def _position(self, event: Any) -> Position:
        mark = event.start_mark
        return Position(mark.line + self._first_line, mark.column + 1)

    def _error(self, event: Any, reference: str, message: str, hint: str) -> FormatError:
        line, column = self._position(event)
        return FormatError(reference, message, hint, line=line, column=column)


_NAME_HINT = "write at least 'name: …' and 'description: …' between the two '---' lines"

# The parser's messages, and a fix for each.
_SYNTAX_HINTS = {
    "mapping values are not allowed": "a value that contains ': ' must be quoted, or written as a block with '>-'",
    "could not find expected ':'": "every line needs 'key: value'; indent the lines that continue a value",
    "tab character": "indent with spaces, not with tabs",
    "cannot start any token": "indent with spaces; quote a value that begins with a special character",
    "did not find expected key": "check the indentation and the quotes of the line before",
    "unexpected end of stream": "close the quote or the bracket",
    "control characters are not allowed": "remove the control character, or quote it as an escape",
}


def _syntax_error(error: YAMLError, text: str, first_line: int) -> FormatError:
    problem, line, column = "syntax error", None, None
    if isinstance(error, MarkedYAMLError):
        problem = error.problem or error.context or problem
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            line, column = mark.line + first_line, mark.column + 1
    else:  # a character that YAML does not allow: the error has only its offset
        problem = str(getattr(error, "reason", problem))
        offset = int(getattr(error, "position", 0))
        before = text.encode("utf-8", "surrogatepass")[:offset].decode(errors="replace")
        line, column = before.count("\n") + first_line, len(before) - before.rfind("\n")
    hint = next((hint for part, hint in _SYNTAX_HINTS.items() if part in problem), "check the YAML syntax there")
    return FormatError(
        "yaml-invalid", f"the frontmatter is not valid YAML: {problem}", hint, line=line, column=column
    )


def format_text(text: str) -> str:
    """``text`` as a YAML value, in quotes if it could mean something else."""
    is_plain = text.isascii() and text.isprintable() and text[:1].isalpha() and not text.endswith((":", " "))
    if is_plain and ": " not in text and " #" not in text and text.lower() not in _WORDS_OF_OLDER_YAML:
        return text
    return quote_text(text)


def quote_text(text: str) -> str:
    """``text`` as a double-quoted YAML value: JSON, with every unprintable character escaped."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)
