"""A skill from any catalog, to be installed: every byte read and verified before anybody is asked (V1, V2, V4).

What is shown to a person is what is written: nothing is read a second time. What promises no content cannot be
pinned and is refused (V7); so is what is not what the lock says (V3).
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
    from skillwire.install.places import Scope
    from skillwire.skill import SkillEntry


@dataclass(frozen=True, slots=True)
class Fetched:
    """A skill that was read and verified, and what there is to know about it before saying yes."""

    entry: SkillEntry
    files: Mapping[str, bytes]
    review: Review

    @property
    def name(self) -> str:
        """What its folder is called."""
        return parse_name(self.entry.path.rpartition("/")[2])

    @property
    def digests(self) -> dict[str, str]:
        """The full set of digests."""
        return {path: digest_of(data) for path, data in self.files.items()}


async def fetch(catalog: Catalog, entry: SkillEntry, on_file: Callable[[int], None] | None = None) -> Fetched:
    """Every file of ``entry``, verified, and looked through for text that people do not see (B6).

    What nested skills ask for is part of the review: they are installed with it (A3, A4).
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
    check_tree(fetched.name, files)  # before a person is asked about what could not be written anyway
    return fetched


def promised_digests(entry: SkillEntry) -> dict[str, str]:
    """V7: the full set of digests that ``entry`` promises, by path; without one there is nothing to pin."""
    depth = len(skill_root(parse_uri(entry.uri)).segments)
    found = {"/".join(parse_uri(file.uri).segments[depth:]): file.digest for file in entry.files}
    digests = {path: digest for path, digest in found.items() if digest is not None}
    if not entry.is_complete or len(digests) != len(entry.files):
        raise VerificationError(
            "skill-unverifiable",
            f"{entry.uri!r:.300} does not promise what its files are, so that nothing could be pinned",
            "it is not installed; a host can ask about it each time: skillwire load",
            rule="V7",
        )
    return digests


def check_pinned(skill: Installed, digests: Mapping[str, str], scope: Scope) -> None:
    """V3: what a server serves now is what the lock says, or it is not installed."""
    if digests != skill.files:
        paths = sorted(path for path in {*digests, *skill.files} if digests.get(path) != skill.files.get(path))
        raise VerificationError(
            "lock-differs",
            f"{skill.uri!r:.300} is not what the lock says: {', '.join(paths):.300}",
            f"look at what changed: {scope.command(f'update {skill.name}')}",
            rule="V3",
        )
