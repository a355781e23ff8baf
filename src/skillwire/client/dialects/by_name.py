"""The dialects that identify skills by name: ``sep-2076`` (P1–P5) and ``native`` (M1–M4).

Such a server has no URI for a skill, so this package uses ``named://<name>/SKILL.md``, which is never sent to the
server. Instructions from ``skills/get`` or ``skills/activate`` cannot be verified. A file can, if the server sends
its digest in ``_meta``, as servers of this package do (V1, R4).
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio

from skillwire.client.bounds import as_list, as_object, as_size, as_text
from skillwire.client.dialects.contract import ClientDialect, check_size, each_page, requested_root
from skillwire.errors import FormatError, NotFoundError, ProtocolError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.declarations import ARGUMENT_NAME
from skillwire.skill.entry import (
    Partial,
    Resource,
    SkillEntry,
    check_frontmatter_size,
    check_name,
    given_arguments,
    invalid_entry,
    is_digest,
)
from skillwire.skill.frontmatter import MAX_NAME
from skillwire.skill.uri import NAMED_SCHEME, SKILL_MD, parse_path, parse_uri, refuse_file, skill_md_uri
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST
from skillwire.wire.meta import ACTIVATION, DIGEST, SIZE, URI
from skillwire.wire.native import SKILLS_ACTIVATE, SKILLS_DEACTIVATE
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    from skillwire.client.connection import Connection
    from skillwire.skill import Diagnostic

SCHEME = NAMED_SCHEME
LIST_CHANGED = "notifications/skills/list_changed"
_ARGUMENT = re.compile(ARGUMENT_NAME)  # only valid names reach a model


def uri_of(name: str) -> str:
    """The internal URI of the skill ``name``."""
    uri = skill_md_uri(parse_path(name), SCHEME)
    parse_uri(uri)  # checks its length and depth
    return uri


def name_of(uri: str) -> str:
    """The name in an internal URI."""
    root = requested_root(uri)
    if root.scheme != SCHEME:
        raise NotFoundError(
            "skill-unknown",
            f"{uri!r:.300} is not a skill of this server",
            "the server identifies skills by name: list them",
        )
    return root.path


class NamedDialect(ClientDialect):
    """The base of both dialects: a listing of names and descriptions."""

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """``skills/list``, page by page (P1, M1)."""
        async for items in each_page(self.connection, SKILLS_LIST, "skills"):
            page: list[SkillEntry] = []
            for item in items:
                try:
                    page.append(named_entry(item, limits=self.limits))
                except FormatError as error:
                    self.skip(error, item.get("name"))
            yield page

    async def _listed(self, name: str) -> SkillEntry:
        uri = uri_of(name)
        async for page in self.pages():
            for entry in page:
                if entry.uri == uri:
                    return entry
        return named_entry({"name": name})  # unlisted: only its name is known

    def _with_files(
        self,
        fields: dict[str, Any],
        files: Sequence[Mapping[str, Any]],
        arguments: Mapping[str, str | None] | None = None,
    ) -> SkillEntry:
        """The entry of a skill with these files (P4)."""
        usable = {file.uri: file for file in map(_promised_file, files) if file.uri and self._is_usable(file.uri)}
        names = {as_text(file.get("uri")): as_text(file.get("name")) for file in files}
        known = tuple(usable.values())[: self.limits.max_resources]
        return named_entry(fields, known, names, self.limits, arguments)

    def _is_usable(self, uri: str) -> bool:
        """Whether ``uri`` is valid (U7, O3); if not, it is reported."""
        try:
            parse_uri(uri)
        except FormatError as error:
            self.skip(error, uri)
            return False
        return True


def _promised_file(file: Mapping[str, Any]) -> Resource:
    """A file, with the digest and size in its ``_meta``, if the server sends them (R4)."""
    meta = as_object(file.get("_meta"))
    digest = meta.get(DIGEST)
    return Resource(as_text(file.get("uri")), digest if is_digest(digest) else None, as_size(meta.get(SIZE)))


def named_entry(
    item: dict[str, Any],
    files: tuple[Resource, ...] = (),
    names: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    arguments: Mapping[str, str | None] | None = None,
) -> SkillEntry:
    """The entry of a listed skill. Every field is kept; none is verified."""
    name = item.get("name")
    if not isinstance(name, str):
        raise invalid_entry("'name' is missing or not a string", "P1")
    check_name(name, "P1")
    if len(name.rpartition("/")[2]) > MAX_NAME:  # other violations of F2 are accepted (F7)
        raise invalid_entry(f"the name {name!r:.80} has more than {MAX_NAME} characters", "F2")
    frontmatter = {"description": "", **item}
    if not isinstance(frontmatter["description"], str):
        raise invalid_entry("'description' is not a string", "P1")
    check_frontmatter_size(frontmatter, limits)
    given = {**dict.fromkeys(required_arguments(item)), **(arguments or {})}
    return SkillEntry(uri_of(name), frontmatter, Partial(files, names or {}, given), whole_frontmatter=False)


def required_arguments(skill: Mapping[str, Any]) -> list[str]:
    """P2: the required arguments of a listed skill."""
    arguments = map(as_object, as_list(skill.get("arguments")))
    names = [as_text(argument.get("name")) for argument in arguments if argument.get("required")]
    return [name for name in names if _ARGUMENT.fullmatch(name)][: DEFAULT_LIMITS.max_arguments]


@dataclass(frozen=True, slots=True)
class NamedSkill:
    """P2: the result of ``skills/get``: instructions, files and dependencies."""

    name: str
    instructions: str
    files: tuple[Mapping[str, Any], ...]
    dependencies: Mapping[str, Any]
    description: str = ""


class Sep2076Dialect(NamedDialect):
    """``skills/list`` and ``skills/get`` by name."""

    name = "sep-2076"

    async def get_skill(self, uri: str, arguments: Mapping[str, str] | None = None) -> SkillEntry:
        """The entry with the files of ``skills/get`` (P4), with ``arguments`` for the skill (P2).

        If required arguments are missing, it is the listed entry.
        """
        name = name_of(uri)
        entry = await self._listed(name)
        if arguments:
            entry = named_entry(dict(entry.frontmatter), limits=self.limits, arguments=arguments)
            given_arguments(entry)
        if None in entry.arguments.values():
            return entry
        skill = await self.get_named(name, arguments)
        return self._with_files(dict(entry.frontmatter), skill.files, arguments)

    async def get_named(self, name: str, arguments: Mapping[str, str] | None = None) -> NamedSkill:
        """P2: ``skills/get`` with arguments."""
        params: dict[str, Any] = {"name": name, **({"arguments": dict(arguments)} if arguments else {})}
        result = await self.connection.request(SKILLS_GET, **params)
        instructions = result.get("instructions")
        if not isinstance(instructions, str):
            raise ProtocolError(
                "answer-invalid",
                f"{SKILLS_GET} returned no instructions for {name!r:.80}",
                "the server must be fixed",
                rule="P2",
            )
        files = tuple(map(as_object, as_list(result.get("files"))))
        description = as_text(result.get("description"))
        return NamedSkill(name, instructions, files, as_object(result.get("dependencies")), description)

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002
        """The instructions for an internal URI, else a file of the server."""
        if parse_uri(uri).scheme != SCHEME:
            return await super().read(uri, at_most)
        return bounded((await self.get_named(name_of(uri))).instructions, uri, at_most)


@dataclass(frozen=True, slots=True)
class Activation:
    """M2: an activated skill: its instructions, and the definitions of its tools, prompts and resources.

    The definitions are the server's own. They are used through ordinary methods of the same server (M3).
    """

    name: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    prompts: tuple[Mapping[str, Any], ...]
    resources: tuple[Mapping[str, Any], ...]
    skills: tuple[Mapping[str, Any], ...]
    connection: Connection
    templates: tuple[Mapping[str, Any], ...] = ()
    home: str = ""  # the URI of the SKILL.md on a server of this package

    @property
    def meta(self) -> dict[str, Any]:
        """The ``_meta`` of requests in the stateless era, which tells the server the active skills."""
        return dict(self.connection.carried)

    @property
    def instructions(self) -> str:
        """The text of the messages."""
        texts = (as_text(as_object(message.get("content")).get("text")) for message in self.messages)
        return "\n\n".join(text for text in texts if text)

    async def call_tool(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """``tools/call`` for one of the scoped tools."""
        self._check(name, self.tools, "tool")
        return await self.connection.request("tools/call", name=name, arguments=dict(arguments or {}))

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Any]:
        """``prompts/get`` for one of the scoped prompts."""
        self._check(name, self.prompts, "prompt")
        return await self.connection.request("prompts/get", name=name, arguments=dict(arguments or {}))

    async def read_resource(self, uri: str) -> dict[str, Any]:
        """``resources/read`` for one of the scoped resources."""
        if uri not in {resource.get("uri") for resource in self.resources} and not self._is_templated(uri):
            raise _not_scoped(uri, self.name, "resource")
        refuse_file(uri)
        return await self.connection.request("resources/read", uri=uri)

    def _is_templated(self, uri: str) -> bool:
        return any(matches_template(as_text(item.get("uriTemplate")), uri) for item in self.templates)

    def _check(self, name: str, known: tuple[Mapping[str, Any], ...], kind: str) -> None:
        if name not in {item.get("name") for item in known}:
            raise _not_scoped(name, self.name, kind)


class NativeDialect(NamedDialect):
    """``skills/list`` and ``skills/activate``. In the stateless era every request has a token of active skills."""

    name = "native"

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        super().__init__(connection, report)
        self._active: dict[str, Activation] = {}
        self._turn = anyio.Lock()  # a response has the token for the next request
        self._activating = anyio.Lock()  # no skill is deactivated while another task reads it

    async def get_skill(self, uri: str) -> SkillEntry:
        """The listed skill, with the files in its activation: only then are they known (M2).

        A server of this package sends every file with its digest, including the ``SKILL.md``. Other resources are
        not files of the skill.
        """
        name = name_of(uri)
        listed = await self._listed(name)
        fields = dict(listed.frontmatter)
        try:
            async with self._activated(name) as activation:
                files, home = activation.resources, activation.home
        except UpstreamError as error:
            is_listed = listed != named_entry({"name": name})
            if is_listed or error.reference != "server-failed":
                raise
            raise NotFoundError(  # the prototype fails for an unknown name
                "skill-unknown", f"the server has no skill {name!r:.100}", "list its skills"
            ) from error
        if home:
            inside = home.removesuffix(SKILL_MD)
            meta = next(
                (as_object(file.get("_meta")) for file in files if file.get("uri") == home), dict[str, Any]()
            )
            fields["_meta"] = {**as_object(fields.get("_meta")), **meta, URI: home}
            files = tuple(file for file in files if as_text(file.get("uri")).startswith(inside))
            files = tuple(file for file in files if file.get("uri") != home)
        return self._with_files(fields, files)

    async def activate(self, name: str) -> Activation:
        """M2: ``skills/activate``."""
        async with self._activating:
            self._active[name] = activation = await self._activate(name)
        return activation

    @asynccontextmanager
    async def _activated(self, name: str) -> AsyncGenerator[Activation]:
        """Activate a skill for the duration of the block, unless it is active already."""
        if name in self._active:
            yield self._active[name]
            return
        async with self._activating:
            activation = await self._activate(name)
            try:
                yield activation
            finally:
                with suppress(NotFoundError, ProtocolError):  # not every server supports it
                    await self._change(SKILLS_DEACTIVATE, name)

    async def _activate(self, name: str) -> Activation:
        result = await self._change(SKILLS_ACTIVATE, name)
        scoped = {**as_object(result.get("contents")), **result}  # the prototype has them one level deeper
        parts = {
            field: tuple(map(as_object, as_list(scoped.get(field))))
            for field in ("messages", "tools", "prompts", "resources", "skills")
        }
        templates = tuple(map(as_object, as_list(scoped.get("resourceTemplates"))))
        instructions = result.get("instructions")
        if isinstance(instructions, str):  # the prototype sends text, the proposal has messages
            parts["messages"] = ({"role": "user", "content": {"type": "text", "text": instructions}},)
        elif isinstance(instructions, list):
            parts["messages"] = tuple(map(as_object, as_list(cast("object", instructions))))
        home = as_text(as_object(result.get("_meta")).get(URI))
        return Activation(name, **parts, connection=self.connection, templates=templates, home=home)

    async def deactivate(self, name: str) -> None:
        """M3: ``skills/deactivate``."""
        async with self._activating:
            await self._change(SKILLS_DEACTIVATE, name)
            self._active.pop(name, None)

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:
        """The instructions, or a file of ``skill``: both need the skill to be active (M3)."""
        is_instructions = parse_uri(uri).scheme == SCHEME
        if not is_instructions and not skill:
            return await super().read(uri, at_most)
        async with self._activated(name_of(uri if is_instructions else skill)) as activation:
            if is_instructions:
                return bounded(activation.instructions, uri, at_most)
            return await super().read(uri, at_most)

    async def _change(self, method: str, name: str) -> dict[str, Any]:
        """Send a request, and keep the token of the response. If the token expired, retry without it."""
        carried = self.connection.carried
        async with self._turn:
            had_token = bool(carried)
            try:
                result = await self.connection.request(method, name=name)
            except NotFoundError:
                if carried or not had_token:
                    raise
                result = await self.connection.request(method, name=name)
            token = as_object(result.get("_meta")).get(ACTIVATION)
            if isinstance(token, str) and len(token) <= self.limits.max_cursor_length:
                carried[ACTIVATION] = token
        return result


def bounded(text: str, uri: str, at_most: int) -> bytes:
    """B1: encode ``text``; ``LimitError`` for more than ``at_most`` bytes."""
    data = text.encode(errors="replace")
    check_size(len(data), uri, at_most)
    return data


def _not_scoped(name: str, skill: str, kind: str) -> NotFoundError:
    return NotFoundError(
        "not-scoped",
        f"{name!r:.200} is not a {kind} of the skill {skill!r:.80}",
        f"use a {kind} of its activation",
        rule="M3",
    )
