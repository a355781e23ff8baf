"""Fetches a skill from any catalog: every byte is read and verified before the user is asked (V1, V2, V4).

Exactly the shown bytes are written; nothing is read twice. A skill without digests cannot be pinned and is refused
(V7). So is content that differs from the lock (V3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.catalog.export import check_tree
from skillwire.catalog.skill_content import read_verified
from skillwire.errors import SkillwireError, VerificationError
from skillwire.install.lock import parse_name
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.digest import digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.review import Review, review_entry, with_nested, with_text, with_unread
from skillwire.skill.uri import parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.install.lock import Installed
    from skillwire.install.places import InstallScope
    from skillwire.skill import SkillEntry


@dataclass(frozen=True, slots=True)
class Fetched:
    """A skill that was read and verified, with its review."""

    entry: SkillEntry
    files: Mapping[str, bytes]
    review: Review

    @property
    def name(self) -> str:
        """The name of its folder."""
        return parse_name(self.entry.path.rpartition("/")[2])

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every file."""
        return {path: digest_of(data) for path, data in self.files.items()}


async def fetch(catalog: Catalog, entry: SkillEntry, on_file: Callable[[int], None] | None = None) -> Fetched:
    """Read and verify every file of ``entry``, and search it for hidden text (B6).

    The review includes the requests of nested skills, because they are installed too (A3, A4).
    """
    files = await read_verified(catalog, entry, on_file=on_file)
    review = review_entry(entry)
    for path, data in files.items():
        if len(data) > DEFAULT_LIMITS.max_checked_text:
            review = with_unread(review, path)
            continue
        try:
            review = with_text(review, path, data.decode())
        except UnicodeDecodeError:
            continue
    for path in review.nested:
        try:
            fields = parse_skill_md(files[path]).frontmatter
        except SkillwireError:
            fields = None
        review = with_nested(review, path, fields)
    fetched = Fetched(entry, files, review)
    check_tree(fetched.name, files)  # before the user is asked about files that cannot be written
    return fetched


def promised_digests(entry: SkillEntry) -> dict[str, str]:
    """V7: return the digests of ``entry`` by path, which must cover every file."""
    depth = len(skill_root(parse_uri(entry.uri)).segments)
    found = {"/".join(parse_uri(file.uri).segments[depth:]): file.digest for file in entry.files}
    digests = {path: digest for path, digest in found.items() if digest is not None}
    if not entry.is_complete or len(digests) != len(entry.files):
        raise VerificationError(
            "skill-unverifiable",
            f"{entry.uri!r:.300} does not state the digests of all files, so it cannot be pinned",
            "ask the publisher to state the digests; a host can still load it, with an approval each time",
            rule="V7",
        )
    return digests


def check_pinned(skill: Installed, digests: Mapping[str, str], scope: InstallScope) -> None:
    """V3: refuse served content that differs from the lock."""
    if digests != skill.files:
        paths = sorted(path for path in {*digests, *skill.files} if digests.get(path) != skill.files.get(path))
        raise VerificationError(
            "lock-differs",
            f"{skill.uri!r:.300} differs from the lock: {', '.join(paths):.300}",
            f"see the changes: {scope.command('update', skill.name)}",
            rule="V3",
        )
