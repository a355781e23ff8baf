"""The ``index`` dialect: ``skill://index.json`` of both generations, and packed skills (I1–I3).

Listing reads the index and nothing else (V5). An entry of the older generation has a name, a description and a
URL; one of the newer generation has the frontmatter and the digest of its ``SKILL.md``. Neither lists a skill's
files, so the entries are partial. Getting a skill that is packed fetches and unpacks the archive, in memory; if
the index gave the archive's digest, every file in it is promised by that, and the entry is complete.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from skillwire.catalog.contract import DirectoryChild
from skillwire.client.dialects.contract import Children, Dialect, root_of
from skillwire.client.dialects.plain import entry_from_skill_md
from skillwire.client.dialects.requests import check_size, read_content, read_if_exists
from skillwire.client.shapes import as_list, as_object, as_text, parse_json
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.archive import archive_format, archive_root, unpack_tree
from skillwire.skill.digest import digest_of, parse_digest
from skillwire.skill.entry import Partial, Resource, SkillEntry, check_frontmatter_size, check_name, invalid_entry
from skillwire.skill.uri import SKILL_MD, SkillUri, format_uri, parse_uri, refuse_file, skill_root
from skillwire.skill.verify import verify_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillwire.client.connection import Connection
    from skillwire.skill import Diagnostic
    from skillwire.skill.archive import Unpacked

INDEX_URI = "skill://index.json"
_TEMPLATE = "mcp-resource-template"
_OTHER_DIALECT = "the server may speak another dialect; without one that is named, it is found out"


@dataclass(frozen=True, slots=True)
class Archive:
    """A packed skill: where it is, of which kind, and what its bytes hash to if the index says so."""

    uri: str
    media_type: str | None
    digest: str | None


@dataclass(frozen=True, slots=True)
class IndexedSkill:
    """One entry of the index, and the archive that holds the whole skill, if there is one.

    ``has_url`` says that the index names the ``SKILL.md`` itself, and not only an archive.
    """

    entry: SkillEntry
    archive: Archive | None = None
    has_url: bool = True


class IndexDialect(Dialect):
    """A server with a ``skill://index.json``."""

    name = "index"

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        super().__init__(connection, report)
        self._skills: dict[SkillUri, IndexedSkill] | None = None  # by root, as last seen
        self._unpacked: OrderedDict[Archive, Unpacked] = OrderedDict()  # used last stands last

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """The index, as one page."""
        yield [skill.entry for skill in (await self._load()).values()]

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry from the index as it is now; a packed skill is fetched and unpacked for it.

        What is not in the index is asked for: a template makes skills that no index lists.
        """
        skill = (await self._load()).get(root_of(uri))
        if skill is None:  # made from a template, or named in the instructions (I5): it speaks for itself
            return await entry_from_skill_md(self.connection, uri)
        if skill.archive is None:
            return skill.entry
        if skill.archive.digest is None:
            self._unpacked.pop(skill.archive, None)  # nothing says whether it is still the same
        return _with_files(skill.entry, (await self._tree(skill.archive)).files, skill.archive)

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002
        """From the archive if the skill is packed, else as any resource."""
        place = parse_uri(uri)
        packed = await self._packed(place, len(place.segments) - 1)
        if packed is None:
            return await read_content(self.connection, uri, at_most)
        archive, path = packed
        data = (await self._tree(archive)).files.get(path)
        if data is None:
            raise NotFoundError(
                "file-unknown",
                f"the archive has no file for {uri!r:.300}",
                "get the skill: it lists its files",
            )
        check_size(len(data), uri, at_most)
        return data

    async def read_directory(self, uri: str) -> Children:
        """From the archive if the skill is packed: with executable files, and with empty folders."""
        place = parse_uri(uri.removesuffix("/"))
        packed = await self._packed(place, len(place.segments))
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
                f"the archive has no folder for {uri!r:.300}",
                "get the skill: it lists its files",
            )
        return Children(children[name] for name in sorted(children))

    async def _packed(self, place: SkillUri, deepest: int) -> tuple[Archive, str] | None:
        """The archive of the innermost skill around ``place``, if that one is packed, and the path inside it."""
        skills = self._skills if self._skills is not None else await self._load()
        for depth in range(deepest, 0, -1):
            skill = skills.get(SkillUri(place.scheme, place.segments[:depth]))
            if skill is not None and skill.archive is not None:
                return skill.archive, "/".join(place.segments[depth:])
        return None

    async def _load(self) -> dict[SkillUri, IndexedSkill]:
        data = await read_if_exists(self.connection, INDEX_URI, self.limits.max_index_bytes)
        if data is None:
            raise ProtocolError("index-missing", f"the server has no {INDEX_URI}", _OTHER_DIALECT, rule="I1")
        skills: dict[SkillUri, IndexedSkill] = {}
        for item in parse_index(data, self.limits):
            try:
                skill = parse_index_entry(item, self.limits)
                root = skill_root(parse_uri(skill.entry.uri))
                skills[root] = _merged(skills[root], skill) if root in skills else skill
            except FormatError as error:
                self.leave_out(error, item.get("url"))
        self._skills = skills
        return skills

    async def _tree(self, archive: Archive) -> Unpacked:
        """What an archive holds, fetched once; the ones used last are kept, up to the size of one skill."""
        tree = self._unpacked.pop(archive, None)
        if tree is None:
            form = archive_format(archive.uri, archive.media_type)
            data = await read_content(self.connection, archive.uri, self.limits.max_archive_bytes)
            if archive.digest is not None and digest_of(data) != archive.digest:
                raise VerificationError(
                    "digest-mismatch",
                    f"the archive {archive.uri!r:.300} is {digest_of(data)}, the index says {archive.digest}",
                    "read the index again",
                    rule="V1",
                )
            tree = await to_thread.run_sync(unpack_tree, data, form, self.limits)  # a hostile one takes a while
        self._unpacked[archive] = tree
        while len(self._unpacked) > 1 and self._held() > self.limits.max_skill_bytes:
            self._unpacked.popitem(last=False)
        return tree

    def _held(self) -> int:
        return sum(len(data) for tree in self._unpacked.values() for data in tree.files.values())


def _merged(first: IndexedSkill, second: IndexedSkill) -> IndexedSkill:
    """Some servers list a skill once as a file and once packed. Anything else that comes twice is a mistake."""
    plain, packed = (first, second) if first.has_url else (second, first)
    if plain.archive is not None or packed.has_url:
        raise FormatError(
            "entry-repeated",
            "the URI is listed twice; the first one counts",
            "the server has to be corrected",
            rule="E5",
        )
    entry = plain.entry
    if packed.entry.whole_frontmatter and not entry.whole_frontmatter:
        entry = replace(packed.entry, resources=entry.resources)
    return IndexedSkill(entry, packed.archive)


def parse_index(data: bytes, limits: Limits = DEFAULT_LIMITS) -> list[dict[str, Any]]:
    """The entries of a ``skill://index.json``, unchecked (I1)."""
    try:
        document = parse_json(data, INDEX_URI, limits)
    except ValueError as error:
        raise ProtocolError("index-invalid", f"{INDEX_URI} is not JSON", _OTHER_DIALECT, rule="I1") from error
    skills = as_object(document).get("skills")
    if not isinstance(skills, list):
        raise ProtocolError("index-invalid", f"{INDEX_URI} has no list of skills", _OTHER_DIALECT, rule="I1")
    items = as_list(cast("object", skills))
    if len(items) > limits.max_entries:
        raise LimitError(
            "listing-too-long",
            f"{INDEX_URI} has more than {limits.max_entries} entries",
            "raise Limits.max_entries if you trust the server that far",
            rule="B3",
        )
    return [as_object(item) for item in items]


def parse_index_entry(item: dict[str, Any], limits: Limits = DEFAULT_LIMITS) -> IndexedSkill:
    """An entry of either generation; ``FormatError`` says why it cannot be used."""
    if item.get("type") == _TEMPLATE:
        raise FormatError(
            "entry-template",
            "the entry is a template: its skills are made from values that a person chooses",
            "complete the template, then get the skill by its URI",
            rule="I1",
        )
    if item.get("type", "skill-md") not in ("skill-md", "archive"):
        raise FormatError(
            "entry-type-unknown",
            f"the entry is of the unknown type {item['type']!r:.80}, and is skipped",
            "a newer version of skillwire may know it",
            rule="I1",
        )
    skill = _newer(item) if isinstance(item.get("frontmatter"), dict) else _older(item)
    check_frontmatter_size(skill.entry.frontmatter, limits)
    return skill


def _newer(item: dict[str, Any]) -> IndexedSkill:
    """``url`` and ``digest`` are of the ``SKILL.md``; a skill that is only packed has neither.

    Where one document serves both generations, a skill of the type ``archive`` has those of an archive.
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
    """Some servers leave out name and description; the name is in the URL."""
    archive = _archive(item) if item.get("type") == "archive" else None
    uri = _absolute(item.get("url")) if archive is None else _unpacked_uri(archive)
    fields = {"name": skill_root(parse_uri(uri)).segments[-1], "description": ""}
    fields |= {key: item[key] for key in fields if key in item}
    digest = _digest(item.get("digest")) if archive is None else None
    return IndexedSkill(_entry(uri, fields, digest, whole=False), archive, has_url=archive is None)


def _archive(item: dict[str, Any]) -> Archive:
    return Archive(_absolute(item.get("url")), as_text(item.get("mimeType")) or None, _digest(item.get("digest")))


def _unpacked_uri(archive: Archive) -> str:
    return f"{archive_root(archive.uri)}/{SKILL_MD}"


def _entry(uri: str, frontmatter: dict[str, Any], digest: str | None, *, whole: bool) -> SkillEntry:
    root = skill_root(parse_uri(uri))
    if frontmatter.get("name") != root.segments[-1]:
        raise invalid_entry(f"the name {frontmatter.get('name')!r:.80} differs from the URI's last segment", "U3")
    check_name(root.segments[-1], "I1")
    if not isinstance(frontmatter.get("description"), str):
        raise invalid_entry("'description' is missing or not text", "E1")
    return SkillEntry(uri, frontmatter, Partial((Resource(uri, digest, None),)), whole_frontmatter=whole)


def _with_files(entry: SkillEntry, files: dict[str, bytes], archive: Archive) -> SkillEntry:
    """All files of a packed skill. They are promised if the archive's digest was (I2)."""
    root = skill_root(parse_uri(entry.uri))
    promised = archive.digest is not None
    digests = {path: digest_of(data) for path, data in files.items()} if promised else {}
    if entry.files[0].digest is not None:
        digests[SKILL_MD] = verify_file(entry, entry.uri, files[SKILL_MD]).digest
    resources = tuple(
        Resource(format_uri(f"{root.path}/{path}", root.scheme), digests.get(path), len(data))
        for path, data in sorted(files.items())
    )
    return replace(entry, resources=resources if promised else Partial(resources))


def _absolute(value: object) -> str:
    """An index may write URLs relative to itself."""
    url = as_text(value)
    if not url:
        raise invalid_entry("'url' is missing or not text", "I1")
    refuse_file(url)  # of an archive too: it is read as it stands here
    return url if "://" in url else f"skill://{url.removeprefix('./').lstrip('/')}"


def _digest(value: object) -> str | None:
    """A digest if the index gives one; a broken one is an error, not a missing one."""
    return None if value is None else parse_digest(value)
