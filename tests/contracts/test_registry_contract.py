"""What every registry's store guarantees, sentence by sentence of ``registry/contract.py``, on both engines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from registries import ADA, ADMIN, BEN, EVE, NOW, RegistryBuilder, by, manifest_of, person, small_skill
from skillwire.errors import (
    ApprovalError,
    ConflictError,
    FormatError,
    LimitError,
    NotFoundError,
    SkillwireError,
    VerificationError,
)
from skillwire.registry.contract import Draft, TokenInfo, TrustedPublisher
from skillwire.registry.model import ANONYMOUS, Identity, ManifestFile, Namespace, Quota, SkillRef, build_manifest
from skillwire.skill import digest_of
from skillwire.skill.archive import unpack

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from skillwire.registry.contract import Published, RegistryStore, Release, VersionLine

pytestmark = pytest.mark.anyio

DAY = 24 * 3600.0
REFUNDS = SkillRef("acme/refunds")


@pytest.fixture
async def build(registry: RegistryStore) -> RegistryBuilder:
    """A registry with the private namespace ``acme``: ada owns it, ben publishes, rita reviews, eve reads."""
    builder = RegistryBuilder(registry)
    await builder.namespace("acme", ben="publisher", rita="reviewer", eve="reader")
    return builder


RITA, MALLORY = person("rita"), person("mallory")


def versions(lines: Iterable[VersionLine]) -> list[str]:
    return [line.version for line in lines]


def paths(releases: Iterable[Release]) -> list[str]:
    return [release.path for release in releases]


async def stable(store: RegistryStore, path: str = "acme/refunds", who: Identity = ADA) -> str | None:
    release = await store.release(who, SkillRef(path))
    return None if release is None else release.version


async def refused(kind: type[SkillwireError], reference: str, call: Awaitable[object]) -> SkillwireError:
    with pytest.raises(kind) as caught:
        await call
    assert caught.value.reference == reference
    assert caught.value.hint
    return caught.value


# Archives


async def test_a_version_has_one_archive_from_its_publication_to_its_end(build: RegistryBuilder) -> None:
    store = build.store
    await build.publish("acme/refunds", "1.0.0")
    await build.publish("acme/refunds", "1.1.0")
    release = await store.release(ADA, REFUNDS)
    assert release is not None
    assert release.archive is not None
    data = await store.archive(EVE, "acme/refunds", release.archive)
    assert data is not None
    assert digest_of(data) == release.archive
    assert unpack(data, "zip") == small_skill("refunds", "Version 1.1.0.\n")
    assert await store.archive(MALLORY, "acme/refunds", release.archive) is None
    assert await store.archive(ADA, "acme/other", release.archive) is None
    await store.yank(by(ADA), "acme/refunds", "1.1.0", "wrong")
    assert await store.archive(EVE, "acme/refunds", release.archive) == data
    await store.delete(by(ADMIN), "acme/refunds", "1.1.0", "secret")
    assert await store.archive(ADMIN, "acme/refunds", release.archive) is None
    assert [fault async for fault in store.check()] == []


async def test_before_its_approval_an_archive_is_for_those_who_work_in_the_namespace(
    build: RegistryBuilder,
) -> None:
    await build.store.change_namespace(by(ADA), Namespace("acme", reviewed=True))
    await build.publish("acme/refunds", "1.0.0")
    release = await build.store.release(RITA, SkillRef("acme/refunds", version="1.0.0"))
    assert release is not None
    assert release.archive is not None
    assert await build.store.archive(RITA, "acme/refunds", release.archive) is not None
    assert await build.store.archive(EVE, "acme/refunds", release.archive) is None


# "Each call is one transaction", and the audit log


async def test_a_change_appends_one_line_with_who_what_from_where_and_before(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await build.publish("acme/refunds", "1.1.0", who=BEN)
    await build.store.yank(by(ADA, NOW + 5), "acme/refunds", "1.1.0", "wrong sums")
    yanked, published, first, *_ = await build.store.audit(by(ADA), namespace="acme")
    assert (first.what, first.version, first.facts["before"]) == ("published", "1.0.0", None)
    assert (published.by, published.facts["before"], published.facts["channel"]) == ("user:ben", "1.0.0", "stable")
    assert (yanked.by, yanked.at, yanked.address, yanked.path) == ("user:ada", NOW + 5, "local", "acme/refunds")
    assert yanked.facts["channels"] == {"stable": "1.0.0"}
    assert yanked.number == await build.store.clock()


async def test_a_refused_change_leaves_no_line_and_no_skill(build: RegistryBuilder) -> None:
    before = await build.store.clock()
    manifest = manifest_of("refunds", small_skill("refunds"))
    draft = Draft("acme/refunds", manifest, "1.0.0")
    await refused(NotFoundError, "upload-missing", build.store.publish(by(ADA), draft))
    assert await build.store.clock() == before
    assert await build.store.history(ADA, "acme/refunds") == []
    assert await build.publish("acme/refunds/inside", "1.0.0")  # the path is still free


async def test_the_clock_grows_with_each_change_and_changes_come_in_its_order(build: RegistryBuilder) -> None:
    start = await build.store.clock()
    for number in range(3):
        await build.publish("acme/refunds", f"1.{number}.0")
    lines = await build.store.changes(start)
    assert [line.number for line in lines] == [start + 1, start + 2, start + 3]
    assert [line.version for line in lines] == ["1.0.0", "1.1.0", "1.2.0"]
    assert await build.store.changes(start + 1, limit=1) == lines[1:2]
    assert await build.store.changes(await build.store.clock()) == []


async def test_what_changes_nothing_is_no_change(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await build.store.yank(by(ADA), "acme/refunds", "1.0.0", "wrong")
    await build.store.deprecate(by(ADA), "acme/refunds", "old")
    before = await build.store.clock()
    await build.publish("acme/refunds", "1.0.0")
    await build.store.yank(by(ADA), "acme/refunds", "1.0.0", "wrong")
    await build.store.deprecate(by(ADA), "acme/refunds", "old")
    await build.store.set_listed(by(ADA), "acme/refunds", listed=True)
    await build.store.grant(by(ADA), "acme", "user:ben", "publisher")
    await build.store.change_namespace(by(ADA), Namespace("acme"))
    assert not (await build.store.move_channel(by(ADA), "acme/refunds", "beta", None)).moved
    assert await build.store.clock() == before


# "A version never changes"


async def test_the_same_content_under_its_number_is_unchanged(build: RegistryBuilder) -> None:
    first = await build.publish("acme/refunds", "1.0.0")
    again = await build.publish("acme/refunds", "1.0.0")
    assert (first.outcome, first.moved) == ("created", True)
    assert (again.outcome, again.version, again.moved) == ("unchanged", "1.0.0", False)
    assert versions(await build.store.history(ADA, "acme/refunds")) == ["1.0.0"]


async def test_other_content_under_a_used_number_is_a_conflict_whose_hint_has_a_free_number(
    build: RegistryBuilder,
) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await build.publish("acme/refunds", "1.4.2")
    error = await refused(ConflictError, "version-taken", build.publish("acme/refunds", "1.0.0", body="Other.\n"))
    assert "1.4.3" in error.hint
    assert await build.store.read(ADA, SkillRef("acme/refunds", "1.0.0"), "SKILL.md") == small_skill(
        "refunds", "Version 1.0.0.\n"
    ).get("SKILL.md")


async def test_an_executable_bit_is_content(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    release = await build.store.release(ADA, REFUNDS)
    assert release is not None
    files = [replace(file, executable=True) for file in release.manifest.files]
    draft = Draft("acme/refunds", build_manifest(release.manifest.frontmatter, files), "1.0.0")
    await refused(ConflictError, "version-taken", build.store.publish(by(ADA), draft))


async def test_without_a_number_the_next_patch_is_used_and_the_newest_content_again_is_unchanged(
    build: RegistryBuilder,
) -> None:
    async def publish(body: str) -> tuple[str, str]:
        published = await build.publish("acme/refunds", body=body)
        return published.outcome, published.version

    assert await publish("One.\n") == ("created", "0.1.0")
    assert await publish("Two.\n") == ("created", "0.1.1")
    assert await publish("Two.\n") == ("unchanged", "0.1.1")
    assert await publish("One.\n") == ("created", "0.1.2")  # the old content is news again
    await build.publish("acme/refunds", "2.0.0-rc.1")
    assert await publish("Three.\n") == ("created", "2.0.0")


async def test_metadata_version_is_the_number_and_another_one_is_refused(build: RegistryBuilder) -> None:
    files = small_skill("refunds", version="3.1.0")
    await build.upload("acme", files)
    draft = Draft("acme/refunds", manifest_of("refunds", files, "3.1.0"))
    other = replace(draft, version="3.1.1")
    await refused(FormatError, "version-differs", build.store.publish(by(ADA), other))
    assert (await build.store.publish(by(ADA), draft)).version == "3.1.0"
    assert (await build.store.publish(by(ADA), replace(draft, version="3.1.0"))).outcome == "unchanged"


@pytest.mark.parametrize(
    ("path", "version", "reference"),
    [
        ("acme", "1.0.0", "skill-path-invalid"),
        ("acme/@beta", "1.0.0", "skill-path-invalid"),
        ("acme/Refunds", "1.0.0", "skill-path-invalid"),
        ("acme/refunds", "1.0", "version-invalid"),
        ("acme/refunds", "1.0.0+build", "version-invalid"),
    ],
)
async def test_names_and_numbers_are_checked(
    build: RegistryBuilder, path: str, version: str, reference: str
) -> None:
    manifest = manifest_of("refunds", small_skill("refunds"))
    await refused(FormatError, reference, build.store.publish(by(ADA), Draft(path, manifest, version)))


async def test_a_manifest_must_fit_its_path_its_digest_and_the_uploaded_bytes(build: RegistryBuilder) -> None:
    files = small_skill("refunds")
    await build.upload("acme", files)
    good = manifest_of("refunds", files)

    async def publish(manifest: Any) -> Published:
        return await build.store.publish(by(ADA), Draft("acme/refunds", manifest))

    await refused(FormatError, "name-mismatch", publish(manifest_of("other", files)))
    await refused(VerificationError, "manifest-digest", publish(replace(good, digest=digest_of(b""))))
    await refused(FormatError, "manifest-invalid", publish(build_manifest(good.frontmatter, good.files[1:])))
    twice = build_manifest(good.frontmatter, [*good.files, good.files[0]])
    await refused(FormatError, "manifest-invalid", publish(twice))
    larger = build_manifest(good.frontmatter, [replace(file, size=file.size + 1) for file in good.files])
    await refused(VerificationError, "manifest-size", publish(larger))
    extra = [*good.files, ManifestFile("x.txt", digest_of(b"never uploaded"), 14)]
    await refused(NotFoundError, "upload-missing", publish(build_manifest(good.frontmatter, extra)))
    assert (await publish(good)).outcome == "created"


@pytest.mark.parametrize("other", ["acme/refunds/inside", "acme/refunds/a/b"])
async def test_a_skill_is_never_inside_another_one(build: RegistryBuilder, other: str) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await refused(ConflictError, "skill-nested", build.publish(other, "1.0.0"))
    await build.publish(other.replace("refunds", "around"), "1.0.0")
    await refused(ConflictError, "skill-nested", build.publish("acme/around", "1.0.0"))
    await build.publish("acme/refunds-too", "1.0.0")
    await build.publish("acme/aroun", "1.0.0")


# Channels


async def test_a_publication_moves_its_channel_only_forwards(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.2.0")
    older = await build.publish("acme/refunds", "1.1.0")
    assert (older.outcome, older.moved) == ("created", False)
    assert "1.2.0" in older.note
    assert await stable(build.store) == "1.2.0"
    assert (await build.publish("acme/refunds", "1.10.0")).moved
    assert await stable(build.store) == "1.10.0"


async def test_a_prerelease_never_becomes_stable(build: RegistryBuilder) -> None:
    first = await build.publish("acme/refunds", "1.0.0-rc.1")
    assert (first.moved, await stable(build.store)) == (False, None)
    assert first.note
    call = build.store.move_channel(by(ADA), "acme/refunds", "stable", "1.0.0-rc.1")
    await refused(ConflictError, "version-prerelease", call)
    assert (await build.publish("acme/refunds", "1.0.0-rc.2", channel="beta")).moved
    assert await stable(build.store) is None
    beta = await build.store.release(ADA, SkillRef("acme/refunds", channel="beta"))
    assert beta is not None
    assert (beta.version, beta.channels) == ("1.0.0-rc.2", ("beta",))


async def test_a_publication_without_a_channel_moves_none(build: RegistryBuilder) -> None:
    assert not (await build.publish("acme/refunds", "1.0.0", channel=None)).moved
    assert await stable(build.store) is None
    assert await build.store.release(ADA, SkillRef("acme/refunds", "1.0.0")) is not None
    assert await build.store.skills(ADA) == []


async def test_a_channel_is_promoted_rolled_back_and_removed(build: RegistryBuilder) -> None:
    for version in ("1.0.0", "1.1.0"):
        await build.publish("acme/refunds", version)

    async def move(channel: str, version: str | None) -> bool:
        return (await build.store.move_channel(by(BEN), "acme/refunds", channel, version)).moved

    assert await move("stable", "1.0.0")
    assert await stable(build.store) == "1.0.0"
    assert not await move("stable", "1.0.0")
    assert await move("beta", "1.1.0")
    assert [line.channels for line in await build.store.history(ADA, "acme/refunds")] == [("beta",), ("stable",)]
    assert await move("stable", None)
    assert await stable(build.store) is None
    assert await build.store.skills(ADA) == []
    assert await move("stable", "1.1.0")
    assert (await build.store.skills(ADA))[0].channels == ("beta", "stable")
    await refused(NotFoundError, "version-not-found", move("stable", "9.9.9"))
    await refused(FormatError, "channel-invalid", move("1beta", "1.0.0"))


# Yanked, deprecated, unlisted, deleted


async def test_channels_leave_a_yanked_version_and_pins_still_find_it(build: RegistryBuilder) -> None:
    for version in ("1.0.0", "1.1.0", "1.2.0-rc.1", "1.2.0"):
        await build.publish("acme/refunds", version)
    await build.store.move_channel(by(ADA), "acme/refunds", "beta", "1.2.0")
    await build.store.yank(by(BEN), "acme/refunds", "1.1.0", "wrong sums")
    assert await stable(build.store) == "1.2.0"
    await build.store.yank(by(BEN), "acme/refunds", "1.2.0", "worse sums")
    assert await stable(build.store) == "1.0.0"  # 1.1.0 is yanked, and the pre-release is never stable
    beta = await build.store.release(ADA, SkillRef("acme/refunds", channel="beta"))
    assert beta is not None
    assert beta.version == "1.2.0-rc.1"
    pinned = await build.store.release(EVE, SkillRef("acme/refunds", "1.2.0"))
    assert pinned is not None
    assert pinned.yanked == "worse sums"
    assert await build.store.read(EVE, SkillRef("acme/refunds", "1.2.0"), "SKILL.md")
    call = build.store.move_channel(by(ADA), "acme/refunds", "stable", "1.2.0")
    await refused(ConflictError, "version-yanked", call)
    await build.store.yank(by(ADA), "acme/refunds", "1.2.0", None)
    assert await stable(build.store) == "1.0.0"
    assert (await build.store.move_channel(by(ADA), "acme/refunds", "stable", "1.2.0")).moved
    lines = {line.version: line.yanked for line in await build.store.history(ADA, "acme/refunds")}
    assert lines == {"1.0.0": None, "1.1.0": "wrong sums", "1.2.0-rc.1": None, "1.2.0": None}


async def test_a_channel_without_another_version_is_removed_by_a_yank(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await build.store.yank(by(ADA), "acme/refunds", "1.0.0", "all wrong")
    assert await build.store.skills(ADA) == []
    again = await build.publish("acme/refunds", "1.0.0")
    assert (again.outcome, again.moved) == ("unchanged", False)
    assert "all wrong" in again.note


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001])
async def test_a_yank_and_a_deletion_need_a_reason(build: RegistryBuilder, reason: str) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await refused(FormatError, "reason-invalid", build.store.yank(by(ADA), "acme/refunds", "1.0.0", reason))
    await refused(FormatError, "reason-invalid", build.store.delete(by(ADMIN), "acme/refunds", "1.0.0", reason))


async def test_a_deprecation_is_on_every_version_and_can_be_undone(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await build.publish("acme/refunds", "1.1.0")
    await build.store.deprecate(by(BEN), "acme/refunds", "moved\0\ud800", "acme/money-back")
    for ref in (REFUNDS, SkillRef("acme/refunds", "1.0.0")):
        release = await build.store.release(ADA, ref)
        assert release is not None
        assert (release.deprecated, release.instead) == ("moved\0\ud800", "acme/money-back")
    await build.store.deprecate(by(BEN), "acme/refunds", None)
    release = await build.store.release(ADA, REFUNDS)
    assert release is not None
    assert (release.deprecated, release.instead) == (None, None)


async def test_an_unlisted_skill_is_served_and_found_nowhere(build: RegistryBuilder) -> None:
    await build.publish("acme/billing/refunds", "1.0.0", listed=False)
    store = build.store
    release = await store.release(EVE, SkillRef("acme/billing/refunds"))
    assert release is not None
    assert not release.listed
    assert await store.around(EVE, "acme/billing/refunds/notes/reply.md") == release

    async def found() -> list[bool]:
        return [
            bool(await store.skills(EVE)),
            bool(await store.children(EVE, "")),
            bool(await store.children(EVE, "acme/billing")),
            bool(await store.beginning(EVE, "ac")),
            bool(await store.named(EVE, ["refunds"])),
            bool(await store.search(EVE, ["refunds"])),
        ]

    assert await found() == [False] * 6
    await store.set_listed(by(BEN), "acme/billing/refunds", listed=True)
    assert await found() == [True] * 6
    await build.publish("acme/billing/refunds", "1.1.0", listed=False)  # only a new skill takes this
    assert await found() == [True] * 6


async def test_a_deleted_version_is_a_tombstone_and_its_number_is_never_used_again(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    secret = small_skill("refunds", "The secret is 42.\n")["SKILL.md"]
    await build.publish("acme/refunds", "1.1.0", body="The secret is 42.\n")
    await refused(
        ApprovalError, "registry-forbidden", build.store.delete(by(ADA), "acme/refunds", "1.1.0", "a secret")
    )
    await build.store.delete(by(ADMIN), "acme/refunds", "1.1.0", "a secret")
    await build.store.delete(by(ADMIN), "acme/refunds", "1.1.0", "a secret")
    assert await stable(build.store) == "1.0.0"
    pin = SkillRef("acme/refunds", "1.1.0")
    assert await build.store.release(ADMIN, pin) is None
    assert await build.store.read(ADMIN, pin, "SKILL.md") is None
    assert await build.store.missing(by(ADA), "acme", [digest_of(secret)]) == [digest_of(secret)]
    tombstone = (await build.store.history(EVE, "acme/refunds"))[0]
    assert (tombstone.version, tombstone.deleted, tombstone.channels) == ("1.1.0", "a secret", ())
    await refused(
        ConflictError, "version-deleted", build.publish("acme/refunds", "1.1.0", body="The secret is 42.\n")
    )
    assert (await build.publish("acme/refunds", body="Next.\n")).version == "1.1.1"
    assert [fault async for fault in build.store.check()] == []


async def test_a_deletion_keeps_bytes_that_other_versions_or_namespaces_use(build: RegistryBuilder) -> None:
    await build.namespace("other")
    await build.publish("acme/refunds", "1.0.0", body="Same.\n")
    await build.publish("acme/refunds", "1.1.0", body="Other.\n")
    await build.publish("other/refunds", "1.0.0", body="Other.\n")
    await build.store.delete(by(ADMIN), "acme/refunds", "1.1.0", "wrong")
    for path in ("acme/refunds", "other/refunds"):
        assert await build.store.read(ADA, SkillRef(path), "notes/reply.md") == b"Dear customer,\n"
    assert b"Other." in (await build.store.read(ADA, SkillRef("other/refunds"), "SKILL.md") or b"")
    assert [fault async for fault in build.store.check()] == []


# Uploads


async def test_only_missing_bytes_are_asked_for(build: RegistryBuilder) -> None:
    one, two = b"one", b"two"
    digests = [digest_of(two), digest_of(one), digest_of(two)]
    assert await build.store.missing(by(BEN), "acme", digests) == digests[:2]
    await build.store.put_blob(by(BEN), "acme", digest_of(one), one)
    await build.store.put_blob(by(BEN), "acme", digest_of(one), one)
    assert await build.store.missing(by(BEN), "acme", digests) == digests[:1]
    assert await build.store.uploaded(by(BEN), "acme", digest_of(one)) == one
    assert await build.store.uploaded(by(BEN), "acme", digest_of(two)) is None


async def test_bytes_of_another_namespace_are_missing_until_they_are_uploaded(build: RegistryBuilder) -> None:
    await build.namespace("other")
    await build.publish("acme/refunds", "1.0.0")
    digest = digest_of(b"Dear customer,\n")
    assert await build.store.missing(by(ADA), "other", [digest]) == [digest]
    assert await build.store.uploaded(by(ADA), "other", digest) is None
    files = small_skill("refunds", "Version 1.0.0.\n")
    draft = Draft("other/refunds", manifest_of("refunds", files), "1.0.0")
    await refused(NotFoundError, "upload-missing", build.store.publish(by(ADA), draft))


async def test_bytes_with_another_digest_are_refused(build: RegistryBuilder) -> None:
    call = build.store.put_blob(by(ADA), "acme", digest_of(b"right"), b"wrong")
    await refused(VerificationError, "blob-digest", call)
    await refused(FormatError, "digest-invalid", build.store.missing(by(ADA), "acme", ["md5:00"]))
    assert await build.store.missing(by(ADA), "acme", [digest_of(b"right")]) == [digest_of(b"right")]


async def test_quotas_are_checked_before_anything_is_stored(build: RegistryBuilder) -> None:
    data = [str(number).encode() * 40 for number in range(3)]
    await build.store.change_namespace(by(ADMIN), Namespace("acme", quota=Quota(skills=1, bytes=420, versions=2)))
    await build.store.put_blob(by(BEN), "acme", digest_of(data[0]), data[0])
    await build.publish("acme/one", "1.0.0")
    await refused(LimitError, "quota-skills", build.publish("acme/two", "1.0.0"))
    await build.publish("acme/one", "1.1.0", body="x")
    await refused(LimitError, "quota-versions", build.publish("acme/one", "1.2.0", body="x"))
    large = b"x" * 300
    await refused(LimitError, "quota-bytes", build.store.put_blob(by(BEN), "acme", digest_of(large), large))
    assert await build.store.missing(by(BEN), "acme", [digest_of(large)]) == [digest_of(large)]
    published = [
        small_skill("one", "Version 1.0.0.\n"),
        small_skill("two", "Version 1.0.0.\n"),
        small_skill("one", "x"),
    ]
    stored = {data[0], *(content for files in published for content in files.values())}
    rest = b"y" * (420 - sum(map(len, stored)))
    await build.store.put_blob(by(BEN), "acme", digest_of(rest), rest)  # now it is full
    await refused(LimitError, "quota-bytes", build.store.put_blob(by(BEN), "acme", digest_of(b"z"), b"z"))
    await build.store.put_blob(by(BEN), "acme", digest_of(data[0]), data[0])  # known bytes need no room
    assert paths(await build.store.skills(ADA)) == ["acme/one"]
    assert [fault async for fault in build.store.check()] == []


async def test_tidy_removes_uploads_that_no_version_used_within_a_day(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    unused, asked_for = b"unused", b"asked for"
    for data in (unused, asked_for):
        await build.store.put_blob(by(ADA), "acme", digest_of(data), data)
    assert await build.store.tidy(NOW + DAY - 1) == 0
    assert await build.store.missing(by(ADA, NOW + DAY / 2), "acme", [digest_of(asked_for)]) == []
    assert await build.store.tidy(NOW + DAY + 1) == 1
    known = [digest_of(unused), digest_of(asked_for)]
    assert await build.store.missing(by(ADA, NOW + DAY), "acme", known) == known[:1]
    assert await build.store.tidy(NOW + 9 * DAY) == 1
    assert await build.store.read(ADA, REFUNDS, "SKILL.md") is not None
    assert [fault async for fault in build.store.check()] == []


# "answers as if everything that this identity may not read did not exist"


async def read_everything(store: RegistryStore, who: Identity, path: str = "acme/refunds") -> list[object]:
    ref, pin = SkillRef(path), SkillRef(path, "1.0.0")
    namespace, _, name = path.partition("/")
    return [
        await store.skills(who),
        await store.skills(who, below=namespace),
        await store.release(who, ref),
        await store.release(who, pin),
        await store.release(who, SkillRef(path, channel="stable")),
        await store.history(who, path),
        await store.read(who, ref, "SKILL.md"),
        await store.read(who, pin, "SKILL.md"),
        await store.around(who, f"{path}/SKILL.md"),
        await store.children(who, ""),
        await store.children(who, namespace),
        await store.beginning(who, namespace[:2]),
        await store.named(who, [name]),
        await store.search(who, [name]),
        await store.namespaces(who),
        await store.namespace(who, namespace),
        await store.actions(who, namespace),
        await store.reviews(who),
    ]


def changes_of(store: RegistryStore, who: Identity, path: str) -> list[Callable[[], Awaitable[object]]]:
    namespace, _, name = path.partition("/")
    actor = by(who)
    manifest = manifest_of(name, small_skill(name))
    return [
        lambda: store.missing(actor, namespace, [digest_of(b"x")]),
        lambda: store.put_blob(actor, namespace, digest_of(b"x"), b"x"),
        lambda: store.uploaded(actor, namespace, digest_of(b"x")),
        lambda: store.publish(actor, Draft(path, manifest, "1.0.0")),
        lambda: store.move_channel(actor, path, "stable", "1.0.0"),
        lambda: store.yank(actor, path, "1.0.0", "wrong"),
        lambda: store.deprecate(actor, path, "old"),
        lambda: store.set_listed(actor, path, listed=False),
        lambda: store.delete(actor, path, "1.0.0", "wrong"),
        lambda: store.change_namespace(actor, Namespace(namespace, public=True)),
        lambda: store.grant(actor, namespace, "user:mallory", "owner"),
        lambda: store.grants(actor, namespace),
        lambda: store.trust(actor, TrustedPublisher(0, namespace, "https://issuer", {"repository_id": "1"})),
        lambda: store.distrust(actor, namespace, 1),
        lambda: store.audit(actor, namespace=namespace),
    ]


@pytest.mark.parametrize(
    "who",
    [
        ANONYMOUS,
        MALLORY,
        replace(ADA, namespace="elsewhere"),
        Identity("jwt:ada", frozenset({"jwt:ada"})),
        replace(ADMIN, namespace="elsewhere"),
    ],
)
async def test_what_a_caller_may_not_read_does_not_exist(build: RegistryBuilder, who: Identity) -> None:
    unknown = [*await read_everything(build.store, who, "nobody/refunds")]
    await build.publish("acme/refunds", "1.0.0")
    found = await read_everything(build.store, who)
    assert found == unknown
    assert not any(found)
    existing = changes_of(build.store, who, "acme/refunds")
    for change, other in zip(existing, changes_of(build.store, who, "nobody/refunds"), strict=True):
        error = await refused(NotFoundError, "namespace-not-found", change())
        absent = await refused(NotFoundError, "namespace-not-found", other())
        assert error.message == absent.message.replace("nobody", "acme")


async def test_a_reader_may_read_and_is_forbidden_to_change(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    found = await read_everything(build.store, EVE)
    assert all(found[:-1])
    before = await build.store.clock()
    for change in changes_of(build.store, EVE, "acme/refunds"):
        await refused(ApprovalError, "registry-forbidden", change())
    assert await build.store.clock() == before


@pytest.mark.parametrize("who", [ANONYMOUS, MALLORY, replace(MALLORY, namespace="elsewhere")])
async def test_everyone_reads_a_public_namespace_and_nobody_else_changes_it(
    build: RegistryBuilder, who: Identity
) -> None:
    await build.publish("acme/refunds", "1.0.0")
    await build.store.change_namespace(by(ADA), Namespace("acme", public=True))
    found = await read_everything(build.store, who)
    assert all(found[:-1])
    assert found[-1] == []  # reviews are for those who work there
    for change in changes_of(build.store, who, "acme/refunds"):
        await refused(ApprovalError, "registry-forbidden", change())
    await build.store.change_namespace(by(ADA), Namespace("acme"))
    assert not any(await read_everything(build.store, who))


@pytest.mark.parametrize(
    ("who", "actions"),
    [
        (EVE, {"read"}),
        (BEN, {"read", "publish"}),
        (RITA, {"read", "review"}),
        (ADA, {"read", "publish", "review", "manage"}),
        (ADMIN, {"read", "publish", "review", "manage"}),
        (person("new", "payments"), {"read", "publish", "review"}),
        (replace(ADA, actions=frozenset({"publish"})), {"read", "publish"}),
        (replace(ADA, actions=frozenset()), {"read"}),
        (replace(EVE, actions=frozenset({"publish", "manage"})), {"read"}),
        (replace(ADA, namespace="acme"), {"read", "publish", "review", "manage"}),
        (replace(ADA, namespace="other"), set()),
        (replace(ADMIN, namespace="acme", actions=frozenset({"review"})), {"read", "review"}),
        (ANONYMOUS, set()),
    ],
)
async def test_roles_and_the_limits_of_a_token_decide_what_a_caller_may_do(
    build: RegistryBuilder, who: Identity, actions: set[str]
) -> None:
    await build.store.grant(by(ADA), "acme", "group:payments", "publisher")
    await build.store.grant(by(ADA), "acme", "user:new", "reviewer")
    assert await build.store.actions(who, "acme") == actions
    assert ((await build.store.namespace(who, "acme")) is not None) == bool(actions)


async def test_a_public_namespace_that_is_also_granted_appears_once(build: RegistryBuilder) -> None:
    await build.store.change_namespace(by(ADA), Namespace("acme", public=True))
    await build.store.grant(by(ADA), "acme", "group:all", "reader")
    await build.publish("acme/one", "1.0.0")
    await build.publish("acme/two", "1.0.0")
    who = person("eve", "all")
    assert paths(await build.store.skills(who)) == ["acme/one", "acme/two"]
    assert paths(await build.store.skills(who, limit=1)) == ["acme/one"]
    assert [each.name for each in await build.store.namespaces(who)] == ["acme"]


# Walks


async def walked(step: Callable[[str], Awaitable[Iterable[str]]]) -> list[str]:
    found: list[str] = []
    while page := list(await step(found[-1] if found else "")):
        found += page
    return found


async def test_pages_are_sorted_by_path_and_complete_for_any_limit(build: RegistryBuilder) -> None:
    names = ["a", "a-b", "a0", "aa", "az", "z"]
    for position, name in enumerate(names):
        await build.namespace(name, public=position % 2 == 0)
        for skill in ("a", "a-b", "a0/x", "b/c/d"):
            await build.publish(f"{name}/{skill}", "1.0.0")
    everything = sorted(f"{name}/{skill}" for name in names for skill in ("a", "a-b", "a0/x", "b/c/d"))
    store = build.store
    for who in (ADA, ADMIN, person("ada", "x", "y")):
        for limit in (1, 2, 3, 5, 100):

            async def skills(after: str, who: Identity = who, limit: int = limit, below: str = "") -> list[str]:
                return paths(await store.skills(who, after, limit, below=below))

            assert await walked(skills) == everything
            expected = [path for path in everything if path.startswith("a-b/")]
            assert await walked(lambda after, skills=skills: skills(after, below="a-b")) == expected
            assert await skills("", below="a-b/a") == ["a-b/a"]
            assert await skills("a-b/a", below="a-b/a") == []
            assert await skills("", below="a-b/b") == ["a-b/b/c/d"]

            async def children(folder: str, after: str, who: Identity = who, limit: int = limit) -> list[str]:
                return list(await store.children(who, folder, after, limit))

            assert await walked(lambda after, children=children: children("", after)) == sorted(names)
            assert await walked(lambda after, children=children: children("a-b", after)) == ["a", "a-b", "a0", "b"]
            assert await walked(lambda after, children=children: children("a-b/b", after)) == ["c"]
            assert await children("a-b/a", "") == []

            async def namespaces(after: str, who: Identity = who, limit: int = limit) -> list[str]:
                return [each.name for each in await store.namespaces(who, after, limit)]

            assert await walked(namespaces) == sorted([*names, "acme"], key=lambda name: f"{name}/")
    public = [path for path in everything if path.partition("/")[0] in ("a", "a0", "az")]
    assert paths(await store.skills(ANONYMOUS)) == public
    assert await store.beginning(ADA, "a-b/a") == ["a-b/a", "a-b/a-b", "a-b/a0/x"]
    assert await store.beginning(ADA, "", 2) == everything[:2]
    assert await store.beginning(ADA, "~") == []
    assert await store.named(ADA, ["d", "x", "none"]) == {
        "d": [path for path in everything if path.endswith("/d")],
        "x": [path for path in everything if path.endswith("/x")],
    }


async def test_around_finds_the_skill_that_a_path_is_inside(build: RegistryBuilder) -> None:
    await build.publish("acme/billing/refunds", "1.0.0")

    async def around(path: str, who: Identity = EVE) -> str | None:
        release = await build.store.around(who, path)
        return None if release is None else release.path

    assert await around("acme/billing/refunds") == "acme/billing/refunds"
    assert await around("acme/billing/refunds/notes/reply.md") == "acme/billing/refunds"
    assert await around("acme/billing") is None
    assert await around("acme/billing/refunds-x") is None
    assert await around("acme") is None
    assert await around("") is None
    assert await around("acme/billing/refunds", MALLORY) is None


# Search


async def test_a_search_finds_skills_with_one_of_the_words_best_first(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0", description="Pays customers back.")
    await build.publish("acme/invoices", "1.0.0", description="Writes invoices; a refund is another skill.")
    await build.publish("acme/holidays", "1.0.0", description="Plans a Café trip to 東京都.")

    async def found(*words: str, who: Identity = EVE, limit: int = 20) -> list[str]:
        return [match.path for match in await build.store.search(who, words, limit)]

    assert await found("refund") == ["acme/refunds", "acme/invoices"]
    assert await found("REFUNDING", "absent") == ["acme/refunds", "acme/invoices"]
    assert await found("refund", limit=1) == ["acme/refunds"]
    assert await found("cafe") == ["acme/holidays"]
    assert await found("東京") == ["acme/holidays"]
    for odd in ("'", '"', "x' | 'y", "@acme", "@@", "*", "\0", "\ud800", ":", "\\", "(", "NOT", "\U0001e900"):
        assert await found(odd) == []
    assert await found() == []
    assert await found("refund", who=MALLORY) == []
    match = (await build.store.search(EVE, ["customers"]))[0]
    assert (match.name, match.description) == ("refunds", "Pays customers back.")


async def test_the_scores_of_a_search_do_not_depend_on_hidden_skills(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0")
    before = await build.store.search(EVE, ["refunds", "customers", "handles"])
    await build.namespace("hidden")
    for number in range(20):
        await build.publish(f"hidden/refunds{number}", "1.0.0", description="Refunds refunds customers.")
    assert await build.store.search(EVE, ["refunds", "customers", "handles"]) == before


async def test_a_search_finds_the_stable_version_only(build: RegistryBuilder) -> None:
    await build.publish("acme/refunds", "1.0.0", description="Old words.")
    await build.publish("acme/refunds", "1.1.0", body="x", description="New texts.")
    assert await build.store.search(EVE, ["words"]) == []
    assert len(await build.store.search(EVE, ["texts"])) == 1
    await build.store.move_channel(by(ADA), "acme/refunds", "stable", None)
    assert await build.store.search(EVE, ["texts"]) == []


# Reviews


@pytest.fixture
async def reviewed(build: RegistryBuilder) -> RegistryBuilder:
    """``acme`` with reviews, and 1.0.0 as approved."""
    await build.publish("acme/refunds", "1.0.0")
    await build.store.change_namespace(by(ADA), Namespace("acme", reviewed=True))
    return build


async def test_a_channel_moves_when_another_person_approves(reviewed: RegistryBuilder) -> None:
    store = reviewed.store
    waiting = await reviewed.publish("acme/refunds", "1.1.0", who=BEN)
    assert (waiting.outcome, waiting.moved) == ("created", False)
    assert waiting.waits is not None
    assert waiting.note
    again = await reviewed.publish("acme/refunds", "1.1.0", who=BEN)
    assert (again.outcome, again.waits) == ("unchanged", waiting.waits)
    assert await stable(store) == "1.0.0"
    for who in (ADA, BEN, RITA, ADMIN):
        [review] = await store.reviews(who, "acme")
        assert (review.number, review.version, review.current, review.by) == (
            waiting.waits, "1.1.0", "1.0.0", "user:ben",
        )  # fmt: skip
    assert await store.reviews(EVE) == []
    [review] = await store.reviews(RITA)
    await store.decide(by(RITA), review.number, "approved", digest=review.digest, note="good")
    await store.decide(by(RITA), review.number, "approved", digest=review.digest, note="good")
    assert await stable(store) == "1.1.0"
    assert await store.reviews(RITA) == []
    await refused(
        ConflictError, "review-closed", store.decide(by(ADA), review.number, "declined", digest=review.digest)
    )


async def test_a_version_that_was_not_approved_is_hidden_from_readers(reviewed: RegistryBuilder) -> None:
    store = reviewed.store
    await reviewed.publish("acme/refunds", "1.1.0", who=BEN)
    await reviewed.publish("acme/refunds", "2.0.0", channel=None, who=BEN)
    pins = [SkillRef("acme/refunds", version) for version in ("1.1.0", "2.0.0")]
    limited = replace(BEN, actions=frozenset({"read"}))
    for who in (EVE, limited):
        assert [await store.release(who, pin) for pin in pins] == [None, None]
        assert [await store.read(who, pin, "SKILL.md") for pin in pins] == [None, None]
        assert versions(await store.history(who, "acme/refunds")) == ["1.0.0"]
    for who in (ADA, BEN, RITA, ADMIN):
        assert all([await store.read(who, pin, "SKILL.md") for pin in pins])
        assert versions(await store.history(who, "acme/refunds")) == ["2.0.0", "1.1.0", "1.0.0"]
    [review] = await store.reviews(RITA)
    await store.decide(by(RITA), review.number, "approved", digest=review.digest)
    assert versions(await store.history(EVE, "acme/refunds")) == ["1.1.0", "1.0.0"]
    await store.change_namespace(by(ADA), Namespace("acme", public=True, reviewed=True))
    assert versions(await store.history(ANONYMOUS, "acme/refunds")) == ["1.1.0", "1.0.0"]


async def test_a_version_in_quarantine_needs_a_review_in_every_namespace(build: RegistryBuilder) -> None:
    store, files = build.store, small_skill("refunds", "Elsewhere.\n")
    await build.publish("acme/refunds", "1.0.0")
    await build.upload("acme", files, BEN)
    source = {"mirror": "https://skills.example.com"}
    draft = Draft("acme/refunds", manifest_of("refunds", files), source=source, quarantine=True)
    published = await store.publish(by(BEN), draft)
    assert (published.version, published.moved) == ("1.0.1", False)
    pin = SkillRef("acme/refunds", version="1.0.1")
    assert await store.release(EVE, pin) is None
    assert versions(await store.history(EVE, "acme/refunds")) == ["1.0.0"]
    [line, _] = await store.history(BEN, "acme/refunds")
    assert (line.approved, line.source) == (False, source)
    moved = await store.move_channel(by(BEN), "acme/refunds", "beta", "1.0.1")
    assert (moved.moved, moved.waits is None) == (False, False)  # no other channel is a way around
    assert await store.release(EVE, pin) is None
    [first] = [each for each in await store.reviews(RITA) if each.channel == "stable"]
    await store.decide(by(RITA), first.number, "approved", digest=first.digest)
    assert await stable(store, who=EVE) == "1.0.1"
    assert (await store.move_channel(by(BEN), "acme/refunds", "canary", "1.0.1")).moved  # it is approved now


async def test_the_numbers_of_reviews_and_publishers_do_not_count_changes(build: RegistryBuilder) -> None:
    """A counter of all namespaces would tell what happens in those that a caller may not read."""
    store = build.store
    await store.change_namespace(by(ADA), Namespace("acme", reviewed=True))
    for name in ("refunds", "returns"):
        await build.publish(f"acme/{name}", "1.0.0")
    first, second = [each.number for each in await store.reviews(RITA)]
    publisher = TrustedPublisher(0, "acme", "https://ci.example", {"repository_id": "7"})
    clock = await store.clock()
    assert min(first, second, await store.trust(by(ADA), publisher)) > 1_000 + clock
    assert abs(first - second) != 1


async def test_publishers_list_all_skills_of_a_namespace(build: RegistryBuilder) -> None:
    store = build.store
    await build.namespace("acme-b")
    await build.publish("acme/listed")
    await build.publish("acme/unlisted", listed=False)
    await build.publish("acme/a/beta", "1.0.0", channel="beta")
    await build.publish("acme-b/other")
    assert await store.paths(by(BEN), "acme") == ["acme/a/beta", "acme/listed", "acme/unlisted"]
    assert await store.paths(by(BEN), "acme", "acme/a/beta", 1) == ["acme/listed"]
    assert await store.paths(by(BEN), "acme", "acme/unlisted") == []
    await refused(ApprovalError, "registry-forbidden", store.paths(by(EVE), "acme"))
    await refused(NotFoundError, "namespace-not-found", store.paths(by(MALLORY), "acme"))


async def test_neither_the_publisher_nor_who_asked_can_approve(reviewed: RegistryBuilder) -> None:
    store = reviewed.store
    await store.grant(by(ADA), "acme", "user:ben", "owner")
    await reviewed.publish("acme/refunds", "1.1.0", channel=None, who=BEN)
    asked = await store.move_channel(by(ADA), "acme/refunds", "stable", "1.1.0")
    assert (asked.moved, asked.waits is not None) == (False, True)
    repeated = await store.move_channel(by(ADA), "acme/refunds", "stable", "1.1.0")
    assert repeated.waits == asked.waits
    [review] = await store.reviews(RITA)
    for who in (ADA, BEN, replace(BEN, name="another token of ben")):
        call = store.decide(by(who), review.number, "approved", digest=review.digest)
        await refused(ApprovalError, "review-own", call)
    await store.grant(by(ADA), "acme", "user:pub", "publisher")
    call = store.decide(by(person("pub")), review.number, "approved", digest=review.digest)
    await refused(ApprovalError, "registry-forbidden", call)
    for who in (EVE, MALLORY, ANONYMOUS):
        hidden = await refused(
            NotFoundError, "review-not-found", store.decide(by(who), review.number, "approved", digest="")
        )
        absent = await refused(NotFoundError, "review-not-found", store.decide(by(who), 99, "approved", digest=""))
        assert hidden.message == absent.message.replace("99", str(review.number))
    assert await stable(store) == "1.0.0"
    await store.decide(by(RITA), review.number, "approved", digest=review.digest)
    assert await stable(store) == "1.1.0"


async def test_an_approval_names_the_content(reviewed: RegistryBuilder) -> None:
    await reviewed.publish("acme/refunds", "1.1.0", who=BEN)
    [review] = await reviewed.store.reviews(RITA)
    call = reviewed.store.decide(by(RITA), review.number, "approved", digest=digest_of(b"other"))
    await refused(VerificationError, "review-digest", call)
    assert await stable(reviewed.store) == "1.0.0"


async def test_a_declined_review_moves_nothing(reviewed: RegistryBuilder) -> None:
    await reviewed.publish("acme/refunds", "1.1.0", who=BEN)
    [review] = await reviewed.store.reviews(RITA)
    await reviewed.store.decide(by(RITA), review.number, "declined", digest=review.digest, note="no")
    assert await stable(reviewed.store) == "1.0.0"
    assert await reviewed.store.reviews(RITA) == []
    assert await reviewed.store.release(EVE, SkillRef("acme/refunds", "1.1.0")) is None


async def test_a_newer_request_a_yank_or_a_deletion_ends_an_open_review(reviewed: RegistryBuilder) -> None:
    store = reviewed.store
    await reviewed.publish("acme/refunds", "1.1.0", who=BEN)
    await reviewed.publish("acme/refunds", "1.2.0", who=BEN)
    assert [review.version for review in await store.reviews(RITA)] == ["1.2.0"]
    await store.yank(by(ADA), "acme/refunds", "1.0.0", "old")  # the channel leaves it, and the review stays
    assert [(review.version, review.current) for review in await store.reviews(RITA)] == [("1.2.0", None)]
    await store.yank(by(ADA), "acme/refunds", "1.2.0", "wrong")
    assert await store.reviews(RITA) == []
    await reviewed.publish("acme/refunds", "1.3.0", who=BEN)
    await store.delete(by(ADMIN), "acme/refunds", "1.3.0", "wrong")
    assert await store.reviews(RITA) == []


async def test_a_yank_never_falls_back_to_a_version_that_was_not_approved(reviewed: RegistryBuilder) -> None:
    store = reviewed.store
    await reviewed.publish("acme/refunds", "1.1.0", channel=None, who=BEN)
    await reviewed.publish("acme/refunds", "1.2.0", who=BEN)
    [review] = await store.reviews(RITA)
    await store.decide(by(RITA), review.number, "approved", digest=review.digest)
    await store.yank(by(ADA), "acme/refunds", "1.2.0", "wrong")
    assert await stable(store) == "1.0.0"


# Namespaces, roles, tokens, trusted publishers, the audit log


async def test_only_administrators_create_namespaces_and_names_do_not_look_alike(build: RegistryBuilder) -> None:
    store = build.store
    for who in (ADA, ANONYMOUS, replace(ADMIN, namespace="other"), replace(ADMIN, actions=frozenset({"read"}))):
        call = store.create_namespace(by(who), Namespace("new"))
        await refused(ApprovalError, "registry-forbidden", call)
    await refused(ConflictError, "namespace-taken", store.create_namespace(by(ADMIN), Namespace("acme")))
    await store.create_namespace(by(ADMIN), Namespace("tools-10"))
    for lookalike in ("t0ols-10", "too1s-10", "tools10", "tools-1o"):
        call = store.create_namespace(by(ADMIN), Namespace(lookalike))
        await refused(ConflictError, "namespace-lookalike", call)
    await refused(FormatError, "namespace-invalid", store.create_namespace(by(ADMIN), Namespace("A")))
    assert await store.grants(by(ADMIN), "tools-10") == {"user:root": "owner"}


async def test_only_administrators_change_quotas(build: RegistryBuilder) -> None:
    changed = Namespace("acme", public=True, reviewed=True, quota=Quota(1, 2, 3))
    await refused(ApprovalError, "registry-forbidden", build.store.change_namespace(by(ADA), changed))
    await build.store.change_namespace(by(ADMIN), changed)
    assert await build.store.namespace(EVE, "acme") == changed
    await build.store.change_namespace(by(ADA), replace(changed, public=False))
    line = (await build.store.audit(by(ADA), namespace="acme", limit=1))[0]
    assert (line.facts["before"]["public"], line.facts["after"]["public"]) == (True, False)


async def test_the_last_owner_stays(build: RegistryBuilder) -> None:
    store = build.store
    await store.grant(by(ADMIN), "acme", "user:root", None)
    for role in (None, "reader"):
        await refused(ConflictError, "owner-last", store.grant(by(ADA), "acme", "user:ada", role))
    await store.grant(by(ADA), "acme", "user:ben", "owner")
    await store.grant(by(BEN), "acme", "user:ada", "reader")
    assert await store.grants(by(BEN), "acme") == {
        "user:ada": "reader", "user:ben": "owner", "user:rita": "reviewer", "user:eve": "reader",
    }  # fmt: skip
    await refused(ApprovalError, "registry-forbidden", store.grants(by(ADA), "acme"))
    for principal in ("ada", "user:", "token:x", "user:a b", "user:a\n"):
        await refused(FormatError, "principal-invalid", store.grant(by(BEN), "acme", principal, "reader"))


def token(name: str = "ci", subject: str = "user:ada", **changes: Any) -> TokenInfo:
    return replace(TokenInfo(name, name, subject, None, None, None, subject, NOW), **changes)


async def test_a_token_is_found_by_its_digest_until_it_ends_or_is_revoked(build: RegistryBuilder) -> None:
    store = build.store
    limited = token(namespace="acme", actions=frozenset({"publish", "read"}), expires_at=NOW + 9000)
    await store.put_token(by(ADA), limited, "digest-1")
    assert await store.token("digest-2", NOW) is None
    assert await store.token("digest-1", NOW + 10) == limited
    assert await store.token("digest-1", NOW + 20) == replace(limited, last_used=NOW + 10)
    assert await store.token("digest-1", NOW + 3700) == replace(limited, last_used=NOW + 10)
    assert await store.tokens(by(ADA)) == [replace(limited, last_used=NOW + 3700)]
    assert await store.token("digest-1", NOW + 9000) is None
    assert await store.tidy(NOW + 9000) == 1
    await store.put_token(by(ADA), token("laptop"), "digest-3")
    await refused(NotFoundError, "token-not-found", store.revoke_token(by(BEN), "laptop"))
    await store.revoke_token(by(ADA), "laptop")
    assert await store.token("digest-3", NOW) is None
    assert [line.what for line in await store.audit(by(ADMIN), limit=2)] == ["token-revoked", "token-created"]
    assert "digest" not in repr(await store.audit(by(ADMIN)))


async def test_a_browser_session_ends_with_its_token_and_by_itself(build: RegistryBuilder) -> None:
    store = build.store
    laptop, short = token("laptop"), token("short", expires_at=NOW + 100)
    for number, each in enumerate((laptop, short)):
        await store.put_token(by(ADA), each, f"digest-{number}")
        for name in ("one", "two"):
            await store.open_session(each.id, f"{each.id} {name}", NOW + 500)
    assert await store.session("unknown", NOW) is None
    assert await store.session("digest-0", NOW) is None  # a token is no session
    assert await store.token("laptop one", NOW) is None  # and a session no token
    assert await store.session("laptop one", NOW + 10) == laptop
    assert await store.session("laptop one", NOW + 20) == replace(laptop, last_used=NOW + 10)
    assert await store.session("short one", NOW + 99) == short
    assert await store.session("short one", NOW + 100) is None
    await store.close_session("laptop two")
    assert await store.session("laptop two", NOW + 20) is None
    assert await store.session("laptop one", NOW + 499) is not None
    assert await store.session("laptop one", NOW + 500) is None
    await store.open_session("laptop", "late", NOW + 9000)
    await store.revoke_token(by(ADA), "laptop")
    assert await store.session("late", NOW) is None
    assert await store.tidy(NOW + 500) == 3  # the token that has expired, and its sessions
    await store.open_session("laptop", "again", NOW + 9000)  # the token is gone
    assert await store.session("again", NOW) is None


async def test_skills_are_counted_up_to_a_bound_for_those_who_may_see_them(build: RegistryBuilder) -> None:
    await build.namespace("open", public=True)
    for name in ("a", "b", "c"):
        await build.publish(f"acme/{name}")
    await build.publish("open/d", listed=False)
    await build.publish("open/e")
    every = ("acme", "open", "absent")
    assert await build.store.counts(EVE, every, 9) == {"acme": 3, "open": 1}
    assert await build.store.counts(EVE, every, 2) == {"acme": 2, "open": 1}
    assert await build.store.counts(MALLORY, every, 9) == {"open": 1}
    assert await build.store.counts(ANONYMOUS, ["acme"], 9) == {}


async def test_tokens_are_listed_for_their_subject_and_for_administrators(build: RegistryBuilder) -> None:
    await build.store.put_token(by(ADA), token("one"), "1")
    await build.store.put_token(by(ADMIN), token("two", "user:ben"), "2")
    assert [each.id for each in await build.store.tokens(by(ADA))] == ["one"]
    assert [each.id for each in await build.store.tokens(by(BEN))] == ["two"]
    assert [each.id for each in await build.store.tokens(by(ADMIN))] == ["one", "two"]
    assert await build.store.tokens(by(ANONYMOUS)) == []
    assert await build.store.tokens(by(replace(ADMIN, actions=frozenset({"read"})))) == []


@pytest.mark.parametrize(
    "limits", [{"namespace": "acme"}, {"actions": frozenset({"read"})}, {"actions": frozenset({"publish"})}]
)
async def test_a_limited_token_neither_shows_nor_revokes_one_that_may_do_more(
    build: RegistryBuilder, limits: dict[str, Any]
) -> None:
    await build.store.put_token(by(ADA), token("wide"), "1")
    await build.store.put_token(by(ADA), token("narrow", **limits), "2")
    limited = by(replace(ADA, **limits))
    assert [each.id for each in await build.store.tokens(limited)] == ["narrow"]
    await refused(NotFoundError, "token-not-found", build.store.revoke_token(limited, "wide"))
    await build.store.revoke_token(limited, "narrow")
    assert await build.store.token("2", NOW) is None


ALL = frozenset({"read", "publish", "review", "manage"})


@pytest.mark.parametrize(
    ("maker", "made"),
    [
        (ADA, token(subject="user:ben")),
        (ADA, token(is_admin=True)),
        (ANONYMOUS, token()),
        (replace(ADA, namespace="acme"), token()),
        (replace(ADA, actions=frozenset({"publish"})), token()),
        (replace(ADA, actions=frozenset({"publish"})), token(actions=frozenset({"manage"}))),
        (replace(ADA, expires_at=NOW + 5), token()),
        (replace(ADA, expires_at=NOW + 5), token(expires_at=NOW + 6)),
        (Identity("jwt:ci", frozenset({"jwt:ci", "publisher:7"})), token(subject="publisher:7")),
        (person("ada", "payments"), token(subject="group:payments")),
        (replace(ADMIN, namespace="acme"), token(subject="user:root", is_admin=True)),
        (replace(ADMIN, actions=frozenset({"publish"})), token()),
    ],
)
async def test_only_administrators_make_a_token_that_may_do_more(
    build: RegistryBuilder, maker: Identity, made: TokenInfo
) -> None:
    await refused(ApprovalError, "registry-forbidden", build.store.put_token(by(maker), made, "digest"))
    await build.store.put_token(by(ADMIN), made, "digest")


@pytest.mark.parametrize(
    ("maker", "made"),
    [
        (ADA, token()),
        (replace(ADA, namespace="acme"), token(namespace="acme")),
        (replace(ADA, actions=frozenset({"publish"})), token(actions=frozenset({"read", "publish"}))),
        (replace(ADA, expires_at=NOW + 5), token(expires_at=NOW + 5)),
    ],
)
async def test_a_token_that_may_do_the_same_or_less_can_be_made(
    build: RegistryBuilder, maker: Identity, made: TokenInfo
) -> None:
    await build.store.put_token(by(maker), made, "digest")
    assert await build.store.token("digest", NOW) == made


async def test_a_token_for_a_hidden_namespace_is_refused_like_one_that_does_not_exist(
    build: RegistryBuilder,
) -> None:
    for namespace in ("acme", "nobody"):
        made = token(subject="user:mallory", namespace=namespace)
        await refused(NotFoundError, "namespace-not-found", build.store.put_token(by(MALLORY), made, "digest"))


async def test_a_trusted_publisher_has_its_role_until_it_is_removed(build: RegistryBuilder) -> None:
    store = build.store
    publisher = TrustedPublisher(0, "acme", "https://ci.example", {"repository_id": "7", "environment": "prod"})
    number = await store.trust(by(ADA), publisher)
    assert await store.trusted("https://ci.example") == [replace(publisher, number=number)]
    assert await store.trusted("https://other.example") == []
    ci = Identity("jwt:repo", frozenset({"jwt:repo", f"publisher:{number}"}))
    await build.publish("acme/refunds", "1.0.0", who=ci)
    await refused(NotFoundError, "publisher-not-found", store.distrust(by(ADA), "acme", number + 1))
    await store.distrust(by(ADA), "acme", number)
    assert await store.trusted("https://ci.example") == []
    assert await store.actions(ci, "acme") == frozenset()
    assert await store.trust(by(ADA), publisher) != number
    await refused(FormatError, "publisher-invalid", store.trust(by(ADA), replace(publisher, claims={})))
    await refused(FormatError, "role-invalid", store.trust(by(ADA), replace(publisher, role="owner")))


async def test_owners_read_the_log_of_their_namespace_and_administrators_all(build: RegistryBuilder) -> None:
    await build.namespace("other")
    await build.publish("acme/refunds", "1.0.0")
    lines = await build.store.audit(by(ADA), namespace="acme")
    assert {line.path.partition("/")[0] for line in lines} == {"acme"}
    assert [line.number for line in lines] == sorted((line.number for line in lines), reverse=True)
    assert await build.store.audit(by(ADA), namespace="acme", before=lines[0].number, limit=1) == lines[1:2]
    everything = await build.store.audit(by(ADMIN), limit=1000)
    assert len(everything) == await build.store.clock()
    await refused(ApprovalError, "registry-forbidden", build.store.audit(by(ADA)))
    await refused(ApprovalError, "registry-forbidden", build.store.audit(by(BEN), namespace="acme"))


async def test_readers_are_the_principals_with_a_role(build: RegistryBuilder) -> None:
    await build.namespace("open", public=True)
    assert await build.store.readers(["acme", "open", "nobody"]) == {
        "acme": {"user:root", "user:ada", "user:ben", "user:rita", "user:eve"},
        "open": None,
    }


# Several at once


async def test_publishers_of_the_same_number_get_one_version_and_a_conflict(build: RegistryBuilder) -> None:
    outcomes: list[str] = []

    async def publish(body: str) -> None:
        try:
            outcomes.append((await build.publish("acme/refunds", "1.0.0", body=body)).outcome)
        except ConflictError as error:
            outcomes.append(error.reference)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(publish, f"Body {number}.\n")
    assert sorted(outcomes) == ["created", *["version-taken"] * 5]
    assert versions(await build.store.history(ADA, "acme/refunds")) == ["1.0.0"]


async def test_publishers_without_a_number_get_different_ones(build: RegistryBuilder) -> None:
    found: list[str] = []

    async def publish(body: str) -> None:
        found.append((await build.publish("acme/refunds", body=body)).version)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(publish, f"Body {number}.\n")
    assert sorted(found) == [f"0.1.{number}" for number in range(8)]
    assert await stable(build.store) == "0.1.7"
    numbers = [line.number for line in await build.store.changes(0)]
    assert numbers == list(range(1, len(numbers) + 1))


async def test_uploads_of_the_same_bytes_in_opposite_order_do_not_deadlock(build: RegistryBuilder) -> None:
    await build.namespace("other")
    bodies = [f"{number}".encode() * 50 for number in range(12)]

    async def upload(namespace: str, order: Iterable[bytes]) -> None:
        for data in order:
            await build.store.put_blob(by(ADA), namespace, digest_of(data), data)

    async with anyio.create_task_group() as group:
        for namespace in ("acme", "other"):
            group.start_soon(upload, namespace, bodies)
            group.start_soon(upload, namespace, bodies[::-1])
    for namespace in ("acme", "other"):
        assert await build.store.missing(by(ADA), namespace, [digest_of(data) for data in bodies]) == []
    assert [fault async for fault in build.store.check()] == []
