"""The ``index`` dialect: ``skill://index.json`` of both generations, and skills in archives (I1–I3).

Listing reads only the index (V5). An entry of the older generation has a name, a description and a URL; one of the
newer generation has the frontmatter and the digest of its ``SKILL.md``. Neither lists the files of a skill, so the
entries are partial. Getting a skill in an archive fetches the archive and unpacks it in memory. If the index has
the digest of the archive, the digest covers every file in it, and the entry is complete.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from skillwire.catalog.contract import DirectoryChild
from skillwire.client.bounds import as_list, as_object, as_text, parse_json
from skillwire.client.dialects.contract import (
    Children,
    ClientDialect,
    check_size,
    read_content,
    read_if_exists,
    repeated_entry,
    requested_root,
    too_long,
)
from skillwire.client.dialects.plain import entry_from_skill_md
from skillwire.errors import FormatError, NotFoundError, ProtocolError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.archive import archive_format, archive_root, unpack_tree
from skillwire.skill.entry import (
    Partial,
    Resource,
    SkillEntry,
    check_frontmatter_size,
    check_name,
    digest_of,
    invalid_entry,
    parse_digest,
)
from skillwire.skill.uri import SKILL_MD, SkillUri, format_uri, parse_uri, refuse_file, root_of
from skillwire.skill.verify import verify_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillwire.client.connection import Connection
    from skillwire.skill import Diagnostic
    from skillwire.skill.archive import Unpacked

INDEX_URI = "skill://index.json"
_TEMPLATE = "mcp-resource-template"
_OTHER_DIALECT = "the server may use another dialect; without --dialect it is detected"


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive of a skill: its URI, its media type, and its digest if the index has one."""

    uri: str
    media_type: str | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class IndexedSkill:
    """One entry of the index, and the archive of the skill, if there is one.

    ``has_url``: the index has the URL of the ``SKILL.md`` itself, and not only of an archive.
    """

    entry: SkillEntry
    archive: Archive | None = None
    has_url: bool = True


class IndexDialect(ClientDialect):
    """A server with a ``skill://index.json``."""

    name = "index"

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        super().__init__(connection, report)
        self._skills: dict[SkillUri, IndexedSkill] | None = None  # by root, from the last index
        self._unpacked: OrderedDict[Archive, Unpacked] = OrderedDict()  # the most recently used is last

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """The index, as one page."""
        yield [skill.entry for skill in (await self._load()).values()]

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry from the current index. The archive of a skill is fetched and unpacked.

        If the index does not list the skill, its ``SKILL.md`` is requested: a template has skills that are not
        listed.
        """
        skill = (await self._load()).get(requested_root(uri))
        if skill is None:  # from a template, or from the server's instructions (I5)
            return await entry_from_skill_md(self.connection, uri)
        if skill.archive is None:
            return skill.entry
        if skill.archive.digest is None:
            self._unpacked.pop(skill.archive, None)  # it may have changed
        return _with_files(skill.entry, (await self._tree(skill.archive)).files, skill.archive)

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002
        """The bytes at ``uri``, from the archive of the skill if there is one."""
        place = parse_uri(uri)
        packed = await self._packed(place, place.parent)
        if packed is None:
            return await read_content(self.connection, uri, at_most)
        archive, path = packed
        data = (await self._tree(archive)).files.get(path)
        if data is None:
            raise NotFoundError(
                "file-unknown",
                f"the archive does not contain {uri!r:.300}",
                "get the skill, and use a file that it lists",
            )
        check_size(len(data), uri, at_most)
        return data

    async def read_directory(self, uri: str) -> Children:
        """The children of a directory, from the archive of the skill if there is one, with empty folders."""
        place = parse_uri(uri.removesuffix("/"))
        packed = await self._packed(place, place)
        if packed is None:
            return await super().read_directory(uri)
        archive, folder = packed
        tree, begin = await self._tree(archive), f"{folder}/" if folder else ""
        children: dict[str, DirectoryChild] = {}
        for path in (*tree.files, *(f"{path}/" for path in tree.folders)):
            name, slash, _ = path.removeprefix(begin).partition("/")
            if name and path.startswith(begin):
                at = format_uri(f"{place.path}/{name}", place.scheme)
                size = None if slash else len(tree.files[path])
                children[name] = DirectoryChild(
                    at, name, bool(slash), size, executable=path in tree.executables and not slash
                )
        if not children and folder not in tree.folders:
            raise NotFoundError(
                "directory-unknown",
                f"the archive has no folder {uri!r:.300}",
                "get the skill, and use a file that it lists",
            )
        return Children(children[name] for name in sorted(children))

    async def _packed(self, place: SkillUri, folder: SkillUri) -> tuple[Archive, str] | None:
        """The innermost archive of a skill at or around ``folder``, and the path of ``place`` in it."""
        skills = self._skills if self._skills is not None else await self._load()
        for root in folder.upwards():
            skill = skills.get(root)
            if skill is not None and skill.archive is not None:
                return skill.archive, "/".join(place.segments[len(root.segments) :])
        return None

    async def _load(self) -> dict[SkillUri, IndexedSkill]:
        data = await read_if_exists(self.connection, INDEX_URI, self.limits.max_index_bytes)
        if data is None:
            raise ProtocolError("index-missing", f"the server has no {INDEX_URI}", _OTHER_DIALECT, rule="I1")
        skills: dict[SkillUri, IndexedSkill] = {}
        for item in parse_index(data, self.limits):
            try:
                skill = parse_index_entry(item, self.limits)
                root = skill.entry.root
                skills[root] = _merged(skills[root], skill) if root in skills else skill
            except FormatError as error:
                self.skip(error, item.get("url"))
        self._skills = skills
        return skills

    async def _tree(self, archive: Archive) -> Unpacked:
        """The content of an archive. The most recently used archives are kept, up to the size of one skill."""
        tree = self._unpacked.pop(archive, None)
        if tree is None:
            form = archive_format(archive.uri, archive.media_type)
            data = await read_content(self.connection, archive.uri, self.limits.max_archive_bytes)
            if archive.digest is not None and digest_of(data) != archive.digest:
                raise VerificationError(
                    "digest-mismatch",
                    f"the archive {archive.uri!r:.300} is {digest_of(data)}, but the index has {archive.digest}",
                    "read the index again",
                    rule="V1",
                )
            # In a thread, since a hostile archive takes a while.
            tree = await to_thread.run_sync(unpack_tree, data, form, self.limits)
        self._unpacked[archive] = tree
        while len(self._unpacked) > 1 and self._held() > self.limits.max_skill_bytes:
            self._unpacked.popitem(last=False)
        return tree

    def _held(self) -> int:
        return sum(len(data) for tree in self._unpacked.values() for data in tree.files.values())


def _merged(first: IndexedSkill, second: IndexedSkill) -> IndexedSkill:
    """Merge two entries of a skill: its ``SKILL.md`` and its archive. Any other repetition is an error."""
    plain, packed = (first, second) if first.has_url else (second, first)
    if plain.archive is not None or packed.has_url:
        raise repeated_entry()
    entry = plain.entry
    if packed.entry.whole_frontmatter and not entry.whole_frontmatter:
        entry = replace(packed.entry, resources=entry.resources)
    return IndexedSkill(entry, packed.archive)


def parse_index(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[dict[str, Any]]:
    """The entries of a ``skill://index.json``, not validated (I1)."""
    try:
        document = parse_json(data, INDEX_URI, limits)
    except ValueError as error:
        raise ProtocolError(
            "index-invalid", f"{INDEX_URI} is not valid JSON", _OTHER_DIALECT, rule="I1"
        ) from error
    skills = as_object(document).get("skills")
    if not isinstance(skills, list):
        raise ProtocolError("index-invalid", f"{INDEX_URI} has no list of skills", _OTHER_DIALECT, rule="I1")
    items = as_list(cast("object", skills))
    if len(items) > limits.max_entries:
        raise too_long(limits, "max_entries", INDEX_URI)
    return [as_object(item) for item in items]


def parse_index_entry(item: dict[str, Any], limits: Limits = DEFAULT_LIMITS) -> IndexedSkill:
    """Parse an entry of either generation; ``FormatError`` if it is invalid."""
    if item.get("type") == _TEMPLATE:
        raise FormatError(
            "entry-template",
            "the entry is a template: its skills depend on values that a user chooses",
            "complete the template, then get the skill by its URI",
            rule="I1",
        )
    if item.get("type", "skill-md") not in ("skill-md", "archive"):
        raise FormatError(
            "entry-type-unknown",
            f"the entry has the unknown type {item['type']!r:.80}, and is skipped",
            "a newer version of skillwire may support it",
            rule="I1",
        )
    skill = _newer(item) if isinstance(item.get("frontmatter"), dict) else _older(item)
    check_frontmatter_size(skill.entry.frontmatter, limits)
    return skill


def _newer(item: dict[str, Any]) -> IndexedSkill:
    """``url`` and ``digest`` belong to the ``SKILL.md``; a skill that is only in an archive has neither.

    In a document for both generations, they belong to the archive if the type is ``archive``.
    """
    archive = next((_archive(packed) for packed in map(as_object, as_list(item.get("archives")))), None)
    if item.get("type") == "archive" and "url" in item:
        own = _archive(item)
        entry = _entry(_unpacked_uri(own), item["frontmatter"], None, whole=True)
        return IndexedSkill(entry, archive or own, has_url=False)
    uri = _absolute(item.get("url")) if "url" in item or archive is None else _unpacked_uri(archive)
    entry = _entry(uri, item["frontmatter"], _digest(item.get("digest")), whole=True)
    return IndexedSkill(entry, archive, has_url="url" in item)


def _older(item: dict[str, Any]) -> IndexedSkill:
    """Some servers omit name and description; the name is in the URL."""
    archive = _archive(item) if item.get("type") == "archive" else None
    uri = _absolute(item.get("url")) if archive is None else _unpacked_uri(archive)
    fields = {"name": root_of(uri).segments[-1], "description": ""}
    fields |= {key: item[key] for key in fields if key in item}
    digest = _digest(item.get("digest")) if archive is None else None
    return IndexedSkill(_entry(uri, fields, digest, whole=False), archive, has_url=archive is None)


def _archive(item: dict[str, Any]) -> Archive:
    return Archive(_absolute(item.get("url")), as_text(item.get("mimeType")) or None, _digest(item.get("digest")))


def _unpacked_uri(archive: Archive) -> str:
    return f"{archive_root(archive.uri)}/{SKILL_MD}"


def _entry(uri: str, frontmatter: dict[str, Any], digest: str | None, *, whole: bool) -> SkillEntry:
    root = root_of(uri)
    if frontmatter.get("name") != root.segments[-1]:
        raise invalid_entry(f"the name {frontmatter.get('name')!r:.80} differs from the URI's last segment", "U3")
    check_name(root.segments[-1], "I1")
    if not isinstance(frontmatter.get("description"), str):
        raise invalid_entry("'description' is missing or not a string", "E1")
    return SkillEntry(uri, frontmatter, Partial((Resource(uri, digest, None),)), whole_frontmatter=whole)


def _with_files(entry: SkillEntry, files: dict[str, bytes], archive: Archive) -> SkillEntry:
    """The entry with all files of its archive. They have digests if the index has that of the archive (I2)."""
    root = entry.root
    promised = archive.digest is not None
    digests = {path: digest_of(data) for path, data in files.items()} if promised else {}
    if entry.files[0].digest is not None:
        digests[SKILL_MD] = verify_file(entry, entry.uri, files[SKILL_MD]).digest
    resources = tuple(
        Resource(format_uri(f"{root.path}/{path}", root.scheme), digests.get(path), len(data), path)
        for path, data in sorted(files.items())
    )
    return replace(entry, resources=resources if promised else Partial(resources))


def _absolute(value: object) -> str:
    """The absolute URL: an index may have relative ones."""
    url = as_text(value)
    if not url:
        raise invalid_entry("'url' is missing or not a string", "I1")
    refuse_file(url)  # for archives too, since their URL is requested unchanged
    return url if "://" in url else f"skill://{url.removeprefix('./').lstrip('/')}"


def _digest(value: object) -> str | None:
    """The digest, or ``None`` if it is missing. An invalid digest is an error."""
    return None if value is None else parse_digest(value)
