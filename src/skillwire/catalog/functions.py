"""Skills that functions generate, for fixed paths and for paths with variables.

A *stable* skill of a ``GeneratedCatalog`` is generated once and then served like any other, with digests;
``regenerate`` generates it again. A *dynamic* skill is generated on each read. The resources of its entry are
``"dynamic"``, because there are no digests of bytes that do not exist yet (E2). A function that fails affects only
its own skill.

The skills of a ``TemplateCatalog`` have variables in their path: ``docs/{product}`` (I1, T1). A template is not a
skill, and its skills are not listed (L2). Each is served by its URI (G1) and is dynamic. A nested skill is served
only as files of the enclosing one. A variable is one whole segment. If its values are a list, other values are
refused, and a skill is known to exist without generating it. If its values are a function, that function only
completes input. The function that generates the skill then decides which skills exist, by returning ``None`` for
the others. Two templates cannot match the same path (N1).
"""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import anyio
from anyio import to_thread

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
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
from skillwire.catalog.memory import MemoryCatalog, Skill, refusal
from skillwire.catalog.safe_open import read_tree
from skillwire.catalog.snapshot import ReadFolder, SkillRecord, Snapshot, SnapshotCatalog
from skillwire.errors import FormatError, LimitError, NotFoundError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import KINDS, Diagnostic
from skillwire.skill.entry import DEFAULT_META, DYNAMIC, SkillMeta, build_entry
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, parse_path, parse_uri, segment_problem, skill_md_uri

if TYPE_CHECKING:
    from skillwire.skill import SkillEntry

Files = Mapping[str, "bytes | str"]
Generated: TypeAlias = "Files | Skill | str | os.PathLike[str]"
MakeFiles = Callable[[], "Generated | Awaitable[Generated]"]
F = TypeVar("F", bound=MakeFiles)
T = TypeVar("T")

Complete = Callable[[str], "Iterable[str] | Awaitable[Iterable[str]]"]
Values: TypeAlias = "Iterable[str] | Complete"
MakeSkill = Callable[..., "Generated | Awaitable[Generated | None] | None"]

_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_KNOWN = 256

log = logging.getLogger("skillwire.catalog")


async def call_either(function: Callable[[], T | Awaitable[T]]) -> T:
    """The result of a coroutine function, or of a plain function, which runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await cast("Awaitable[T]", function())
    result = await to_thread.run_sync(function, abandon_on_cancel=True)
    return await cast("Awaitable[T]", result) if inspect.isawaitable(result) else cast("T", result)


async def _call(path: str, function: Callable[[], object], limits: Limits) -> object:
    """The result of a function for ``path``. ``UpstreamError`` if it fails or takes too long."""
    try:
        with anyio.fail_after(limits.max_generate_seconds):
            return await call_either(function)
    except TimeoutError as error:
        raise _failed(path, f"it took longer than {limits.max_generate_seconds} s", "make it faster") from error
    except Exception as error:
        log.warning("the function that generates the skill %r failed", path, exc_info=error)
        raise _failed(path, f"it raised {type(error).__name__}", "see the log of 'skillwire.catalog'") from error


async def _generate(
    path: str, result: object, scheme: str, limits: Limits, meta: SkillMeta = DEFAULT_META
) -> MemoryCatalog:
    """A catalog of the skill at ``path``, as its function returned it: text, files, a ``Skill``, a folder."""
    match result:
        case str():
            files: Mapping[Any, Any] = {SKILL_MD: result}
        case Skill():
            files = result.files
        case os.PathLike():
            try:
                files = await to_thread.run_sync(read_tree, os.fspath(cast("os.PathLike[str]", result)), limits)
            except (OSError, LimitError) as error:
                raise _failed(
                    path, "the folder it returned cannot be read", "return the path of a folder"
                ) from error
        case Mapping():
            files = cast("Mapping[Any, Any]", result)
        case _:
            raise _failed(path, f"it returned {type(result).__name__}, not text, files, a Skill or a Path")
    for name, data in files.items():
        if not isinstance(name, str) or not isinstance(data, bytes | str):
            raise _failed(path, f"its file {name!r:.80} is {type(data).__name__}, not bytes or text")
    if SKILL_MD not in files:
        raise _failed(path, "it returned no SKILL.md", "add a file named SKILL.md to what it returns")
    return MemoryCatalog([Skill(path, files, meta)], scheme=scheme, limits=limits)


def _failed(path: str, reason: str, hint: str = "correct the function") -> UpstreamError:
    message = f"the function that generates the skill {path!r} failed: {reason}"
    return UpstreamError("generator-failed", message, hint)


def _served(path: str, generated: MemoryCatalog) -> MemoryCatalog:
    """``generated``, if the skill in it can be served. Otherwise the function is at fault, not the caller."""
    error = refusal(path, generated.snapshot())
    if error is not None:
        raise _failed(path, error.message, error.hint) from error
    return generated


class _Function(NamedTuple):
    make: MakeFiles
    dynamic: bool
    meta: SkillMeta


class GeneratedCatalog(SnapshotCatalog):
    """Skills from functions, added with ``add`` or the decorator ``skill``."""

    def __init__(self, *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(scheme)
        self._limits = limits
        self._functions: dict[str, _Function] = {}
        self._pending: dict[str, None] = {}  # paths whose function was not called yet, in the order of ``add``
        self._lock = anyio.Lock()

    def add(self, path: str, make: MakeFiles, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> None:
        """Serve the result of ``make``, a function or a coroutine function, at ``path``.

        The result is the text of a ``SKILL.md``, a mapping of file names to content, a ``Skill``, or the ``Path``
        of a skill's folder. The change is published at once, and the first reader of it calls ``make``.
        """
        uris = frozenset({skill_md_uri(parse_path(path), self._scheme)})
        if not _takes(make):
            raise FormatError(
                "generator-parameters",
                f"the function for the skill {path!r} has required parameters",
                "remove them, or declare a template whose path has them: docs/{product}",
            )
        change = Change(changed=uris) if path in self._functions else Change(added=uris)
        self._functions[path] = _Function(make, dynamic, meta)
        self._pending[path] = None
        self._feed.publish(change)

    def has(self, path: str) -> bool:
        """Whether a function was added for ``path``."""
        return path in self._functions

    def discard(self, path: str) -> None:
        """Stop serving the skill at ``path``."""
        self._functions.pop(path, None)
        self._pending.pop(path, None)
        self._replace(path, {})

    def skill(self, path: str, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> Callable[[F], F]:
        """``add``, as a decorator."""

        def decorate(make: F) -> F:
            self.add(path, make, dynamic=dynamic, meta=meta)
            return make

        return decorate

    async def regenerate(self, path: str) -> None:
        """Call the function for ``path`` again. ``UpstreamError`` if it fails; then the skill is not served."""
        async with self._lock:
            await self._regenerate(path)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill. A dynamic one is generated again, so that its frontmatter is current."""
        known = await self.peek_skill(uri)
        owner = self._dynamic_around(self._path(uri))
        if owner is not None and (known or uri == skill_md_uri(owner, self._scheme)):
            await self.regenerate(owner)
        return await super().get_skill(uri)

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry as last generated."""
        return self._known_entry(await self._current(), uri)

    async def unchanged(self, uri: str | None = None) -> None:
        """Always ``None``: the results of functions can change at any time."""

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file, generated now if the skill is dynamic."""
        generated = await self._generated_around(uri)
        return await (super().read_file(uri) if generated is None else generated.read_file(uri))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, generated now if the skill is dynamic."""
        generated = await self._generated_around(uri)
        if generated is None:
            return await super().read_directory(uri, cursor, limit)
        return await generated.read_directory(uri, cursor, limit)

    async def _current(self) -> Snapshot:
        if self._pending:
            async with self._lock:
                while self._pending:
                    with suppress(SkillwireError):  # it is one of the problems
                        await self._regenerate(next(iter(self._pending)))
        return self._snapshot

    def _meta_of(self, path: str) -> SkillMeta:
        function = self._functions.get(path)
        return DEFAULT_META if function is None else function.meta

    def _dynamic_around(self, path: str) -> str | None:
        """The path of the dynamic skill at or around ``path``."""
        while path and path not in self._functions:
            path = path.rpartition("/")[0]
        return path if path and self._functions[path].dynamic else None

    async def _generated_around(self, uri: str) -> MemoryCatalog | None:
        """The dynamic skill around ``uri``, generated now; ``None`` if the skill is stable."""
        await self._current()
        owner = self._dynamic_around(self._path(uri))
        if owner is None:
            return None
        async with self._lock:
            return _served(owner, await self._regenerate(owner))

    async def _regenerate(self, path: str) -> MemoryCatalog:
        """Generate the skill at ``path`` and put it into the snapshot. The caller holds the lock."""
        function, failure, generated = self._functions.get(path), None, MemoryCatalog()
        if function is None:  # discarded while the caller waited for the lock
            raise no_skill(skill_md_uri(path, self._scheme))
        try:
            result = await _call(path, function.make, self._limits)
            generated = await _generate(path, result, self._scheme, self._limits, function.meta)
            found = generated.snapshot().all_found()
        except SkillwireError as error:
            failure = error
            reference = error.reference if error.reference in KINDS else "generator-failed"
            problem = Diagnostic(reference, error.message, error.hint, file=f"{path}/{SKILL_MD}", skill=path)
            found = {path: ReadFolder(True, None, (problem,))}
        if self._functions.get(path) is function:  # neither replaced nor discarded meanwhile
            dynamic = {key: _as_dynamic(item) for key, item in found.items()}
            self._replace(path, dynamic if function.dynamic else found)
            self._pending.pop(path, None)
        if failure is not None:
            raise failure
        return generated

    def _replace(self, path: str, found: Mapping[str, ReadFolder]) -> None:
        self._snapshot, change = self._snapshot.updated(self._snapshot.paths_below(path), found)
        if path in self._pending:  # ``add`` has published the change of this skill
            own = {skill_md_uri(path, self._scheme)}
            change = Change(change.added - own, change.changed - own, change.removed)
        self._feed.publish(change)


def _as_dynamic(found: ReadFolder) -> ReadFolder:
    if found.record is None:
        return found
    entry = replace(found.record.entry, resources=DYNAMIC)
    return replace(found, record=SkillRecord(entry, {}, frozenset()))


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
        if path is None or await self._generated_at(path) is None:
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
        generated = await self._generated_around(parse_uri(uri).parent.path, uri)
        if generated is None:
            raise no_file(uri)
        return await generated.read_file(uri)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, generated now."""
        generated = await self._generated_around(parse_uri(uri).path, uri)
        if generated is None:
            raise no_directory(uri)
        return await generated.read_directory(uri, cursor, limit)

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

    async def _generated_around(self, path: str, uri: str) -> MemoryCatalog | None:
        """The skill at or around ``path``."""
        while path and parse_uri(uri).scheme == self._scheme:
            generated = await self._generated_at(path)
            if generated is not None:
                return generated
            path = path.rpartition("/")[0]
        return None

    async def _generated_at(self, path: str) -> MemoryCatalog | None:
        """A catalog with the skill at exactly ``path``; ``None`` if it does not exist."""
        matches = ((template, template.match(path)) for template in self._templates)
        make = next((partial(template.make, **values) for template, values in matches if values), None)
        result = await _call(path, make, self._limits) if make else None
        if result is None:
            self._known.pop(path, None)
            return None
        generated = _served(path, await _generate(path, result, self._scheme, self._limits))
        entry = await generated.get_skill(skill_md_uri(path, self._scheme))
        self._known.pop(path, None)
        self._known[path] = replace(entry, resources=DYNAMIC)
        if len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        return generated

    async def _complete(self, template: _Template, variable: str, beginning: str) -> list[str]:
        """Valid values of a variable that begin with ``beginning``, from its list or its function (T1)."""
        values = template.values.get(variable, ())
        if not callable(values):
            return [value for value in values if value.startswith(beginning)]
        found = await _call(template.path, partial(values, beginning), self._limits)
        if isinstance(found, str) or not isinstance(found, Iterable):
            raise _failed(template.path, f"completing {variable!r} returned {type(found).__name__}, not a list")
        return [
            value
            for value in cast("Iterable[Any]", found)
            if isinstance(value, str) and not segment_problem(value)
        ]


def _variable(part: str) -> str:
    """The name of the variable in ``part`` of a path, or an empty string."""
    match = _VARIABLE.fullmatch(part)
    return match.group(1) if match else ""


def _checked(name: str, values: Values) -> tuple[str, ...] | Complete:
    if callable(values):
        return values
    listed = () if isinstance(values, str) else tuple(values)
    if not listed or any(map(segment_problem, listed)):
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
    if not _takes(template.make, variables):
        takes = f"the function for {template.path!r} does not take {', '.join(variables)}"
        raise _invalid(takes, "give its parameters the names of the variables")


def _takes(function: Callable[..., object], names: Iterable[str] = ()) -> bool:
    """Whether ``function`` can be called with exactly these keyword arguments."""
    try:
        inspect.signature(function).bind(**dict.fromkeys(names))
    except (TypeError, ValueError):
        return False
    return True


def _check_apart(one: str, other: str) -> None:
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    if all(first == second or _variable(first) or _variable(second) for first, second in pairs):
        raise _invalid(f"{one!r} and {other!r} can match the same path", "begin them with different names", "N1")


def _invalid(message: str, hint: str, rule: str = "I1") -> FormatError:
    return FormatError("template-invalid", message, hint, rule=rule)
