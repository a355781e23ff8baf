"""JSON with comments: parse it, and insert or remove one entry without changing the rest. Pure.

The format is JSON with ``//`` and ``/* */`` comments and trailing commas, as in VS Code. Comments, order and
spacing stay; a new entry gets the style of the surrounding text. ``FormatError`` has the line of a syntax error,
or reports that there is no object at the place of the entry.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SPACE = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_ATOM = re.compile(r"-?(?:0|[1-9][0-9]{0,999})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Member:
    """A key and its value inside an object; ``start`` is where the key begins."""

    key: str
    start: int
    value: Node


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its position. ``tail`` is the end of the last text before the closing brace of an object."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()
    tail: int = 0
    has_comma: bool = False
    is_object: bool = field(default=False)

    def member(self, key: str) -> Member | None:
        """The member ``key``; ``FormatError`` if there are two."""
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise FormatError("config-invalid", f"the file has {key!r:.80} twice", "remove one of them")
        return found[0] if found else None


def parse(text: str, make_object: Callable[[list[tuple[str, Any]]], Any] = dict[str, Any]) -> Node:
    """Parse ``text``. ``make_object`` creates the value of an object from its keys and values."""
    reader = _Reader(text, make_object)
    node = reader.value(reader.skip(0), 0)
    if reader.skip(node.end) != len(text):
        reader.fail(node.end, "there is text after the end")
    return node


def insert(text: str, path: Sequence[str], key: str, value: Any) -> str:
    """Add ``key: value`` to the object at ``path``, which is created if it is missing."""
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    node = _object(parse(text), "the file")
    for depth, step in enumerate(path):
        member = node.member(step)
        if member is None:
            for outer in reversed(path[depth + 1 :]):
                key, value = outer, {key: value}
            return _put(text, node, step, {key: value})
        node = _object(member.value, repr(step))
    if node.member(key) is not None:
        raise FormatError("config-taken", f"the entry {key!r:.80} already exists", "choose another --name")
    return _put(text, node, key, value)


def remove(text: str, path: Sequence[str], key: str) -> str:
    """Remove ``key`` and its comma from the object at ``path``."""
    node = _object(parse(text), "the file")
    for step in path:
        member = node.member(step)
        if member is None:
            return text
        node = _object(member.value, repr(step))
    found = node.member(key)
    if found is None:
        return text
    at, reader = node.members.index(found), _Reader(text)
    end, had_comma = reader.comma(found.value.end)
    begin, end = _whole_line(text, found.start, end)
    if at and not had_comma:  # the comma before it is removed too
        comma = reader.comma(node.members[at - 1].value.end)[0] - 1
        return text[:comma] + text[comma + 1 : begin] + text[end:]
    return text[:begin] + text[end:]


def _whole_line(text: str, begin: int, end: int) -> tuple[int, int]:
    """Extend a range to its whole line if nothing else is on it, else to the space before it."""
    first, last = len(text[:begin].rstrip(" \t")), len(text) - len(text[end:].lstrip(" \t"))
    if text[first - 1 : first] == "\n" and text[last : last + 1] in ("\n", "\r"):
        return first - (2 if text[first - 2 : first] == "\r\n" else 1), last
    return first, end


def _object(node: Node, what: str) -> Node:
    if not node.is_object:
        raise FormatError("config-invalid", f"{what} is not an object", "fix the file by hand")
    return node


def _put(text: str, node: Node, key: str, value: Any) -> str:
    line = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(text)
    if node.members and "\n" not in text[node.start : node.end]:  # one line, also with the new entry
        comma = "" if node.has_comma else ","
        last = node.members[-1].value.end
        return (
            text[:last]
            + comma
            + text[last : node.tail]
            + f" {json.dumps(key)}: {_dumps(value)}"
            + text[node.tail :]
        )
    outer = _indent(text, node.start)
    inner = _indent(text, node.members[0].start) if node.members else outer + unit
    body = _dumps(value, unit).replace("\n", line + inner)
    entry = f"{line}{inner}{json.dumps(key, ensure_ascii=False)}: {body}"
    rest = text[node.tail : node.end]
    closing = rest if "\n" in rest else f"{line}{outer}}}"
    if not node.members:
        return text[: node.tail] + entry + closing + text[node.end :]
    last = node.members[-1].value.end
    comma, after = ("", ",") if node.has_comma else (",", "")
    return text[:last] + comma + text[last : node.tail] + entry + after + closing + text[node.end :]


def _dumps(value: Any, indent: str | None = None) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


def _indent(text: str, at: int) -> str:
    """The white space at the beginning of the line of ``at``."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin : begin + len(text[begin:at]) - len(text[begin:at].lstrip(" \t"))]


def _unit(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "


class _Reader:
    def __init__(self, text: str, make_object: Callable[[list[tuple[str, Any]]], Any] = dict[str, Any]) -> None:
        self._text = text
        self._make_object = make_object

    def skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return at if match is None else match.end()

    def value(self, at: int, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            self.fail(at, "the value is nested too deeply")
        match self._text[at : at + 1]:
            case "{":
                return self._object(at, depth)
            case "[":
                return self._array(at, depth)
            case '"':
                text, end = self._string(at)
                return Node(at, end, text)
            case _:
                found = _ATOM.match(self._text, at)
                if found is None:
                    self.fail(at, "a value is missing")
                return Node(at, found.end(), json.loads(found[0]))

    def _object(self, start: int, depth: int) -> Node:
        members: list[Member] = []
        at, tail, comma = start + 1, start + 1, True
        while (at := self.skip(at)) < len(self._text) and self._text[at] != "}":
            if not comma:
                self.fail(at, "a comma is missing")
            key, end = self._string(at)
            colon = self.skip(end)
            if self._text[colon : colon + 1] != ":":
                self.fail(colon, "a colon is missing")
            value = self.value(self.skip(colon + 1), depth + 1)
            members.append(Member(key, at, value))
            at, comma = self.comma(value.end)
            tail = at
        if at >= len(self._text):
            self.fail(start, "a brace is not closed")
        spaces = len(self._text[tail:at]) - len(self._text[tail:at].rstrip(" \t\r\n"))
        found = self._make_object([(member.key, member.value.value) for member in members])
        return Node(start, at + 1, found, tuple(members), at - spaces, comma and bool(members), is_object=True)

    def _array(self, start: int, depth: int) -> Node:
        items: list[Any] = []
        at, comma = start + 1, True
        while (at := self.skip(at)) < len(self._text) and self._text[at] != "]":
            if not comma:
                self.fail(at, "a comma is missing")
            item = self.value(at, depth + 1)
            items.append(item.value)
            at, comma = self.comma(item.end)
        if at >= len(self._text):
            self.fail(start, "a bracket is not closed")
        return Node(start, at + 1, items)

    def comma(self, end: int) -> tuple[int, bool]:
        """The position after an optional comma behind ``end``, and whether it exists."""
        at = self.skip(end)
        return (at + 1, True) if self._text[at : at + 1] == "," else (end, False)

    def _string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self._text, at)
        if match is None:
            self.fail(at, "a string is missing")
        try:
            return json.loads(match[0]), match.end()
        except ValueError:
            self.fail(at, "a string has an invalid escape")

    def fail(self, at: int, reason: str) -> NoReturn:
        line = self._text.count("\n", 0, at) + 1
        raise FormatError(
            "config-invalid",
            f"the file is not valid JSON: {reason} in line {line}",
            "fix the file by hand",
            line=line,
        )
