"""``skillwire approvals``, ``revoke`` and ``log``: what was decided, from the memory alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire.cli.main import run
from skillwire.host.state import open_store
from skillwire.skill.approval import Approval, make_contents
from skillwire.store.records import LogLine, StoredOrigin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
REFUNDS = "skill://acme/refunds/SKILL.md"


def approval(origin: str = "acme", uri: str = REFUNDS, digest: str = ONE, *grants: str) -> Approval:
    return Approval(origin, uri, make_contents(uri, {uri: digest}, ONE), "ada", 1_000_000.25, frozenset(grants))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def remember(state: Path) -> Callable[..., None]:
    """Origins and approvals, put into the memory."""

    def put(*approvals: Approval, origins: tuple[str, ...] = ("acme",), lines: tuple[LogLine, ...] = ()) -> None:
        async def work() -> None:
            store = await open_store(state)
            try:
                for label in origins:
                    await store.put_origin(StoredOrigin(label, {"command": "true"}, 1.0))
                for each in approvals:
                    await store.put_approval(each, LogLine("approved", each.origin, each.uri, each.by, each.at))
                for each in lines:
                    await store.log(each)
            finally:
                await store.close()

        anyio.run(work)

    return put


def exported(state: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["approvals", "--json", "--state", str(state)]) == 0
    return json.loads(capsys.readouterr().out)


def test_approvals_are_a_table(
    state: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    remember(approval("acme", REFUNDS, ONE, "execute", "Read"))
    assert run(["approvals", "--state", str(state)]) == 0
    [row] = capsys.readouterr().out.splitlines()
    origin, skill, _, by, fingerprint, grants = row.split("\t")
    assert (origin, skill, by, grants) == ("acme", "skill://acme/refunds", "ada", "Read, execute")
    assert fingerprint == approval().fingerprint


@rule("A1")
def test_an_export_is_imported_as_it_was(
    state: Path, tmp_path: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    remember(approval("acme", REFUNDS, ONE, "Read"), approval("acme", "repo://x/skill-a/SKILL.md", TWO))
    before = exported(state, capsys)
    (tmp_path / "export.json").write_text(json.dumps(before))
    state.rename(tmp_path / "old machine")
    remember()
    words = ["import", str(tmp_path / "export.json"), "--yes", "--by", "bob", "--note", "moved"]
    assert run(["approvals", *words, "--state", str(state)]) == 0
    assert exported(state, capsys) == before
    assert run(["log", "--json", "--state", str(state)]) == 0
    for text in capsys.readouterr().out.splitlines():
        line = json.loads(text)
        assert (line["by"], line["facts"]["from"], line["facts"]["note"]) == ("bob", "ada", "moved")


@rule("A1")
def test_an_import_does_not_bring_back_what_was_revoked_here(
    state: Path, tmp_path: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor if another content was decided on since."""
    other = "skill://other/SKILL.md"
    remember(approval("acme", REFUNDS, ONE), approval("acme", other, ONE))
    (tmp_path / "export.json").write_text(json.dumps(exported(state, capsys)))
    for name in ("refunds", "other"):
        assert run(["approvals", "revoke", name, "--by", "bob", "--state", str(state)]) == 0
    remember(approval("acme", other, TWO))
    assert run(["approvals", "revoke", "other", "--state", str(state)]) == 0
    words = ["approvals", "import", str(tmp_path / "export.json"), "--yes", "--state", str(state), "--json"]
    capsys.readouterr()
    assert run(words) == 1
    reasons = [each["reason"] for each in json.loads(capsys.readouterr().out)["skipped"]]
    assert ["'bob'" in reason for reason in reasons] == [True, True]
    assert exported(state, capsys)["approvals"] == []


@rule("A2")
def test_what_only_a_host_revoked_can_be_imported_again(
    state: Path, tmp_path: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """It saw another content; nobody said no to this one."""
    remember(approval())
    before = exported(state, capsys)
    (tmp_path / "export.json").write_text(json.dumps(before))

    async def revoke() -> None:
        store = await open_store(state)
        facts = {"why": "the content changed", "contents": sorted(approval().contents)}
        await store.remove_approval("acme", REFUNDS, LogLine("revoked", "acme", REFUNDS, "host", 5.0, facts))
        await store.close()

    anyio.run(revoke)
    assert run(["approvals", "import", str(tmp_path / "export.json"), "--yes", "--state", str(state)]) == 0
    assert exported(state, capsys) == before


@rule("A1", "O1")
def test_an_import_overrules_nothing_and_reaches_no_other_origin(
    state: Path, tmp_path: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """The same content gets the grants of both; another content, or an unknown label, is left out."""
    same = "skill://same/SKILL.md"
    remember(approval("acme", REFUNDS, ONE), approval("acme", same, ONE, "Read"), approval("gone", REFUNDS, ONE))
    export = exported(state, capsys)
    for name in ("acme:refunds", "acme:same", "gone:refunds"):
        assert run(["approvals", "revoke", name, "--state", str(state)]) == 0
    remember(approval("acme", REFUNDS, TWO), approval("acme", same, ONE, "execute"))
    (tmp_path / "export.json").write_text(json.dumps(export))
    capsys.readouterr()
    words = ["approvals", "import", str(tmp_path / "export.json"), "--yes", "--state", str(state)]
    assert run([*words, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert [each["origin"] for each in result["skipped"]] == ["acme", "gone"]
    kept = {each["uri"]: each for each in exported(state, capsys)["approvals"]}
    assert kept[REFUNDS]["contents"][0]["digest"] == TWO
    assert kept[same]["grants"] == ["Read", "execute"]
    assert len(kept) == 2


@rule("A1")
def test_a_wrong_export_is_refused_as_a_whole(
    state: Path, tmp_path: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands before the mistake is not stored either."""
    remember(approval(), approval("acme", "skill://b/SKILL.md"))
    export = exported(state, capsys)
    export["approvals"] = [export["approvals"][1], {**export["approvals"][0], "fingerprint": TWO}]
    for name in ("refunds", "b"):
        assert run(["approvals", "revoke", name, "--state", str(state)]) == 0
    (tmp_path / "export.json").write_text(json.dumps(export))
    assert run(["approvals", "import", str(tmp_path / "export.json"), "--yes", "--state", str(state)]) == 2
    assert "[export-invalid]" in capsys.readouterr().err
    assert exported(state, capsys)["approvals"] == []


def test_an_export_that_cannot_be_read_is_an_error(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["approvals", "import", str(tmp_path / "none.json"), "--state", str(state)]) == 2
    assert "[export-unreadable]" in capsys.readouterr().err


@rule("A2", "N1")
def test_a_revocation_needs_a_name_that_means_one(
    state: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    remember(approval(), approval("other"), origins=("acme", "other"))
    assert run(["approvals", "revoke", "refunds", "--state", str(state)]) == 2
    assert "acme:skill://acme/refunds/SKILL.md, other:skill://acme/refunds/SKILL.md" in capsys.readouterr().err
    assert run(["approvals", "revoke", "other:acme/refunds", "--by", "bob", "--state", str(state)]) == 0
    assert run(["approvals", "revoke", "other:acme/refunds", "--state", str(state)]) == 2
    assert run(["approvals", "revoke", REFUNDS, "--state", str(state)]) == 0
    capsys.readouterr()
    assert run(["log", "--state", str(state), "--origin", "other", "--json"]) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [(line["what"], line["by"]) for line in lines] == [("approved", "ada"), ("revoked", "bob")]


@rule("B6")
def test_the_newest_line_of_the_log_is_last(
    state: Path, remember: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever a model or a server called something."""
    hostile = {"what": "x\n\x1b[2J\udc80", "rule": ""}
    remember(
        lines=(
            LogLine("loaded", "acme", REFUNDS, "model", 1.0, {"offline": False}),
            LogLine("refused", "", "", "host", 2.0, hostile),
        )
    )
    assert run(["log", "--state", str(state), "-n", "1"]) == 0
    [row] = capsys.readouterr().out.splitlines()
    assert row.split("\t")[1:] == ["refused", "", "", "host", "what=x <U+001B>[2J<U+DC80>"]
    assert run(["log", "--state", str(state), "--json"]) == 0
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [line["number"] for line in lines] == [1, 2]
    assert lines[1]["facts"] == hostile
    assert run(["log", "--state", str(state), "-n", "-5"]) == 2
    assert capsys.readouterr().out == ""
