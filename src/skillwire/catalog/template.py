"""Skills that functions generate from variables in their path: ``docs/{product}`` (I1, T1).

A template is not a skill, and its skills are not listed (L2). Each is served by its URI (G1) and generated on
every read, so its entry is ``"dynamic"`` (E2). A nested skill is served only as files of the enclosing one.

A variable is one whole segment. If its values are a list, other values are refused, and a skill is known to exist
without generating it. If its values are a function, that function only completes input. The function that
generates the skill then decides which skills exist, by returning ``None`` for the others. Two templates cannot
match the same path (N1).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    SkillFile,
    SkillTemplate,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import page_of
from skillwire.catalog.generated import Made, call_maker, failed, files_of
from skillwire.catalog.memory import MemoryCatalog, Skill
from skillwire.errors import FormatError, NotFoundError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import DYNAMIC, build_entry
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, parse_path, parse_uri, segment_problem, skill_md_uri

if TYPE_CHECKING:
    from skillwire.skill import SkillEntry

Complete = Callable[[str], "Iterable[str] | Awaitable[Iterable[str]]"]
Values: TypeAlias = "Iterable[str] | Complete"
MakeSkill = Callable[..., "Made | Awaitable[Made | None] | None"]
M = TypeVar("M", bound=MakeSkill)

_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_KNOWN = 256


@dataclass(frozen=True, slots=True)
class _Template:
    path: str
    description: str
    make: MakeSkill
    values: Mapping[str, tuple[str, ...] | Complete]  # by variable: a list, or a function

    @property
    def is_closed(self) -> bool:
        """Whether the values of all variables are lists."""
        return not any(callable(values) for values in self.values.values())

    def match(self, path: str) -> dict[str, str] | None:
        """The values of the variables in ``path``; ``None`` if the template does not match."""
        ours, theirs = self.path.split("/"), path.split("/")
        if len(ours) != len(theirs):
            return None
        for part, segment in zip(ours, theirs, strict=True):
            values = self.values.get(_variable(part), (part,))
            if not callable(values) and segment not in values:
                return None
        return {name: value for part, value in zip(ours, theirs, strict=True) if (name := _variable(part))}

    def paths(self, beginning: str, limit: int) -> list[str]:
        """The first paths that begin with ``beginning``, if all values are lists."""
        found = [""] if self.is_closed else []
        for part in self.path.split("/"):
            values = cast("tuple[str, ...]", self.values.get(_variable(part), (part,)))
            longer = (f"{path}/{value}".removeprefix("/") for path in found for value in values)
            agreeing = (path for path in longer if path.startswith(beginning) or beginning.startswith(path))
            found = sorted(agreeing)[:limit]
        return [path for path in found if path.startswith(beginning)]


class TemplateCatalog(Catalog):
    """Templates, added with ``add`` or the decorator ``template``."""

    def __init__(self, *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS) -> None:
        self._scheme = scheme
        self._limits = limits
        self._templates: list[_Template] = []
        self._known: dict[str, SkillEntry] = {}  # the most recently generated ones

    def add(self, path: str, make: MakeSkill, *, values: Mapping[str, Values], description: str) -> None:
        """Serve the results of ``make``, which gets the values in ``path`` as keyword arguments."""
        template = _Template(path, description, make, {name: _checked(name, values[name]) for name in values})
        _check(template)
        for other in self._templates:
            _check_apart(other.path, path)
        self._templates.append(template)

    def template(self, path: str, *, values: Mapping[str, Values], description: str) -> Callable[[M], M]:
        """``add``, as a decorator."""

        def decorate(make: M) -> M:
            self.add(path, make, values=values, description=description)
            return make

        return decorate

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._templates

    def templates(self) -> list[SkillTemplate]:
        """Every template, in the order of ``add``."""
        return [
            SkillTemplate(template.path, template.description, partial(self._complete, template))
            for template in self._templates
        ]

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """An empty page: skills of templates are not listed."""
        nothing: dict[str, SkillEntry] = {}
        return page_of("templates", [], nothing.__getitem__, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill, which is generated for it."""
        path = self._skill_path(uri)
        if path is None or await self._make(path) is None:
            raise no_skill(uri)
        return self._known[path]

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry as last generated, or as expected. It is generated now only if its existence is unknown.

        If the function fails then, the skill does not exist, so that it takes no name from another skill.
        """
        path = self._skill_path(uri)
        template = next((each for each in self._templates if path and each.match(path) is not None), None)
        if path is None or template is None:
            return None
        if path in self._known:
            return self._known[path]
        if template.is_closed:
            frontmatter = {"name": path.rpartition("/")[2], "description": template.description}
            return build_entry(path, frontmatter, DYNAMIC, scheme=self._scheme)
        try:
            return await self.get_skill(uri)
        except (NotFoundError, UpstreamError):
            return None

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file, generated now."""
        made = await self._make_around(parse_uri(uri).parent.path, uri)
        if made is None:
            raise no_file(uri)
        return await made.read_file(uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, generated now."""
        made = await self._make_around(parse_uri(uri).path, uri)
        if made is None:
            raise no_directory(uri)
        return await made.read_directory(uri, cursor, limit)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> list[str]:
        """Paths that begin with ``beginning``, of templates whose values are lists."""
        return sorted(path for each in self._templates for path in each.paths(beginning, limit))[:limit]

    def changes(self) -> ChangeStream:
        """An empty stream: changes are unknown before the next read."""
        return ChangeFeed().subscribe()

    def _skill_path(self, uri: str) -> str | None:
        parsed = parse_uri(uri)
        ours = parsed.scheme == self._scheme and parsed.segments[-1] == SKILL_MD
        return parsed.parent.path if ours else None

    async def _make_around(self, path: str, uri: str) -> MemoryCatalog | None:
        """The skill at or around ``path``."""
        while path and parse_uri(uri).scheme == self._scheme:
            made = await self._make(path)
            if made is not None:
                return made
            path = path.rpartition("/")[0]
        return None

    async def _make(self, path: str) -> MemoryCatalog | None:
        """A catalog with the skill at exactly ``path``; ``None`` if it does not exist."""
        matches = ((template, template.match(path)) for template in self._templates)
        make = next((partial(template.make, **values) for template, values in matches if values), None)
        made = await call_maker(path, make, self._limits) if make else None
        if made is None:
            self._known.pop(path, None)
            return None
        files = await files_of(path, made, self._limits)
        catalog = MemoryCatalog(scheme=self._scheme, limits=self._limits)
        try:
            catalog.put(Skill(path, files))
        except FormatError as error:  # an error of the function, not of the caller
            raise failed(path, error.message) from error
        entry = await catalog.get_skill(skill_md_uri(path, self._scheme))
        self._known.pop(path, None)
        self._known[path] = replace(entry, resources=DYNAMIC)
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return catalog

    async def _complete(self, template: _Template, variable: str, beginning: str) -> list[str]:
        """Valid values of a variable that begin with ``beginning``, from its list or its function (T1)."""
        values = template.values.get(variable, ())
        if not callable(values):
            return [value for value in values if value.startswith(beginning)]
        found = await call_maker(template.path, partial(values, beginning), self._limits)
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise failed(template.path, f"completing {variable!r} returned {type(found).__name__}, not a list")
        return [value for value in cast("Iterable[Any]", found) if isinstance(value, str) and _is_segment(value)]


def _variable(part: str) -> str:
    """The name of the variable in ``part`` of a path, or an empty string."""
    match = _VARIABLE.fullmatch(part)
    return match.group(1) if match else ""


def _is_segment(value: str) -> bool:
    return not segment_problem(value)


def _checked(name: str, values: Values) -> tuple[str, ...] | Complete:
    if callable(values):
        return values
    listed = () if isinstance(values, str) else tuple(values)
    if not listed or not all(map(_is_segment, listed)):
        raise _invalid(f"the values of {name!r} are not a list of segments", "give a list of names, or a function")
    return listed


def _check(template: _Template) -> None:
    """Refuse an invalid template when it is added."""
    parts = parse_path(template.path).split("/")
    variables = [name for part in parts if (name := _variable(part))]
    if any("{" in part or "}" in part for part in parts if not _variable(part)):
        raise _invalid(f"{template.path!r} has braces that are not variables", "write it like docs/{product}")
    if not variables or len(set(variables)) != len(variables):
        raise _invalid(f"{template.path!r} has no variable, or repeats one", "write it like docs/{product}")
    if set(variables) != set(template.values):
        raise _invalid(f"the values do not match the variables of {template.path!r}", "give each its values")
    try:
        inspect.signature(template.make).bind(**dict.fromkeys(variables))
    except (TypeError, ValueError) as error:
        takes = f"the function for {template.path!r} does not take {', '.join(variables)}"
        raise _invalid(takes, "give its parameters the names of the variables") from error


def _check_apart(one: str, other: str) -> None:
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    if all(first == second or _variable(first) or _variable(second) for first, second in pairs):
        raise _invalid(f"{one!r} and {other!r} can match the same path", "begin them with different names", "N1")


def _invalid(message: str, hint: str, rule: str = "I1") -> FormatError:
    return FormatError("template-invalid", message, hint, rule=rule)
