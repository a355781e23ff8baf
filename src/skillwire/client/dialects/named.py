"""Skills that are known by name: the ``sep-2076`` and the ``native`` dialect (P1–P5, M1–M4).

Such a server gives no URI to a skill, so one is made for it, ``named://<name>/SKILL.md``: an identity inside this
program, never sent to the server. Nothing is promised about bytes: what ``skills/get`` or ``skills/activate``
returns can be read, not verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from skillwire.client.dialects.contract import Dialect, root_of
from skillwire.client.pages import each_page
from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError
from skillwire.skill.entry import Partial, Resource, SkillEntry
from skillwire.skill.received import invalid_entry
from skillwire.skill.uri import parse_path, parse_uri, refuse_file, skill_md_uri
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from skillwire.client.connection import Connection

SCHEME = "named"
SKILLS_ACTIVATE = "skills/activate"
SKILLS_DEACTIVATE = "skills/deactivate"
LIST_CHANGED = "notifications/skills/list_changed"


def uri_of(name: str) -> str:
    """The identity, inside this program, of a skill that its server knows by ``name``."""
    parse_path(name)
    if "/" in name:
        raise FormatError("name-invalid", f"the name {name!r:.80} has a slash in it", "use a name as it is listed")
    return skill_md_uri(name, SCHEME)


def name_of(uri: str) -> str:
    """The name behind a URI of ours."""
    root = root_of(uri)
    if root.scheme != SCHEME or len(root.segments) != 1:
        raise NotFoundError(
            "skill-unknown", f"{uri!r:.300} is not a skill of this server", "its skills are named: list them"
        )
    return root.segments[0]


class NamedDialect(Dialect):
    """What both share: a listing of names and descriptions."""

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """``skills/list``, page by page (P1, M1)."""
        async for items in each_page(self.connection, SKILLS_LIST, "skills"):
            page: list[SkillEntry] = []
            for item in items:
                try:
                    page.append(named_entry(item))
                except FormatError as error:
                    self.leave_out(error, item.get("name"))
            yield page

    async def _listed(self, name: str) -> SkillEntry:
        uri = uri_of(name)
        async for page in self.pages():
            for entry in page:
                if entry.uri == uri:
                    return entry
        return named_entry({"name": name})  # unlisted: all that is known is that the server answered for it


def named_entry(item: dict[str, Any], files: tuple[Resource, ...] = ()) -> SkillEntry:
    """A skill as its server lists it. Every field is kept; none is promised to be the author's."""
    name = item.get("name")
    if not isinstance(name, str):
        raise invalid_entry("'name' is missing or not text", "P1")
    frontmatter = {"description": "", **item}
    if not isinstance(frontmatter["description"], str):
        raise invalid_entry("'description' is not text", "P1")
    return SkillEntry(uri_of(name), frontmatter, Partial(files), whole_frontmatter=False)


@dataclass(frozen=True, slots=True)
class NamedSkill:
    """P2: what ``skills/get`` says: instructions, the files they speak of, what they depend on. Unverified."""

    name: str
    instructions: str
    files: tuple[Mapping[str, Any], ...]
    dependencies: Mapping[str, Any]
    description: str = ""


class Sep2076Dialect(NamedDialect):
    """``skills/list`` and ``skills/get`` by name."""

    name = "sep-2076"

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry with the files that ``skills/get`` names (P4)."""
        name = name_of(uri)
        entry = await self._listed(name)
        if as_list(entry.frontmatter.get("arguments")):
            return entry  # its files depend on arguments, which nobody has given yet
        skill = await self.get_named(name)
        files = [as_text(file.get("uri")) for file in skill.files]
        usable = tuple(Resource(file, None, None) for file in files if file and self._is_usable(file))
        return named_entry(dict(entry.frontmatter), usable)

    def _is_usable(self, uri: str) -> bool:
        """Whether ``uri`` is one that we would read (U7, O3); else it is reported."""
        try:
            parse_uri(uri)
        except FormatError as error:
            self.leave_out(error, uri)
            return False
        return True

    async def get_named(self, name: str, arguments: Mapping[str, str] | None = None) -> NamedSkill:
        """P2: ``skills/get`` with arguments."""
        params: dict[str, Any] = {"name": name, **({"arguments": dict(arguments)} if arguments else {})}
        result = await self.connection.request(SKILLS_GET, **params)
        instructions = result.get("instructions")
        if not isinstance(instructions, str):
            raise ProtocolError(
                "answer-invalid",
                f"{SKILLS_GET} gave no instructions for {name!r:.80}",
                "the server has to be corrected",
                rule="P2",
            )
        files = tuple(map(as_object, as_list(result.get("files"))))
        description = as_text(result.get("description"))
        return NamedSkill(name, instructions, files, as_object(result.get("dependencies")), description)

    async def read(self, uri: str, at_most: int) -> bytes:
        """The instructions for a URI of ours, else a file of the server's."""
        if parse_uri(uri).scheme != SCHEME:
            return await super().read(uri, at_most)
        return bounded((await self.get_named(name_of(uri))).instructions, uri, at_most)


@dataclass(frozen=True, slots=True)
class Activation:
    """M2: an activated skill: its instructions, and complete definitions of what is callable now.

    The definitions are the server's words. Calling goes through ordinary methods, inside that server (M3).
    """

    name: str
    messages: tuple[Mapping[str, Any], ...]
    tools: tuple[Mapping[str, Any], ...]
    prompts: tuple[Mapping[str, Any], ...]
    resources: tuple[Mapping[str, Any], ...]
    skills: tuple[Mapping[str, Any], ...]
    connection: Connection

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
        if uri not in {resource.get("uri") for resource in self.resources}:
            raise _not_scoped(uri, self.name, "resource")
        refuse_file(uri)
        return await self.connection.request("resources/read", uri=uri)

    def _check(self, name: str, known: tuple[Mapping[str, Any], ...], kind: str) -> None:
        if name not in {item.get("name") for item in known}:
            raise _not_scoped(name, self.name, kind)


class NativeDialect(NamedDialect):
    """``skills/list`` and ``skills/activate``."""

    name = "native"

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry from the listing. What a skill holds is known only once it is activated."""
        name, wanted = name_of(uri), None
        async for page in self.pages():
            wanted = wanted or next((entry for entry in page if entry.name == name), None)
        if wanted is None:
            raise NotFoundError(
                "skill-unknown", f"the server lists no skill named {name!r:.80}", "list the skills"
            )
        return wanted

    async def activate(self, name: str) -> Activation:
        """M2: ``skills/activate``."""
        result = await self.connection.request(SKILLS_ACTIVATE, name=name)
        scoped = {**as_object(result.get("contents")), **result}  # the prototype keeps them one level down
        parts = {
            field: tuple(map(as_object, as_list(scoped.get(field))))
            for field in ("messages", "tools", "prompts", "resources", "skills")
        }
        instructions = result.get("instructions")
        if isinstance(instructions, str):  # the prototype sends text, the proposal messages
            parts["messages"] = ({"role": "user", "content": {"type": "text", "text": instructions}},)
        elif isinstance(instructions, list):
            parts["messages"] = tuple(map(as_object, as_list(cast("object", instructions))))
        return Activation(name, **parts, connection=self.connection)

    async def deactivate(self, name: str) -> None:
        """M3: hide the scoped primitives again."""
        await self.connection.request(SKILLS_DEACTIVATE, name=name)

    async def read(self, uri: str, at_most: int) -> bytes:
        """The instructions, by activating the skill: there is no other way to them."""
        if parse_uri(uri).scheme != SCHEME:
            return await super().read(uri, at_most)
        return bounded((await self.activate(name_of(uri))).instructions, uri, at_most)


def bounded(text: str, uri: str, at_most: int) -> bytes:
    """B1: ``text`` as bytes, if they are not too many."""
    data = text.encode(errors="replace")
    if len(data) > at_most:
        raise LimitError(
            "file-too-large",
            f"{uri!r:.300} has more than {at_most} bytes",
            "raise Limits.max_file_bytes if you trust the server that far",
            rule="B1",
        )
    return data


def _not_scoped(name: str, skill: str, kind: str) -> NotFoundError:
    return NotFoundError(
        "not-scoped",
        f"{name!r:.200} is no {kind} of the skill {skill!r:.80}",
        "use what its activation names",
        rule="M3",
    )
