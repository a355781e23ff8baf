"""``skillwire origins`` where no server is needed: what is taken, stored, and never shown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from rules import rule
from skillwire.cli.main import run
from skillwire.client.servers import address_of
from skillwire.host.state import open_store
from trees import skill_md, write_tree

SECRET = "s3cret"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "own", {"mine/SKILL.md": skill_md("mine")})


def stored() -> dict[str, Any]:
    async def read() -> dict[str, Any]:
        store = await open_store()
        try:
            return {origin.label: dict(origin.settings) for origin in await store.origins()}
        finally:
            await store.close()

    return anyio.run(read)


@rule("O1")
def test_each_kind_of_origin_is_stored_as_hosts_write_it(own: Path, tmp_path: Path) -> None:
    """A variable is stored as it is written."""
    url = ["origins", "add", "web", "https://example.com/mcp", "--no-test"]
    assert run([*url, "--header", "Authorization: Bearer ${HOME}"]) == 0
    assert (
        run(["origins", "add", "tool", "--no-test", "--env", "A=b=c", "--", "npx", "some", "--", "x", "--"]) == 0
    )
    assert run(["origins", "add", "home", "own"]) == 0
    assert stored() == {
        "web": {
            "type": "http",
            "url": "https://example.com/mcp",
            "headers": {"Authorization": "Bearer ${HOME}"},
        },
        "tool": {"command": "npx", "args": ["some", "--", "x", "--"], "cwd": str(tmp_path), "env": {"A": "b=c"}},
        "home": {"folder": str(own)},
    }


@rule("O1", "C2")
@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param(["x" * 65, "own"], "origin-invalid", id="long-label"),
        pytest.param(["bell\x07", "own"], "origin-invalid", id="control-character"),
        pytest.param(["acme#stdio", "own"], "origin-invalid", id="approvals-of-a-gateway's-client"),
        pytest.param(["local", "own"], "origin-invalid", id="reserved"),
        pytest.param(["local-2", "own"], "origin-invalid", id="reserved-with-a-number"),
        pytest.param(["x", "nowhere"], "target-unknown", id="unknown-target"),
        pytest.param(["x", "own", "other"], "origin-unclear", id="two-targets"),
        pytest.param(["x", "own", "--header", "A: b"], "origin-unclear", id="folder-with-a-header"),
        pytest.param(["x", "https://example.com/mcp", "--env", "A=b"], "origin-unclear", id="url-with-env"),
        pytest.param(["x", "own", "--", "command"], "origin-unclear", id="folder-and-command"),
        pytest.param(["x", "--env", "nothing", "--", "command"], "origin-unclear", id="env-without-a-value"),
        pytest.param(["x", "--"], "command-missing", id="no-command"),
        pytest.param(["x", "ftp://example.com"], "url-invalid", id="scheme"),
        pytest.param(["x", "https://example.com/mcp", "--header", SECRET], "header-invalid", id="header"),
        pytest.param(["x", "https://example.com/mcp", "--header", "A: ${NO_SUCH}"], "variable-unset", id="unset"),
        pytest.param(["x", "."], "cache-misplaced", id="above-the-memory"),
    ],
)
def test_an_invalid_origin_is_refused_and_not_stored(
    own: Path, words: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["origins", "add", "--no-test", *words]) == 2
    err = capsys.readouterr().err
    assert f"[{reference}" in err
    assert "hint: " in err
    assert SECRET not in err
    assert "\x07" not in err
    assert stored() == {}


@rule("O1")
def test_a_label_is_given_once(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another server under the same label would inherit what was approved."""
    assert run(["origins", "add", "mine", "own"]) == 0
    assert run(["origins", "add", "mine", "https://example.com/mcp", "--no-test"]) == 2
    assert "[origin-taken]" in capsys.readouterr().err
    assert stored()["mine"] == {"folder": str(own)}


def test_a_folder_is_an_origin_of_every_host(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["origins", "add", "mine", "own"]) == 0
    capsys.readouterr()
    assert run(["list", "--origins"]) == 0
    assert capsys.readouterr().out.startswith("mine\tmine\tlocal\t")
    assert run(["load", "mine"]) == 0
    assert run(["approve", "mine"]) == 0
    capsys.readouterr()
    assert run(["approvals", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["approvals"] == []
    assert run(["approvals", "show", "mine"]) == 0
    assert "local" in capsys.readouterr().out
    (own / "mine" / "SKILL.md").unlink()
    os.rmdir(own / "mine")
    os.rmdir(own)
    assert run(["origins", "test", "mine"]) == 2
    assert "[folder-unknown]" in capsys.readouterr().err


@rule("F7")
def test_a_folder_with_a_bad_skill_is_added_with_a_warning(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(own, {"bad/SKILL.md": b"no frontmatter\n"})
    assert run(["origins", "add", "mine", "own"]) == 1
    assert "bad/SKILL.md" in capsys.readouterr().err
    assert run(["list", "--origins"]) == 1


@rule("A1")
def test_a_config_file_cannot_name_a_folder(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is in a folder needs no approval, so only a person makes it an origin."""
    Path("servers.json").write_text(json.dumps({"mcpServers": {"sly": {"folder": str(own)}}}))
    assert run(["list", "--origins", "--config", "servers.json"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "[server-invalid]" in err


@rule("O1")
def test_two_origins_with_one_label_are_an_error(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("servers.json").write_text(json.dumps({"mcpServers": {"local": {"command": "true"}}}))
    assert run(["list", "--origins", "--config", "servers.json", "--folder", "own"]) == 2
    err = capsys.readouterr().err
    assert "[origin-taken" in err
    assert "Traceback" not in err


@rule("O1")
def test_a_name_in_a_file_that_is_no_label_becomes_one(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels are the host's; what a file calls a server is only where they come from."""
    Path("servers.json").write_text(json.dumps({"mcpServers": {"My Server": {"command": "true"}}}))
    assert run(["list", "--origins", "--config", "servers.json", "--folder", "own"]) == 1
    assert "My-Server" in capsys.readouterr().err


@rule("O1")
@pytest.mark.parametrize(
    ("target", "shown"),
    [
        pytest.param({"url": f"https://u:{SECRET}@h/mcp?k={SECRET}#{SECRET}"}, "https://…@h/mcp", id="url"),
        pytest.param({"url": f"https://h/mcp#{SECRET}", "headers": {"X": SECRET}}, "https://h/mcp", id="headers"),
        pytest.param({"command": "npx", "args": ["-y", "x"], "env": {"KEY": SECRET}}, "npx -y x", id="command"),
        pytest.param({"headers": SECRET, "args": SECRET}, "", id="neither"),
    ],
)
def test_the_place_of_an_origin_is_shown_without_secrets(target: dict[str, Any], shown: str) -> None:
    assert address_of(target) == shown


def test_a_secret_is_stored_and_never_printed(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"http://u:{SECRET}@127.0.0.1:1/mcp?k={SECRET}"
    assert run(["origins", "add", "web", url, "--no-test", "--header", f"Authorization: {SECRET}"]) == 0
    assert run(["origins", "list"]) == 0
    assert run(["origins", "list", "--json"]) == 0
    assert run(["origins", "test"]) == 2
    assert run(["list", "--origins"]) == 1
    assert run(["log", "--json"]) == 0
    out, err = capsys.readouterr()
    assert SECRET not in out + err
    assert stored()["web"]["headers"] == {"Authorization": SECRET}
