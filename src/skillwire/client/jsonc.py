"""JSON with comments: parse it, and insert or remove one entry without changing the rest. Pure.

The format is JSON with ``//`` and ``/* */`` comments and trailing commas, as in VS Code. Comments, order and
spacing stay; a new entry gets the style of the surrounding text. ``FormatError`` has the line of a syntax error,
or reports that there is no object at the place of the entry.

Comments and trailing commas are replaced by spaces, and ``json`` reads the rest. So all positions stay valid.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Strings and comments that never end match up to the end of the text: otherwise many of them take quadratic time.
_STRING = r'"(?:[^"\\]|\\.)*(?:"|\Z)'
_COMMENTS = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)|\ufeff", re.DOTALL)
_TRAILING_COMMAS = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """A key and its value inside an object: where the key begins, and where the value begins and ends."""

    key: str
    start: int
    value: int
    end: int


class _Object(NamedTuple):
    """An object in a text: its positions, and its members. ``tail`` is the end of the last text inside it."""

    start: int
    end: int
    members: list[_Member]
    tail: int
    has_comma: bool  # after the last member

    def member(self, key: str) -> _Member | None:
        """The member ``key``; ``FormatError`` if there are two."""
        found = [member for member in self.members if member.key == key]
        if len(found) > 1:
            raise FormatError("config-invalid", f"the file has {key!r:.80} twice", "remove one of them")
        return found[0] if found else None


def parse(text: str, make_object: Callable[[list[tuple[str, Any]]], Any] = dict[str, Any]) -> Any:
    """Parse ``text``. ``make_object`` creates the value of an object from its keys and values."""
    try:
        return json.loads(_plain(_without_comments(text)), object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        raise FormatError(
            "config-invalid",
            f"the file is not valid JSON: {error.msg} in line {error.lineno}",
            "fix the file by hand",
            line=error.lineno,
        ) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(
            "config-invalid",
            "the file is not valid JSON: it is nested too deeply, or has a number with too many digits",
            "fix the file by hand",
        ) from error


def insert(text: str, path: Sequence[str], key: str, value: Any) -> str:
    """Add ``key: value`` to the object at ``path``, which is created if it is missing."""
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    found = _find(text, path)
    for step in reversed(path[len(found) - 1 :]):  # these objects are missing
        key, value = step, {key: value}
    return _put(text, found[-1], key, value)


def remove(text: str, path: Sequence[str], key: str) -> str:
    """Remove ``key`` and its comma from the object at ``path``."""
    found = _find(text, path)
    member = found[-1].member(key) if len(found) > len(path) else None
    if member is None:
        return text
    members, bare = found[-1].members, _without_comments(text)
    comma, at = _comma(bare, member.end), members.index(member)
    begin, end = _whole_line(text, member.start, comma or member.end)
    before = _comma(bare, members[at - 1].end) if at and comma is None else None
    if before is not None:  # the comma before it is removed too
        return text[: before - 1] + text[before:begin] + text[end:]
    return text[:begin] + text[end:]


def _find(text: str, path: Sequence[str]) -> list[_Object]:
    """The objects along ``path``, as far as they exist. The first one is the whole file."""
    parse(text)
    bare = _without_comments(text)
    plain = _plain(bare)
    found = [_object(text, bare, plain, _skip(plain, 0), "the file")]
    for step in path:
        member = found[-1].member(step)
        if member is None:
            break
        found.append(_object(text, bare, plain, member.value, repr(step)))
    return found


def _object(text: str, bare: str, plain: str, start: int, what: str) -> _Object:
    if plain[start] != "{":
        raise FormatError("config-invalid", f"{what} is not an object", "fix the file by hand")
    members: list[_Member] = []
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        key, end = _DECODER.raw_decode(plain, at)
        value = _skip(plain, _skip(plain, end) + 1)  # after the colon
        end = _DECODER.raw_decode(plain, value)[1]
        members.append(_Member(key, at, value, end))
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    has_comma = bool(members) and _comma(bare, members[-1].end) is not None
    return _Object(start, at + 1, members, len(text[:at].rstrip(" \t\r\n")), has_comma)


def _without_comments(text: str) -> str:
    return _COMMENTS.sub(_blank, text)


def _plain(bare: str) -> str:
    return _TRAILING_COMMAS.sub(_blank, bare)


def _blank(match: re.Match[str]) -> str:
    """Replace a comment or a comma by spaces. A string stays, and so does a comment that never ends."""
    text = match[0]
    is_open = text.startswith("/*") and not (text.endswith("*/") and len(text) > 3)
    return text if text.startswith('"') or is_open else re.sub(r"[^\r\n]", " ", text)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _comma(bare: str, end: int) -> int | None:
    """The position after the comma behind ``end``, if there is one."""
    at = _skip(bare, end)
    return at + 1 if bare[at : at + 1] == "," else None


def _whole_line(text: str, begin: int, end: int) -> tuple[int, int]:
    """Extend a range to its whole line if nothing else is on it, else to the space before it."""
    first, last = len(text[:begin].rstrip(" \t")), len(text) - len(text[end:].lstrip(" \t"))
    if text[first - 1 : first] == "\n" and text[last : last + 1] in ("\n", "\r"):
        return first - (2 if text[first - 2 : first] == "\r\n" else 1), last
    return first, end


def _put(text: str, node: _Object, key: str, value: Any) -> str:
    if node.member(key) is not None:
        raise FormatError("config-taken", f"the entry {key!r:.80} already exists", "choose another --name")
    line = "\r\n" if "\r\n" in text else "\n"
    last = node.members[-1].end if node.members else node.tail
    comma, after = ("", "") if not node.members else ("", ",") if node.has_comma else (",", "")
    if node.members and "\n" not in text[node.start : node.end]:  # one line, also with the new entry
        entry = f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}"
        return text[:last] + comma + text[last : node.tail] + entry + text[node.tail :]
    unit = re.search(r"\n([ \t]+)\S", text)
    step, outer = unit[1] if unit else "  ", _indent(text, node.start)
    inner = _indent(text, node.members[0].start) if node.members else outer + step
    body = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", line + inner)
    entry = f"{line}{inner}{json.dumps(key, ensure_ascii=False)}: {body}"
    rest = text[node.tail : node.end]
    closing = rest if "\n" in rest else f"{line}{outer}}}"
    return text[:last] + comma + text[last : node.tail] + entry + after + closing + text[node.end :]


def _indent(text: str, at: int) -> str:
    """The white space at the beginning of the line of ``at``."""
    begin = text.rfind("\n", 0, at) + 1
    return text[begin : begin + len(text[begin:at]) - len(text[begin:at].lstrip(" \t"))]
