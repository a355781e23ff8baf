"""What a registry states about a version of a skill: its number, its own URI, and whether it was withdrawn (R4).

A server sends it in ``_meta``, beside the entry and never in it: clients that forbid unknown fields accept the
entry, and no digest or approval depends on it. To a client it is untrusted text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from skillwire.skill.entry import Json, SkillEntry

VERSION: Final = "io.github.skillwire/version"
"""The key in ``_meta`` of a skill."""

VERSIONS: Final = "io.github.skillwire/versions"
"""The key in ``_meta`` of a listing: the same for each of its skills, by the URI of the skill."""

_LONGEST = 2_000


class VersionStatus(NamedTuple):
    """The status of a version. An empty text means that the server stated nothing."""

    number: str = ""
    uri: str = ""  # of exactly this version, which still answers when ``stable`` is another one
    yanked: str = ""  # why
    deprecated: str = ""  # why the skill should not be used any more
    instead: str = ""  # the path of the skill to use instead

    def to_json(self) -> dict[str, Json]:
        """What is stated, as JSON."""
        return {key: value for key, value in self._asdict().items() if value}


UNVERSIONED: Final = VersionStatus()
"""For a skill of which no version is stated."""


def parse_version_status(value: object) -> VersionStatus:
    """The status in the JSON of a server. Values that are not text, or too long, are omitted."""
    fields = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    texts = {name: fields.get(name) for name in VersionStatus._fields}
    return VersionStatus(
        **{name: text for name, text in texts.items() if isinstance(text, str) and len(text) <= _LONGEST}
    )


def version_status(entry: SkillEntry) -> VersionStatus:
    """What is stated about the version of ``entry``."""
    return parse_version_status(entry.meta.meta.get(VERSION))


def with_version_status(entry: SkillEntry, status: VersionStatus) -> SkillEntry:
    """``entry`` with what is stated about its version."""
    meta = {key: value for key, value in entry.meta.meta.items() if key != VERSION}
    if stated := status.to_json():
        meta[VERSION] = stated
    elif VERSION not in entry.meta.meta:
        return entry
    return replace(entry, meta=replace(entry.meta, meta=meta))
