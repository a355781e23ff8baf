"""``file:`` in every spelling: O3, U7."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.host.origin import SKILL, assert_nothing_got_out, assert_refused
from host.stage import ALLOW
from rules import rule
from skillwire.host.approvals import Policy, Rule
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.host.origin import HostileOrigin

pytestmark = pytest.mark.anyio

MACHINE, INVALID = ("machine-file", "O3"), ("uri-invalid", "U7")
OUTSIDE, NO_FILE = ("link-outside", "U6"), ("file-unknown", "U6")
SPELLINGS = {
    "file:///etc/passwd": MACHINE,
    "FILE:///etc/passwd": MACHINE,
    "File:/etc/passwd": MACHINE,
    "file:etc/passwd": MACHINE,
    "file://localhost/etc/passwd": MACHINE,
    " file:///etc/passwd": MACHINE,
    "\tfile:///etc/passwd": MACHINE,
    "\n file:/etc/passwd": MACHINE,
    "\u00a0file:///etc/passwd": MACHINE,
    "file:///etc/passwd#x": MACHINE,
    "file:\\\\etc\\passwd": MACHINE,
    "/etc/passwd": MACHINE,
    " /etc/passwd": MACHINE,
    "~/.ssh/id_rsa": MACHINE,
    "C:\\Windows\\win.ini": MACHINE,
    "c:/Windows/win.ini": MACHINE,
    "\\\\server\\share": MACHINE,
    "f\u0131le:///etc/passwd": INVALID,
    "\uff46\uff49\uff4c\uff45:///etc/passwd": INVALID,
    "%66ile:///etc/passwd": INVALID,
    "fi\u00adle:///etc/passwd": INVALID,
    "fi\tle:///etc/passwd": INVALID,
    "view-source:file:///etc/passwd": INVALID,
    "jar:file:///etc/passwd": INVALID,
    "skill:file:///etc/passwd": INVALID,
    "evil:file:///etc/passwd": INVALID,
    "skill://file:///etc/passwd": INVALID,
    "//etc/passwd": NO_FILE,
    "../../../../etc/passwd": OUTSIDE,
    "..%2f..%2fetc%2fpasswd": OUTSIDE,
    "%2e%2e/%2e%2e/etc/passwd": OUTSIDE,
    "%2fetc%2fpasswd": OUTSIDE,
    "..\\..\\etc\\passwd": OUTSIDE,
    "notes.md/../../../etc/passwd": OUTSIDE,
    "./.././etc/passwd": OUTSIDE,
}


@rule("O3", "U6", "U7")
@pytest.mark.parametrize("kind", ["listed", "dynamic"])
async def test_no_spelling_of_a_file_of_this_machine_is_read(evil: HostileOrigin, state: Path, kind: str) -> None:
    """Not by the host, and the server is not asked to either; with or without a manifest."""
    if kind == "dynamic":
        evil.make_dynamic()
    async with evil.host(state, policy=Policy([Rule("allow"), Rule("allow", kind="dynamic")])) as host:
        await host.load("flat")
        for path, expected in SPELLINGS.items():
            result = await host.read("flat", path)
            assert_refused(result, *expected)
            assert evil.read_uris() == [SKILL], path
            await assert_nothing_got_out(host, state, result)


@rule("O3")
@pytest.mark.parametrize("uri", ["FILE:/etc/SKILL.md", " file:///etc/SKILL.md"], ids=["capitals", "space"])
async def test_a_skill_that_is_a_file_of_this_machine_is_none(web: HostileOrigin, state: Path, uri: str) -> None:
    """Not listed, not by its URI, not with an origin."""
    data = skill_md("etc")
    web.entries.append({"uri": uri, "frontmatter": {"name": "etc", "description": "x"}, "resources": "dynamic"})
    web.files[uri] = data
    async with web.host(state, policy=Policy([Rule("allow"), Rule("allow", kind="dynamic")])) as host:
        assert host.state("evil") == "partial"
        assert [skill.name for skill in host.names.skills] == ["own", "flat"]
        for name, origin in ((uri, "evil"), (uri, None), (f"evil:{uri}", None), (uri, "mine")):
            result = await host.load(name, origin=origin)
            assert result.refusal is not None
            assert result.refusal.reference in ("uri-invalid", "skill-unknown", "server-away", "origin-unknown")
        assert web.read_uris() == []


@rule("O3", "E4", "U7")
@pytest.mark.parametrize("uri", ["file:///etc/passwd", "skill://flat/%2e%2e/x"], ids=["file", "way-up"])
async def test_a_skill_that_lists_a_file_of_this_machine_is_none(
    web: HostileOrigin, state: Path, uri: str
) -> None:
    """One such file and the whole entry is left out."""
    web.entries[0]["resources"].append({"uri": uri, "digest": "sha256:" + "0" * 64, "size": 1})
    async with web.host(state, policy=ALLOW) as host:
        assert host.state("evil") == "partial"
        assert_refused(await host.load("flat"), "skill-unknown", "N1")


@rule("O3")
@pytest.mark.parametrize("origin", ["evil", "mine"])
async def test_reading_across_origins_does_not_reach_the_machine(
    web: HostileOrigin, state: Path, origin: str
) -> None:
    """Also with a rule that allows every read across."""
    policy = Policy([Rule("allow"), Rule("allow", kind="cross-origin")])
    async with web.host(state, policy=policy) as host:
        await host.load("flat")
        for path in ("file:///etc/passwd", "/etc/passwd", "../../etc/passwd"):
            result = await host.read("flat", path, origin=origin)
            assert result.is_error
            await assert_nothing_got_out(host, state, result)
