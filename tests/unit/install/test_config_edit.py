"""Hosts' configuration files: what is shown is what changes, and it can be undone."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install.agents import CONFIGS, entry_for
from skillwire.install.config_edit import apply_edit, lines_to_add, plan_connect, plan_undo
from skillwire.install.places import InstallScope

if TYPE_CHECKING:
    from pathlib import Path

WORDS = ["skillwire", "serve", "./my skills"]
EDITABLE = [agent for agent, config in CONFIGS.items() if config.format != "yaml"]


@pytest.fixture
def scope(tmp_path: Path) -> InstallScope:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    return InstallScope("global", tmp_path / "project", tmp_path / "home", {})


def connect(agent: str, scope: InstallScope, **options: Any) -> Any:
    entry = entry_for(CONFIGS[agent].shape, **(options or {"command": WORDS}))
    edit = plan_connect(agent, "skillwire", entry, scope)
    assert edit is not None
    return edit, apply_edit(edit)


def undo(agent: str, scope: InstallScope) -> Path | None:
    return apply_edit(plan_undo(agent, "skillwire", scope, lambda _: False))


def write(agent: str, scope: InstallScope, data: bytes) -> Path:
    path = scope.home / CONFIGS[agent].everywhere[0].removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["global", "project"])
def test_a_file_that_was_not_there_is_made_and_goes_again(kind: Any, scope: InstallScope, tmp_path: Path) -> None:
    scope = InstallScope(kind, scope.project, scope.home, {})
    for agent in EDITABLE:
        if kind == "project" and not CONFIGS[agent].project:
            with pytest.raises(NotFoundError):
                connect(agent, scope)
            continue
        edit, backup = connect(agent, scope)
        assert edit.is_new
        assert backup is None
        assert plan_connect(agent, "skillwire", entry_for(CONFIGS[agent].shape, command=WORDS), scope) is None
        assert apply_edit(plan_undo(agent, "skillwire", scope, lambda _: True)) is None
        assert snapshot(tmp_path) == {}, agent


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_all_else_stays_and_undoing_gives_the_very_bytes_back(agent: str, scope: InstallScope) -> None:
    config = CONFIGS[agent]
    path = scope.home / config.everywhere[0].removeprefix("~/")
    path.parent.mkdir(parents=True, exist_ok=True)
    old = {
        "json": b'{\n    // mine\n    "z": 1,\n    "mcpServers": {"b": {"env": {"TOKEN": "secret"}}}\n}',
        "toml": b'# mine\nmodel = "x"\n[mcp_servers.b]\ncommand = "y" # x\n[mcp_servers.b.env]\nTOKEN = "secret"',
    }[config.format]
    path.write_bytes(old)
    path.chmod(0o640)
    edit, backup = connect(agent, scope)
    assert backup.read_bytes() == old
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(backup.stat().st_mode) == 0o640
    now = path.read_bytes()
    assert b"mine" in now
    if config.format == "toml":
        assert now.startswith(old)
        assert "secret" not in "\n".join(edit.lines)
    undo(agent, scope)
    assert path.read_bytes() == old
    assert os.listdir(path.parent).count(path.name) == 1
    assert not backup.exists()


@pytest.mark.parametrize("agent", ["cursor", "codex"])
def test_undoing_keeps_what_others_changed_meanwhile(agent: str, scope: InstallScope) -> None:
    path = scope.home / CONFIGS[agent].everywhere[0].removeprefix("~/")
    path.parent.mkdir(parents=True)
    old, more = {
        "json": (b'{"mcpServers": {\n  "b": {}\n}}', (b'"b": {}', b'"b": {"x": 1}')),
        "toml": (b"[mcp_servers.b]\nx = 1\n", (b"x = 1", b"x = 2\n# theirs")),
    }[CONFIGS[agent].format]
    path.write_bytes(old)
    connect(agent, scope)
    path.write_bytes(path.read_bytes().replace(*more))
    undo(agent, scope)
    assert path.read_bytes() == old.replace(*more)


def test_a_table_that_was_changed_by_hand_is_left_to_hands(scope: InstallScope) -> None:
    connect("codex", scope)
    path = scope.home / ".codex/config.toml"
    path.write_text(path.read_text() + "[mcp_servers.skillwire.env]\nA = 'b'\n")
    with pytest.raises(FormatError) as caught:
        plan_undo("codex", "skillwire", scope, lambda _: False)
    assert caught.value.reference == "config-by-hand"


@pytest.mark.parametrize(
    ("agent", "data"),
    [
        ("codex", b'[mcp_servers.skillwire]\ncommand = "gh"\nargs = ["mcp"]\n'),
        ("codex", b'model = "x"\n[mcp_servers.skillwire]\ncommand = "gh"\nargs = ["mcp"]\n'),
        ("cursor", b'{"mcpServers": {"skillwire": {"url": "https://a.example/mcp"}}}'),
    ],
    ids=["toml", "toml-with-more", "json"],
)
def test_an_entry_of_others_is_kept_when_it_is_taken_out(agent: str, data: bytes, scope: InstallScope) -> None:
    path = write(agent, scope, data)
    kept = undo(agent, scope)
    assert kept is not None
    assert kept.read_bytes() == data
    assert b"skillwire" not in path.read_bytes()
    path.write_bytes(data)
    assert undo(agent, scope) == kept  # one copy of the same bytes is enough


@pytest.mark.parametrize(
    ("agent", "entry"),
    [
        ("cursor", {"command": "gh", "args": [], "env": {"TOKEN": "secret"}}),
        ("cursor", {"command": "gh"}),
        ("cursor", ["gh"]),
        ("claude-code", {"url": "https://a.example/mcp"}),
    ],
    ids=["with-variables", "without-arguments", "a-list", "without-a-type"],
)
def test_an_entry_that_connect_does_not_write_is_not_taken_out(
    agent: str, entry: Any, scope: InstallScope
) -> None:
    path = write(agent, scope, json.dumps({"mcpServers": {"skillwire": entry}}).encode())
    before = path.read_bytes()
    with pytest.raises(FormatError) as caught:
        plan_undo(agent, "skillwire", scope, lambda _: False)
    assert caught.value.reference == "config-by-hand"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "line", ["skillwire = 5", "skillwire = {command = 2020-01-01, args = []}"], ids=["number", "date"]
)
def test_an_entry_of_toml_that_cannot_be_ours_is_left_to_hands(line: str, scope: InstallScope) -> None:
    write("codex", scope, f"[mcp_servers]\n{line}\n".encode())
    with pytest.raises(FormatError) as caught:
        plan_undo("codex", "skillwire", scope, lambda _: False)
    assert caught.value.reference == "config-by-hand"


def test_variables_that_were_added_to_our_entry_are_not_lost(scope: InstallScope) -> None:
    """Written in our own style, they would look as if the copy of before were all that is needed."""
    path = write("cursor", scope, b'{\n  "mcpServers": {\n    "b": {}\n  }\n}\n')
    connect("cursor", scope)
    there = json.loads(path.read_text())
    there["mcpServers"]["skillwire"]["env"] = {"TOKEN": "secret"}
    path.write_text(json.dumps(there, indent=2) + "\n")
    with pytest.raises(FormatError):
        undo("cursor", scope)
    assert json.loads(path.read_text()) == there


def test_lines_end_as_they_end_in_the_file(scope: InstallScope) -> None:
    old = b"[mcp_servers.b]\r\nx = 1\r\n"
    path = write("codex", scope, old)
    connect("codex", scope)
    now = path.read_bytes()
    assert now.count(b"\n") == now.count(b"\r\n") == 6
    path.write_bytes(now + b"# theirs\r\n")
    undo("codex", scope)
    assert path.read_bytes() == old + b"# theirs\r\n"


def test_a_file_that_a_variable_moved_is_called_by_its_place(scope: InstallScope, tmp_path: Path) -> None:
    moved = InstallScope("global", scope.project, scope.home, {"CODEX_HOME": str(tmp_path / "elsewhere")})
    edit, _ = connect("codex", moved)
    path = tmp_path / "elsewhere/config.toml"
    assert edit.label == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    inside = InstallScope("global", scope.project, scope.home, {"CODEX_HOME": str(scope.home / "cod")})
    assert connect("codex", inside)[0].label == "~/cod/config.toml"


def test_a_file_that_cannot_be_removed_is_an_error_for_people(
    scope: InstallScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write into a folder that is read-only, so the call is made to fail."""
    connect("cursor", scope)
    edit = plan_undo("cursor", "skillwire", scope, lambda _: True)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.unlink", refuse)
    with pytest.raises(StoreError) as caught:
        apply_edit(edit)
    assert caught.value.reference == "write-failed"
    assert (scope.home / ".cursor/mcp.json").exists()


def test_words_that_are_no_text_are_refused(scope: InstallScope) -> None:
    with pytest.raises(FormatError):
        connect("cursor", scope, command=["x", "\udcff"])


def test_an_entry_of_that_name_is_not_overwritten(scope: InstallScope) -> None:
    connect("cursor", scope)
    with pytest.raises(FormatError) as caught:
        connect("cursor", scope, url="https://other.example/mcp")
    assert caught.value.reference == "config-taken"
    assert "~/.cursor/mcp.json" in caught.value.message
    assert "--undo" not in caught.value.hint  # it may be anybody's


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        pytest.param("cursor", "{", id="broken-json"),
        pytest.param("cursor", "\xff", id="not-text"),
        pytest.param("codex", "= 1", id="broken-toml"),
        pytest.param("codex", "mcp_servers = {}", id="inline-table"),
        pytest.param("codex", "mcp_servers = 1", id="number"),
        pytest.param("codex", "[[mcp_servers]]\nx = 1\n", id="list-of-tables"),
    ],
)
def test_a_file_that_cannot_be_changed_is_left_alone(agent: str, text: str, scope: InstallScope) -> None:
    path = scope.home / CONFIGS[agent].everywhere[0].removeprefix("~/")
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError) as caught:
        connect(agent, scope)
    assert caught.value.reference in ("config-invalid", "config-by-hand")
    assert path.read_bytes() == text.encode("latin-1")


def test_a_file_that_changes_between_showing_and_writing_is_not_overwritten(scope: InstallScope) -> None:
    edit = plan_connect("cursor", "skillwire", {"url": "U"}, scope)
    assert edit is not None
    path = write("cursor", scope, b"{}")
    with pytest.raises(StoreError):
        apply_edit(edit)
    assert path.read_text() == "{}"


def test_a_projects_file_that_leads_elsewhere_is_refused(scope: InstallScope) -> None:
    (scope.home / "theirs.json").write_text("{}")
    os.symlink(scope.home / "theirs.json", scope.project / ".mcp.json")
    with pytest.raises(FormatError):
        connect("claude-code", InstallScope("project", scope.project, scope.home, {}))
    assert (scope.home / "theirs.json").read_text() == "{}"


def test_a_persons_own_link_stays_a_link(scope: InstallScope) -> None:
    (scope.home / "dotfiles").mkdir()
    (scope.home / "dotfiles/claude.json").write_text("{}")
    os.symlink("dotfiles/claude.json", scope.home / ".claude.json")
    connect("claude-code", scope)
    assert (scope.home / ".claude.json").is_symlink()
    assert "skillwire" in json.loads((scope.home / "dotfiles/claude.json").read_text())["mcpServers"]


def test_the_file_that_is_there_is_the_one_that_is_changed(scope: InstallScope) -> None:
    folder = scope.home / ".config/opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.jsonc").write_text("{\n  // mine\n}")
    connect("opencode", scope)
    assert not (folder / "opencode.json").exists()
    assert "// mine" in (folder / "opencode.jsonc").read_text()


@pytest.mark.parametrize(
    ("before", "keys", "entry"),
    [
        ('{"mcp": {"mine": {"type": "local", "command": ["x"]}}}', ["mcp"], {"enabled": True}),
        ('{"mcp": {"servers": {"mine": {"type": "local", "command": ["x"]}}}}', ["mcp", "servers"], {}),
        ('{"mcp": {"timeout": 5}}', ["mcp", "servers"], {}),
        ("", ["mcp", "servers"], {}),
    ],
    ids=["version-1", "version-2", "no-servers", "empty"],
)
def test_a_file_of_an_older_opencode_stays_as_it_is_written(
    before: str, keys: list[str], entry: dict[str, Any], scope: InstallScope
) -> None:
    """Version 2 has its servers one level deeper, and reads those of version 1."""
    path = scope.home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text(before)
    connect("opencode", scope)
    there = json.loads(path.read_text())
    for key in keys:
        there = there[key]
    assert there["skillwire"] == {"type": "local", "command": WORDS, **entry}
    undo("opencode", scope)
    assert path.read_text() == before


def test_yaml_is_left_to_hands_when_undoing_too(scope: InstallScope) -> None:
    with pytest.raises(FormatError) as caught:
        plan_undo("goose", "skillwire", scope, lambda _: False)
    assert caught.value.reference == "config-by-hand"


def test_yaml_is_left_to_hands_with_the_lines_to_add(scope: InstallScope) -> None:
    entry = entry_for("goose", command=WORDS, name="skillwire")
    with pytest.raises(FormatError) as caught:
        plan_connect("goose", "skillwire", entry, scope)
    assert caught.value.reference == "config-by-hand"
    assert lines_to_add("goose", "skillwire", entry) == [
        "extensions:",
        "  skillwire:",
        '    name: "skillwire"',
        '    type: "stdio"',
        "    enabled: true",
        '    cmd: "skillwire"',
        '    args: ["serve", "./my skills"]',
        "    timeout: 300",
    ]


@pytest.mark.parametrize("name", ["", "a.b", "-x", "x" * 65], ids=["empty", "dot", "hyphen", "long"])
def test_a_name_that_could_be_read_otherwise_is_refused(name: str, scope: InstallScope) -> None:
    with pytest.raises(FormatError):
        plan_connect("codex", name, {"url": "U"}, scope)


def test_what_is_not_there_cannot_be_undone(scope: InstallScope) -> None:
    with pytest.raises(NotFoundError):
        plan_undo("cursor", "skillwire", scope, lambda _: False)
    with pytest.raises(NotFoundError):
        plan_undo("junie", "skillwire", scope, lambda _: False)
