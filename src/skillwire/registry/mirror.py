"""Copies skills of any catalog into a namespace of a registry.

A skill keeps its path, below the namespace. Its files are verified (V1, V2, V4). Only those that the namespace
does not have are read and uploaded. The digest of the content decides whether there is something to do. So a
repeat changes nothing, and finishes what was interrupted. A deleted or declined version is not published again.

The registry puts the versions in quarantine: in every namespace another person has to approve them. Each version
records where it comes from. What the upstream no longer has is reported, and never removed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from skillwire.catalog.packer import tree_of
from skillwire.catalog.verification import check_promises, read_verified_file
from skillwire.errors import SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.registry.model import ManifestFile, build_manifest, parse_skill_path
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Collection, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.registry.client import RegistryClient
    from skillwire.skill import SkillEntry

MirrorOutcome: TypeAlias = Literal["published", "waits", "unchanged", "refused", "gone"]

ORIGIN: Final = "mirror"
"""The key in the source of a version with the address that it was mirrored from."""

_LONGEST_FACT = 1_000
_PATHS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What happened to one skill. ``review`` is the number of the review that its version waits for."""

    path: str
    outcome: MirrorOutcome
    version: str = ""
    review: int | None = None
    note: str = ""
    error: SkillwireError | None = None


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """Where the skills come from: an address without secrets, and for a repository its commit."""

    address: str
    facts: Mapping[str, str] = field(default_factory=dict[str, str])

    def source_of(self, entry: SkillEntry) -> dict[str, str]:
        """What a version records."""
        found = {ORIGIN: self.address, "uri": entry.uri, **self.facts}
        return {key: _fact(value) for key, value in found.items()}

    def is_source(self, source: Mapping[str, str]) -> bool:
        """Whether a version with this source was mirrored from here."""
        return source.get(ORIGIN) == _fact(self.address)


def _fact(text: str) -> str:
    """A value as a registry accepts it."""
    return "".join(filter(str.isprintable, text))[:_LONGEST_FACT] or "?"


class Mirror:
    """Copies into ``namespace``, or a folder in one (``acme/upstream``)."""

    def __init__(
        self,
        client: RegistryClient,
        namespace: str,
        upstream: MirrorSource,
        *,
        channel: str = "stable",
        quarantine: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._client = client
        self._folder = namespace.strip("/")
        self._namespace = self._folder.partition("/")[0]
        self._upstream = upstream
        self._channel = channel
        self._quarantine = quarantine
        self._limits = limits

    async def copy(
        self, catalog: Catalog, entries: AsyncIterable[SkillEntry], on_skill: Callable[[int], None] | None = None
    ) -> list[Mirrored]:
        """Copy each skill. An error of one does not stop the others; an unreachable place does."""
        done: list[Mirrored] = []
        async for entry in entries:
            path = f"{self._folder}/{entry.path}"
            try:
                done.append(await self._copy(catalog, entry, parse_skill_path(path)))
            except UpstreamError:
                raise
            except SkillwireError as error:
                done.append(Mirrored(path, "refused", error=error))
            if on_skill is not None:
                on_skill(len(done))
        return done

    async def gone(self, known: Collection[str]) -> list[Mirrored]:
        """The skills that were mirrored from here, and are not among those that the upstream has now."""
        found: list[Mirrored] = []
        after = ""
        while True:
            query = {"limit": str(_PATHS_AT_ONCE), **({"after": after} if after else {})}
            paths = (await self._client.call("GET", f"namespaces/{self._namespace}/skills", query=query))["skills"]
            for path in paths:
                if path not in known and path.startswith(f"{self._folder}/"):
                    skill = await self._client.find(f"skills/{path}")
                    newest = None if skill is None else next(iter(skill["versions"]), None)
                    if newest is not None and self._upstream.is_source(newest["source"]):
                        found.append(Mirrored(path, "gone", newest["version"]))
            if len(paths) < _PATHS_AT_ONCE:
                return found
            after = paths[-1]

    async def _copy(self, catalog: Catalog, entry: SkillEntry, path: str) -> Mirrored:
        check_promises(entry, self._limits)
        executables = (await tree_of(catalog, entry)).executables
        manifest = build_manifest(
            {},
            (
                ManifestFile(file.path, file.digest or "", file.size or 0, file.path in executables)
                for file in entry.files
            ),
        )
        known = await self._client.find(f"skills/{path}")
        for line in () if known is None else known["versions"]:
            if line["digest"] == manifest.digest:
                return self._unchanged(path, line)
        data = await self._upload(catalog, entry)
        files = [
            {
                "path": file.path,
                "digest": file.digest,
                "size": data.get(file.path, file.size),
                "executable": file.executable,
            }
            for file in manifest.files
        ]
        body = {
            "files": files,
            "channel": self._channel,
            "quarantine": self._quarantine,
            "source": self._upstream.source_of(entry),
        }
        made = await self._client.call("POST", f"skills/{path}/-/versions", body)
        outcome: MirrorOutcome = "published" if made["waits"] is None else "waits"
        return Mirrored(path, outcome, made["version"], made["waits"], made["note"])

    async def _upload(self, catalog: Catalog, entry: SkillEntry) -> dict[str, int]:
        """Read, verify and upload the missing files. The ``SKILL.md`` is always read, for its fields (V4)."""
        digests = sorted({file.digest for file in entry.files if file.digest is not None})
        where = f"namespaces/{self._namespace}/blobs"
        missing = set((await self._client.call("POST", f"{where}/missing", {"digests": digests}))["missing"])
        sizes: dict[str, int] = {}
        for file in entry.files:
            if file.digest is not None and (file.digest in missing or file.path == SKILL_MD or file.size is None):
                data = await read_verified_file(catalog, entry, file, self._limits)
                sizes[file.path] = len(data)
                if file.digest in missing:
                    await self._client.upload(self._namespace, file.digest, data)
                    missing.discard(file.digest)
        return sizes

    def _unchanged(self, path: str, line: Mapping[str, Any]) -> Mirrored:
        """The registry has this content: it is not published again, whatever became of it."""
        version, channels = line["version"], line["channels"]
        if line["deleted"] is not None:
            note = f"deleted here: {line['deleted']}"
        elif line["yanked"] is not None:
            note = f"yanked here: {line['yanked']}"
        elif not line["approved"]:
            note = "not approved"
        elif self._channel not in channels:
            note = f"the channel {self._channel} has another version"
        else:
            note = ""
        return Mirrored(path, "unchanged", version, note=note)
