"""A listing that says little, and a server that says something else when it is asked: V1, V3, V7, A1, A2, G1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import (
    CANARY,
    EVIL_NOTE,
    EVIL_SKILL,
    SKILL,
    assert_nothing_got_out,
    assert_refused,
    is_acting,
)
from host.short import FIELDS, FILES, MANIFEST, PACKED, PROMISING, speak_archive, speak_digest, speak_manifest
from host.stage import ALLOW, NO, YES, Person
from rules import rule
from skillwire.skill import digest_of
from skillwire.skill.approval import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

EVIL = {**FILES, "SKILL.md": EVIL_SKILL}
promising = pytest.mark.parametrize("speak", PROMISING.values(), ids=PROMISING.keys())


@rule("A2", "G1")
@promising
async def test_a_skill_that_rotates_behind_its_listing_is_asked_about_again(
    speak: Callable[..., None], evil: HostileOrigin, state: Path
) -> None:
    """Each load asks what the skill is now; the approval of the old one is gone."""
    speak(evil)
    person = Person(YES, NO)
    async with evil.host(state, person=person) as host:
        await host.load("flat")
        speak(evil, EVIL)
        result = await host.load("flat")
        assert_refused(result, "not-approved", "A1")
        assert (person.kinds, list(await host.store.approvals())) == (["load", "load"], [])
        change = person.asked[1].change
        assert change is not None
        assert change.rotated == (SKILL,)
        assert not is_acting(host)
        await assert_nothing_got_out(host, state, result)


@rule("V1", "V2", "V3")
async def test_bytes_that_rotate_while_the_skill_is_acted_on_are_refused(evil: HostileOrigin, state: Path) -> None:
    """Reads are held to what was got when it was loaded."""
    speak_manifest(evil)
    async with evil.host(state) as host:
        await host.load("flat")
        speak_manifest(evil, {**FILES, "notes.md": EVIL_NOTE})
        result = await host.read("flat", "notes.md")
        assert_refused(result, "skill-changed", "V3")
        assert (list(await host.store.approvals()), is_acting(host)) == ([], False)
        await assert_nothing_got_out(host, state, result)


@rule("V7", "A2")
async def test_a_server_that_takes_its_promises_back_is_declined(evil: HostileOrigin, state: Path) -> None:
    """To escape its digests; what was approved is not approved for when they come back."""
    speak_manifest(evil)
    async with evil.host(state) as host:
        await host.load("flat")
        manifest = evil.files.pop(MANIFEST)
        evil.files[SKILL] = EVIL_SKILL
        result = await host.load("flat")
        assert_refused(result, "not-approved", "V7")
        assert (list(await host.store.approvals()), is_acting(host)) == ([], False)
        evil.files[MANIFEST] = manifest
        again = await host.load("flat")
        assert_refused(again, "size-mismatch", "V1")
        await assert_nothing_got_out(host, state, result, again)


@rule("A2")
async def test_a_listing_that_contradicts_what_was_got_ends_the_window(evil: HostileOrigin, state: Path) -> None:
    """The little that it says counts."""
    speak_digest(evil)
    async with evil.host(state, person=Person(YES, NO)) as host:
        await host.load("flat")
        speak_digest(evil, EVIL)
        await host.relist("evil")
        assert not is_acting(host)
        result = await host.load("flat")
        assert_refused(result, "not-approved", "A1")
        await assert_nothing_got_out(host, state, result)


@rule("A1", "B6")
async def test_what_a_person_looked_at_is_what_they_say_yes_to(web: HostileOrigin, state: Path) -> None:
    """A server that answers otherwise the second time is not asked a second time."""
    speak_manifest(web)
    async with web.host(state, person=Person(NO)) as host:
        await host.review("flat")
        [seen] = [skill.entry for skill in host.names.skills if skill.entry.uri == SKILL]
        speak_manifest(web, EVIL)
        assert await host.approve("flat") == fingerprint_of(seen)
        result = await host.load("flat")  # asks anew, and what is there now is nothing that anybody saw
        assert_refused(result, "not-approved", "A1")
        assert list(await host.store.approvals()) == []
        await assert_nothing_got_out(host, state, result)


LIES: dict[str, tuple[Callable[[HostileOrigin], None], str, str]] = {
    "an archive of other bytes": (
        lambda server: server.add_index(
            {"type": "archive", "url": PACKED, "digest": digest_of(b"other"), **FIELDS}
        ),
        "digest-mismatch",
        "V1",
    ),
    "a description that is not the skill's": (
        lambda server: server.add_index(
            {
                "type": "archive",
                "url": PACKED,
                "digest": digest_of(server.files[PACKED]),
                "name": "flat",
                "description": "Harmless.",
            }
        ),
        "frontmatter-mismatch",
        "V4",
    ),
}


@rule("V1", "V4", "I2")
@pytest.mark.parametrize("lie", LIES)
async def test_an_index_that_lies_about_its_archive_is_refused(lie: str, evil: HostileOrigin, state: Path) -> None:
    tell, *expected = LIES[lie]
    speak_archive(evil, EVIL)
    tell(evil)
    async with evil.host(state, policy=ALLOW) as host:
        result = await host.load("flat")
        assert_refused(result, *expected)
        await assert_nothing_got_out(host, state, result)


@rule("V1", "E2")
async def test_a_manifest_that_lies_is_refused(evil: HostileOrigin, state: Path) -> None:
    """About bytes, or in its own shape; whatever a rule allows."""
    speak_manifest(evil)
    evil.files[SKILL] = EVIL_SKILL
    async with evil.host(state, policy=ALLOW) as host:
        wrong = await host.load("flat")
        assert_refused(wrong, "size-mismatch", "V1")
        evil.files[MANIFEST] = json.dumps({"files": [{"path": "SKILL.md"}]}).encode()
        broken = await host.load("flat")
        assert_refused(broken, "entry-invalid", "E3")
        await assert_nothing_got_out(host, state, wrong, broken)
        assert CANARY not in host.catalog_prompt()
