"""Optional fields of a ``SKILL.md`` for dialects that know skills by name, and their arguments (P1–P3, P6, B1).

``title``, ``version`` and ``tags`` are top-level fields of the frontmatter, or text under ``metadata``.
``arguments``, ``dependencies`` and ``icons`` are top-level fields. A field with an invalid value is dropped and
reported; the skill is served anyway. Every value in ``Declared`` is valid in a message.

In the instructions, ``{{name}}`` is a placeholder for a declared argument. Spaces inside the braces do not matter.
All placeholders are replaced in one pass, so a value that looks like a placeholder is not replaced again. An
optional argument without a value becomes empty text. Other text in braces is not changed, and a skill without
declared arguments keeps every byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, cast

from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic, Position
from skillwire.skill.frontmatter import describe_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillwire.skill.frontmatter import Json, SkillDocument

ARGUMENT_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
_ARGUMENT_NAME = re.compile(rf"{ARGUMENT_NAME}\Z")
_PLACEHOLDER = re.compile(rf"\{{\{{[ \t]*({ARGUMENT_NAME})[ \t]*\}}\}}")
_ICON_SOURCE = re.compile(r"https?://\S+\Z|data:image/\S+\Z")
_BETWEEN_TAGS = re.compile(r"[\s,]+")
_MAX_PROBLEMS = 20
# The kinds of dependencies. A reference is a mapping with this type, and the name under this key.
_REFERENCES = {"tools": ("tool", "name"), "prompts": ("ref/prompt", "name"), "resources": ("ref/resource", "uri")}


class InvalidField(NamedTuple):
    """A field that was dropped, and the reason."""

    field: str
    message: str
    hint: str


class Argument(NamedTuple):
    """An argument that a caller may give, or must give, to get the skill."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool = False


class Dependencies(NamedTuple):
    """What the skill needs from its server (P3): names of tools and prompts, URIs of resources."""

    tools: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Declared:
    """The valid declared fields. ``problems`` lists the invalid ones."""

    title: str | None
    version: str | None
    tags: tuple[str, ...]
    arguments: tuple[Argument, ...]
    dependencies: Dependencies
    icons: tuple[Mapping[str, Json], ...]
    problems: tuple[InvalidField, ...]


def read_declared(frontmatter: Mapping[str, Json]) -> Declared:
    """Read the declared fields of ``frontmatter``. Never raises."""
    reader = _Reader(frontmatter)
    return Declared(
        reader.text("title", "write one line of text"),
        reader.text("version", "write it in quotes: '1.10'"),
        reader.tags(),
        reader.arguments(),
        reader.dependencies(),
        reader.icons(),
        tuple(reader.problems),
    )


def check_declared(document: SkillDocument, file: str) -> Iterator[Diagnostic]:
    """A warning for each invalid declared field of ``document`` (P6)."""
    for field, message, hint in read_declared(document.frontmatter).problems:
        line, column = document.positions.get(field, Position(1, 1))
        yield Diagnostic("declared-invalid", message, hint, file=file, line=line, column=column)


class _Reader:
    """Reads one frontmatter and collects its invalid fields."""

    def __init__(self, frontmatter: Mapping[str, Json]) -> None:
        self._fields = frontmatter
        metadata = frontmatter.get("metadata")
        self._metadata: Mapping[str, Json] = metadata if isinstance(metadata, dict) else {}
        self.problems: list[InvalidField] = []

    def text(self, field: str, hint: str) -> str | None:
        """A field of text: the top-level one if it is valid, else the one under ``metadata``."""
        value = self._fields.get(field)
        if field in self._fields and not _is_text(value):
            self._refuse(field, f"'{field}' is {describe_value(value)}, not text", hint)
        return next((text for text in (value, self._metadata.get(field)) if _is_text(text)), None)

    def tags(self) -> tuple[str, ...]:
        """A list of words, or words in one text."""
        value = self._fields.get("tags", self._metadata.get("tags"))
        words = _BETWEEN_TAGS.split(value) if isinstance(value, str) else value
        if not isinstance(words, list) and value is not None:
            self._refuse(
                "tags", f"'tags' is {describe_value(value)}, not a list", "write a list of words: [billing, money]"
            )
        return self._texts("tags", words)

    def arguments(self) -> tuple[Argument, ...]:
        """A list of names, or of mappings with ``name``."""
        found: dict[str, Argument] = {}
        for item in self._list("arguments", "write a list of names, or of mappings with 'name'"):
            argument = self._argument(item)
            if argument is None or argument.name in found or len(found) >= DEFAULT_LIMITS.max_arguments:
                hint = f"write 1-64 of letters, digits, '_', '-', '.'; {DEFAULT_LIMITS.max_arguments} at most"
                message = f"the argument {str(item)!r:.80} has no valid name, is repeated, or is one too many"
                self._refuse("arguments", message, hint)
            else:
                found[argument.name] = argument
        return tuple(found.values())

    def _argument(self, item: Json) -> Argument | None:
        fields: Mapping[str, Json] = item if isinstance(item, dict) else {"name": item}
        name, required = fields.get("name"), fields.get("required", False)
        if not isinstance(name, str) or not _ARGUMENT_NAME.match(name):
            return None
        if not isinstance(required, bool):
            self._refuse(
                "arguments", f"'required' of {name!r} is {describe_value(required)}", "write true or false"
            )
        title, description = (self._part(name, fields, part) for part in ("title", "description"))
        return Argument(name, title, description, required is True)

    def _part(self, name: str, fields: Mapping[str, Json], part: str) -> str | None:
        value = fields.get(part)
        if part in fields and not _is_text(value):
            self._refuse(
                "arguments", f"'{part}' of {name!r} is {describe_value(value)}, not text", "write one line of text"
            )
        return value if _is_text(value) else None

    def dependencies(self) -> Dependencies:
        """A mapping of three lists."""
        value = self._fields.get("dependencies")
        hint = "write a mapping of lists: tools and prompts by name, resources by URI"
        if value is not None and not isinstance(value, dict):
            self._refuse("dependencies", f"'dependencies' is {describe_value(value)}, not a mapping", hint)
        groups: Mapping[str, Json] = value if isinstance(value, dict) else {}
        for group in groups:
            if group not in _REFERENCES:
                self._refuse("dependencies", f"a skill cannot depend on {group!r:.80}", hint)
        return Dependencies(*(self._group(group, groups.get(group)) for group in _REFERENCES))

    def _group(self, group: str, value: Json) -> tuple[str, ...]:
        if value is not None and not isinstance(value, list):
            self._refuse(
                "dependencies", f"'{group}' is {describe_value(value)}, not a list", f"write {group}: [...]"
            )
        kind, key = _REFERENCES[group]
        items = value if isinstance(value, list) else []
        return self._texts("dependencies", [_referred(item, kind, key) for item in items])

    def icons(self) -> tuple[Mapping[str, Json], ...]:
        """Icons as MCP defines them: source, media type, sizes, theme."""
        found: list[Mapping[str, Json]] = []
        for item in self._list("icons", "write a list of mappings with 'src'"):
            icon = _icon(item)
            if icon is None:
                hint = "write 'src' as an https or data URL; optional are 'mimeType', 'sizes' (a list) and 'theme'"
                self._refuse("icons", f"the icon {str(item)!r:.80} is invalid", hint)
            else:
                found.append(icon)
        return tuple(found)

    def _list(self, field: str, hint: str) -> list[Json]:
        value = self._fields.get(field)
        if value is not None and not isinstance(value, list):
            self._refuse(field, f"'{field}' is {describe_value(value)}, not a list", hint)
        return value if isinstance(value, list) else []

    def _texts(self, field: str, items: object) -> tuple[str, ...]:
        """The texts among ``items``, each once."""
        found: dict[str, None] = {}
        for item in cast("list[Json]", items) if isinstance(items, list) else []:
            if _is_text(item):
                found[item.strip()] = None
            elif item != "":
                self._refuse(
                    field, f"'{field}' contains {describe_value(item)}", "write text, in quotes if it is a number"
                )
        return tuple(found)

    def _refuse(self, field: str, message: str, hint: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(InvalidField(field, message, hint))


def _is_text(value: Json) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip())


def _referred(item: Json, kind: str, key: str) -> Json:
    """The name or URI in a reference; other values unchanged."""
    return item.get(key) if isinstance(item, dict) and item.get("type", kind) == kind else item


def _icon(item: Json) -> Mapping[str, Json] | None:
    fields: Mapping[str, Json] = item if isinstance(item, dict) else {}
    source, sizes = fields.get("src"), fields.get("sizes", [])
    right = (
        isinstance(source, str)
        and _ICON_SOURCE.match(source)
        and isinstance(sizes, list)
        and all(map(_is_text, sizes))
        and isinstance(fields.get("mimeType", ""), str)
        and fields.get("theme", "light") in ("light", "dark")
    )
    return {key: fields[key] for key in ("src", "mimeType", "sizes", "theme") if key in fields} if right else None


def parse_arguments(declared: Sequence[Argument], given: object) -> dict[str, str]:
    """A value for every declared argument, from a caller's arguments. ``ProtocolError`` if they are invalid."""
    if given is not None and not isinstance(given, dict):
        raise _wrong("arguments-invalid", "'arguments' is not an object", 'give {"name": "text"}')
    values = cast("dict[str, Any]", given or {})
    most = DEFAULT_LIMITS.max_arguments
    if len(values) > most:
        raise _wrong("arguments-too-many", f"more than {most} arguments", "give fewer")
    known = {argument.name: argument for argument in declared}
    for name, value in values.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise _wrong("argument-unknown", f"the skill has no argument {name!r:.100}", f"it takes {names}")
        _check_value(name, value)
    for argument in declared:
        if argument.required and argument.name not in values:
            raise _wrong("argument-missing", f"the skill needs the argument {argument.name!r}", _give(argument))
    return {name: values.get(name, "") for name in known}


def fill_in(text: str, values: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> str:
    """``text`` with each placeholder replaced once. ``ProtocolError`` if the result exceeds the size of a file."""
    if not values or "{{" not in text:
        return text
    size, sizes = len(text.encode()), {name: len(value.encode()) for name, value in values.items()}
    for match in _PLACEHOLDER.finditer(text):
        size += sizes.get(match[1], 0)
        if size > limits.max_file_bytes:
            raise _wrong("arguments-too-long", "the instructions would be too long", "give shorter arguments")
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _check_value(name: str, value: object) -> None:
    if not isinstance(value, str):
        kind = _KINDS.get(type(value), "of another type")
        raise _wrong("argument-invalid", f"the argument {name!r} is {kind}, not text", "give text, in quotes")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise _wrong("argument-invalid", f"the argument {name!r} is not Unicode text", "send UTF-8") from error
    most = DEFAULT_LIMITS.max_argument_bytes
    if size > most:
        raise _wrong(
            "argument-too-long",
            f"the argument {name!r} has {size} bytes, more than {most}",
            "give a shorter text, or a link to the long one",
        )


_KINDS: dict[type, str] = {
    type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object",
}  # fmt: skip


def _give(argument: Argument) -> str:
    label = argument.description or argument.title
    return f'give arguments: {{"{argument.name}": "…"}}' + (f" ({label})" if label else "")


def _wrong(reference: str, message: str, hint: str) -> ProtocolError:
    return ProtocolError(reference, message, hint, rule="P2")
