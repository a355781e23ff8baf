"""Repairs of a ``SKILL.md`` that cannot change its meaning (F2, F3, U3).

- A value that YAML cannot read, such as ``description: Use it: now``, is quoted.
- ``name`` becomes the name of the folder, if that is a valid name.
- A list of ``allowed-tools`` becomes one line of text.
- Numbers, dates, ``true`` and ``false`` in ``metadata`` are quoted.

Only the lines of these fields change. A repair is used only if the result has the expected fields and every other
field is unchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import FormatError
from skillwire.skill.coreyaml import format_text, quote_text
from skillwire.skill.frontmatter import find_frontmatter, is_name, parse_skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

REPAIRABLE = frozenset(
    {"yaml-invalid", "name-missing", "name-invalid", "name-mismatch", "allowed-tools-invalid", "metadata-invalid"}
)
_FIELD = re.compile(r"([A-Za-z][\w-]*):[ \t]+(\S.*?)[ \t]*(\r?\n?)\Z")
_INNER = re.compile(r"([ \t]+[\w.-]+:)[ \t]+(\S.*?)[ \t]*(\r?\n?)\Z")
_QUOTED = ('"', "'", "|", ">")


def repair_skill_md(data: bytes, directory: str) -> tuple[bytes, list[str]]:
    """Return the repaired bytes of a ``SKILL.md`` in the folder ``directory``, and what was changed."""
    found = find_frontmatter(data)
    if found is None:
        return data, []
    begins, ends, _ = found
    changes: list[str] = []

    def whole(lines: list[str]) -> bytes:
        return data[:begins] + "".join(lines).encode() + data[ends:]

    def fields_of(lines: list[str]) -> Mapping[str, Any]:
        return parse_skill_md(whole(lines)).frontmatter

    def attempt(lines: list[str], repaired: list[str] | None, field: str, value: Any, words: str) -> list[str]:
        """Return ``repaired`` if it has ``value`` in ``field`` and no other difference; otherwise ``lines``."""
        if repaired is None:
            return lines
        try:
            is_right = dict(fields_of(repaired)) == {**fields_of(lines), field: value}
        except FormatError:
            return lines
        if is_right:
            changes.append(words)
        return repaired if is_right else lines

    try:
        lines = data[begins:ends].decode().splitlines(keepends=True)
        lines = _quote_invalid(lines, fields_of, changes)
        fields = fields_of(lines)
    except (FormatError, UnicodeDecodeError):
        return data, []
    if is_name(directory) and fields.get("name") != directory:
        named = _with_field(lines, "name", format_text(directory))
        lines = attempt(lines, named, "name", directory, f"name is {directory!r} now, as the folder")
    tools: Any = fields.get("allowed-tools")
    if isinstance(tools, list) and tools and all(isinstance(each, str) and each.strip() for each in tools):  # pyright: ignore[reportUnknownVariableType]
        text = " ".join(map(str.strip, cast("list[str]", tools)))
        one = _with_field(lines, "allowed-tools", format_text(text))
        lines = attempt(lines, one, "allowed-tools", text, "allowed-tools is one line now")
    metadata = cast("dict[str, Any]", fields["metadata"]) if isinstance(fields.get("metadata"), dict) else {}
    if any(isinstance(value, (bool, int, float)) for value in metadata.values()):
        quoted, texts = _with_quoted_metadata(lines, metadata)
        lines = attempt(lines, quoted, "metadata", texts, "values of metadata are quoted now")
    return (whole(lines), changes) if changes else (data, [])


def _quote_invalid(lines: list[str], fields_of: Callable[[list[str]], object], changes: list[str]) -> list[str]:
    """Quote the value at each syntax error; raises the error that quoting does not repair."""
    lines = list(lines)
    for _ in range(len(lines) + 1):
        try:
            fields_of(lines)
        except FormatError as error:
            at = (error.line or 0) - 2  # the frontmatter begins in line 2 of the file
            match = _FIELD.match(lines[at]) if 0 <= at < len(lines) else None
            if error.reference != "yaml-invalid" or match is None or match[2].startswith(_QUOTED):
                raise
            lines[at] = f"{match[1]}: {quote_text(match[2])}{match[3]}"
            changes.append(f"the value of {match[1]} is quoted now")
        else:
            break
    return lines


def _block(lines: list[str], field: str) -> tuple[int, int] | None:
    """Return the lines of a top-level field: its own, and those that are indented or items of a list."""
    start = next((number for number, line in enumerate(lines) if line.startswith(f"{field}:")), None)
    if start is None:
        return None
    end = start + 1
    while end < len(lines) and (lines[end][:1] in (" ", "\t", "-") or not lines[end].strip()):
        end += 1
    return start, end


def _with_field(lines: list[str], field: str, value: str) -> list[str] | None:
    """Return the lines with another value of ``field``; ``None`` if a comment would be lost."""
    block = _block(lines, field)
    if block is None:
        return [f"{field}: {value}\n", *lines]
    start, end = block
    if any("#" in line for line in lines[start:end]):
        return None
    ending = "\n" if lines[end - 1].endswith("\n") else ""
    return [*lines[:start], f"{field}: {value}{ending}", *lines[end:]]


def _with_quoted_metadata(
    lines: list[str], metadata: Mapping[str, Any]
) -> tuple[list[str] | None, dict[str, Any]]:
    """Return the lines with quoted values of ``metadata``, as they are written, and these values."""
    block, texts, repaired = _block(lines, "metadata"), dict(metadata), list(lines)
    if block is None:
        return None, texts
    for number in range(block[0] + 1, block[1]):
        match = _INNER.match(lines[number])
        key = match[1].strip().removesuffix(":") if match else ""
        if match and isinstance(texts.get(key), (bool, int, float)) and " #" not in match[2]:
            repaired[number] = f"{match[1]} {quote_text(match[2])}{match[3]}"
            texts[key] = match[2]
    return (repaired if repaired != lines else None), texts
