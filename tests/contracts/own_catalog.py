"""A full catalog with public names only, as a third party writes one: skills in a dictionary."""

from collections.abc import Mapping

from skillwire import Catalog, SkillEntry
from skillwire.errors import NotFoundError
from skillwire.lowlevel import build_entry, digest_of, format_uri, page_of, parse_skill_md, parse_uri, skill_md_uri
from skillwire.types import Change, ChangeFeed, ChangeStream, DirectoryChild, Page, SkillFile


class OwnCatalog(Catalog):
    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = dict(files)
        self._feed = ChangeFeed()

    def put(self, path: str, files: Mapping[str, bytes]) -> None:
        """Replace the skill at ``path``. Without files it is removed."""
        uri, is_known = frozenset({skill_md_uri(path)}), f"{path}/SKILL.md" in self._files
        self._files = {name: data for name, data in self._files.items() if not name.startswith(f"{path}/")}
        self._files |= {f"{path}/{name}": data for name, data in files.items()}
        if not files:
            self._feed.publish(Change(removed=uri))
        else:
            self._feed.publish(Change(changed=uri) if is_known else Change(added=uri))

    async def list_skills(self, cursor: str | None = None, limit: int = 100) -> Page[SkillEntry]:
        paths = sorted(name[: -len("/SKILL.md")] for name in self._files if name.endswith("/SKILL.md"))
        return page_of("skills", paths, self._entry, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        path = self._path(uri)
        if path not in self._files or not path.endswith("/SKILL.md"):
            raise NotFoundError("skill-unknown", f"no skill is at {uri!r}")
        return self._entry(path[: -len("/SKILL.md")])

    async def read_file(self, uri: str) -> SkillFile:
        path = self._path(uri)
        if path not in self._files:
            raise NotFoundError("file-unknown", f"no file is at {uri!r}")
        return SkillFile(format_uri(path), self._files[path])

    async def read_directory(self, uri: str, cursor: str | None = None, limit: int = 100) -> Page[DirectoryChild]:
        path = self._path(uri)
        below = {name[len(path) + 1 :]: data for name, data in self._files.items() if name.startswith(f"{path}/")}
        if not below:
            raise NotFoundError("directory-unknown", f"no directory is at {uri!r}")

        def child(name: str) -> DirectoryChild:
            is_directory = name not in below
            size = None if is_directory else len(below[name])
            return DirectoryChild(format_uri(f"{path}/{name}"), name, is_directory, size)

        return page_of(f"directory {path}", sorted({name.split("/")[0] for name in below}), child, cursor, limit)

    def changes(self) -> ChangeStream:
        return self._feed.subscribe()

    def _entry(self, path: str) -> SkillEntry:
        files = {name[len(path) + 1 :]: data for name, data in self._files.items() if name.startswith(f"{path}/")}
        facts = [(name, digest_of(data), len(data)) for name, data in files.items()]
        return build_entry(path, parse_skill_md(files["SKILL.md"]).frontmatter, facts)

    def _path(self, uri: str) -> str:
        parsed = parse_uri(uri)
        if parsed.scheme != "skill":
            raise NotFoundError("skill-unknown", f"no skill is at {uri!r}")
        return parsed.path
