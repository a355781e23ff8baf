"""``SKILL.md``: frontmatter and body (F1, F5, F6), and the fields of the format (F2, F3).

``parse_skill_md`` raises if the file cannot be parsed. ``check_frontmatter`` reports fields that break a rule; the
kind of each diagnostic defines whether a server refuses the skill (F7).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic, Position

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n")
_CLOSING = re.compile(rb"^---[ \t]*(?:\r?\n|\r?\Z)", re.MULTILINE)
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
MAX_NAME = 64
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500


Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A value that frontmatter can hold."""


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """A parsed ``SKILL.md``: all fields of the frontmatter, and the Markdown below."""

    frontmatter: Mapping[str, Json]
    body: str
    body_line: int
    positions: Mapping[str, Position]


def find_frontmatter(data: bytes) -> tuple[int, int, int] | None:
    """The offsets where the YAML of a ``SKILL.md`` begins and ends, and where the Markdown begins (F1)."""
    opening = _OPENING.match(data)
    closing = _CLOSING.search(data, opening.end()) if opening else None
    # F5: the line break before the closing line belongs to the YAML.
    return (opening.end(), closing.start(), closing.end()) if opening and closing else None


def parse_skill_md(data: bytes, limits: Limits = DEFAULT_LIMITS) -> SkillDocument:
    """Parse the bytes of a ``SKILL.md``. ``FormatError`` if it has no valid frontmatter."""
    opening = _OPENING.match(data)
    if opening is None:
        raise FormatError(
            "frontmatter-missing",
            "SKILL.md does not begin with a '---' line",
            "begin the file with '---', the fields 'name' and 'description', and another '---'",
            line=1,
            column=1,
        )
    found = find_frontmatter(data)
    if found is None or found[1] - found[0] > limits.max_frontmatter_bytes:
        raise _unclosed(data, opening.end(), limits)
    begins, ends, body_begins = found
    try:
        yaml = data[begins:ends].decode()
        body = data[body_begins:].decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(data) from error
    from skillwire.skill.coreyaml import parse_yaml_mapping  # late: slow to import

    values, positions = parse_yaml_mapping(yaml, max_depth=limits.max_yaml_depth, first_line=2)
    return SkillDocument(values, body, data.count(b"\n", 0, body_begins) + 1, positions)


def _not_utf8(data: bytes) -> FormatError:
    text = data.decode(errors="surrogateescape")
    found = re.search("[\udc80-\udcff]", text)
    start = found.start() if found else 0
    return FormatError(
        "encoding-invalid",
        "SKILL.md is not valid UTF-8",
        "save the file as UTF-8",
        line=text.count("\n", 0, start) + 1,
        column=start - text.rfind("\n", 0, start),
    )


def _unclosed(data: bytes, start: int, limits: Limits) -> FormatError:
    if len(data) - start > limits.max_frontmatter_bytes:
        return FormatError(
            "frontmatter-too-large",
            f"the frontmatter does not end within {limits.max_frontmatter_bytes // 1024} KiB",
            "close it with a '---' line; move data into a file of the skill",
            line=1,
        )
    return FormatError(
        "frontmatter-unclosed",
        "the frontmatter has no closing '---' line",
        "put '---' on a separate line after the last field",
        line=1,
        column=1,
    )


def check_frontmatter(document: SkillDocument, directory: str, file: str) -> Iterator[Diagnostic]:
    """A diagnostic for each rule of F2 and F3 that ``document``, found in the folder ``directory``, breaks."""
    for reference, field, message, hint in _field_problems(document.frontmatter, directory):
        line, column = document.positions.get(field, Position(1, 1))
        yield Diagnostic(reference, message, hint, file=file, line=line, column=column)


def is_name(text: str) -> bool:
    """Whether ``text`` is a valid name of a skill (F2)."""
    return len(text) <= MAX_NAME and _NAME.match(text) is not None


def _field_problems(fields: Mapping[str, Json], directory: str) -> Iterator[tuple[str, str, str, str]]:
    for reference, message, hint in _name_problems(fields, directory):
        yield reference, "name", message, hint
    for reference, message, hint in description_problems(fields):
        yield reference, "description", message, hint
    for field, is_right, want, hint in _OPTIONAL_FIELDS:
        value = fields.get(field)
        if field in fields and not is_right(value):
            yield f"{field}-invalid", field, f"'{field}' is {describe_value(value)}, not {want}", hint


def _name_problems(fields: Mapping[str, Json], directory: str) -> Iterator[tuple[str, str, str]]:
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        problem = f"'name' is {describe_value(name)}" if "name" in fields else "the frontmatter has no 'name'"
        yield "name-missing", problem, f"write 'name: {directory}', in quotes if it looks like a number"
    elif not is_name(name):
        yield (
            "name-invalid",
            f"the name {name!r:.80} is not 1-64 characters of a-z, 0-9 and single hyphens",
            f"rename the skill and its folder, for example to '{suggest_name(name)}'",
        )
    elif name != directory:
        yield (
            "name-mismatch",
            f"the name {name!r} differs from the folder {directory!r:.80}",
            f"rename the folder to '{name}', or write 'name: {directory}'",
        )


def description_problems(fields: Mapping[str, Json]) -> Iterator[tuple[str, str, str]]:
    """The reference, message and hint of each problem of the description (F3)."""
    description = fields.get("description")
    hint = "describe in one or two sentences what the skill does and when to use it"
    if not isinstance(description, str):
        is_given = "description" in fields
        problem = (
            f"'description' is {describe_value(description)}"
            if is_given
            else "the frontmatter has no 'description'"
        )
        yield "description-missing", problem, hint
    elif not description.strip():
        yield "description-blank", "'description' is blank", hint
    elif len(description) > MAX_DESCRIPTION:
        yield (
            "description-too-long",
            f"'description' has {len(description)} characters, more than {MAX_DESCRIPTION}",
            "shorten it; details belong in the body",
        )


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_text_map(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_compatibility(value: Json) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_COMPATIBILITY


_OPTIONAL_FIELDS = (
    ("license", _is_text, "text", "write a name such as 'Apache-2.0', in quotes if it looks like a number"),
    (
        "compatibility",
        _is_compatibility,
        f"text of 1-{MAX_COMPATIBILITY} characters",
        "describe the requirements in one sentence",
    ),
    ("metadata", _is_text_map, "a mapping of text to text", "quote numbers, dates, true and false; flatten lists"),
    ("allowed-tools", _is_text, "one line of text", "write the tools in one line, separated by spaces: Read Grep"),
)


def suggest_name(name: str) -> str:
    """A valid name that is similar to ``name``."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join(words)[:MAX_NAME].strip("-") or "my-skill"


def describe_value(value: Json) -> str:
    """A short description of ``value`` for messages."""
    match value:
        case None:
            return "empty"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value!r:.40}"
        case str():
            return f"text of {len(value)} characters"
        case list():
            return "a list"
        case dict():
            other = next((key for key, item in value.items() if not isinstance(item, str)), None)
            return "a mapping" if other is None else f"a mapping in which {other!r:.40} is not text"
