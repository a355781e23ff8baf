"""What an operator names, read and checked before anything is started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.errors import FormatError, NotFoundError
from skillwire.gateway.config import plan_gateway

if TYPE_CHECKING:
    from pathlib import Path

WEB = {"url": "https://example.com/mcp"}


def servers(tmp_path: Path, **entries: object) -> Path:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    return path


def policy(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(text)
    return path


@rule("O1")
def test_servers_and_folders_have_labels(tmp_path: Path) -> None:
    """Those that 'skillwire approve' has for the same file."""
    config = servers(tmp_path, **{"My Server": WEB, "b": WEB})
    file = policy(tmp_path, '[upstream.mine]\nfolder = "tree"\n[upstream.b]\nenabled = false')
    plan = plan_gateway(policy=file, config=config, folders=[tmp_path / "more"])
    assert set(plan.servers) == {"My-Server"}
    assert plan.folders == {"mine": tmp_path / "tree", "more": tmp_path / "more"}


def test_the_policy_may_name_the_servers_relative_to_itself(tmp_path: Path) -> None:
    servers(tmp_path, a=WEB)
    assert set(plan_gateway(policy=policy(tmp_path, 'servers = "servers.json"')).servers) == {"a"}


@rule("O1", "N1")
@pytest.mark.parametrize(
    ("entries", "text", "folders", "reference", "named"),
    [
        pytest.param({"a b": WEB, "a-b": WEB}, "", [], "label-duplicate", ["'a b'", "'a-b'"], id="same-label"),
        pytest.param(
            {"a": WEB},
            '[upstream.a]\nfolder = "x"',
            [],
            "label-duplicate",
            ["'a'"],
            id="server-and-folder-of-policy",
        ),
        pytest.param({"a": WEB}, "", ["a"], "label-duplicate", ["'a'"], id="server-and-folder"),
        pytest.param({}, "", ["x/a", "y/a"], "label-duplicate", ["'a'"], id="two-folders"),
        pytest.param({"a": WEB, "A": WEB}, "", [], "label-duplicate", ["'a'", "'A'"], id="servers-differ-by-case"),
        pytest.param({"a": WEB}, "", ["A"], "label-duplicate", ["'a'", "'A'"], id="other-case"),
        pytest.param({"a": WEB}, "[upstream.b]", [], "upstream-unknown", ["'b'"], id="upstream"),
        pytest.param(
            {"a": WEB}, '[[deny]]\nupstream = "b*"\npath = "x"', [], "upstream-unknown", ["'b*'"], id="pattern"
        ),
        pytest.param({"a": {}}, "", [], "server-invalid", ["'a'"], id="empty-entry"),
        pytest.param({"a": WEB, "b": "https://x/"}, "", [], "server-invalid", ["'b'"], id="entry-is-text"),
        pytest.param(
            {"a": {**WEB, "headers": {"X": "y\n"}}}, "", [], "server-invalid", ["'a'", "'headers.X'"], id="header"
        ),
        pytest.param({}, "", [], "nothing-to-serve", [], id="nothing"),
        pytest.param({"a": WEB}, "[upstream.a]\nenabled = false", [], "nothing-to-serve", [], id="all-disabled"),
    ],
)
def test_a_mistake_is_found_before_anything_is_started(
    tmp_path: Path, entries: dict[str, object], text: str, folders: list[str], reference: str, named: list[str]
) -> None:
    """The message names what does not fit."""
    with pytest.raises(FormatError) as caught:
        plan_gateway(
            policy=policy(tmp_path, text),
            config=servers(tmp_path, **entries),
            folders=[tmp_path / folder for folder in folders],
        )
    assert caught.value.reference == reference
    assert all(part in caught.value.message for part in named)
    assert caught.value.hint


@rule("O1", "N1")
def test_two_servers_with_one_label_in_one_file_are_an_error(tmp_path: Path) -> None:
    """A reader of JSON would not notice."""
    config = tmp_path / "servers.json"
    config.write_text('{"mcpServers": {"a": {"url": "https://x/1"}, "a": {"url": "https://x/2"}}}')
    with pytest.raises(FormatError) as caught:
        plan_gateway(config=config)
    assert "'a'" in caught.value.message
    assert caught.value.reference == "label-duplicate"


@rule("B3")
@pytest.mark.parametrize(
    "setting",
    [
        "max-bytes = 9",
        "max-skills = 9",
        "max-file-bytes = 9",
        "timeout = 9",
        'dialect = "index"',
        'materialize = ["*"]',
    ],
    ids=lambda setting: setting.split()[0],
)
def test_a_setting_that_a_folder_does_not_have_is_an_error(tmp_path: Path, setting: str) -> None:
    """A bound that is written down and not kept is worse than none."""
    for folder, folders in (('folder = "tree"', []), ("", [tmp_path / "tree"])):
        file = policy(tmp_path, f"[upstream.tree]\n{setting}\n{folder}")
        with pytest.raises(FormatError) as caught:
            plan_gateway(policy=file, folders=folders)
        assert caught.value.reference == "policy-invalid"
        assert f"'upstream.tree.{setting.split()[0]}'" in caught.value.message
        assert "deny, enabled, folder, skills" in caught.value.hint


def test_what_a_folder_does_have_is_taken(tmp_path: Path) -> None:
    file = policy(tmp_path, '[upstream.tree]\nfolder = "tree"\nskills = ["a/*"]\ndeny = ["a/b"]\nenabled = true')
    assert set(plan_gateway(policy=file).folders) == {"tree"}


def test_a_server_that_is_switched_off_is_not_looked_at(tmp_path: Path) -> None:
    config = servers(tmp_path, a=WEB, old={"url": "https://x/", "type": "sse"})
    assert set(
        plan_gateway(policy=policy(tmp_path, "[upstream.old]\nenabled = false"), config=config).servers
    ) == {"a"}


def test_a_file_of_servers_that_is_not_there_is_looked_for_where_it_was_named(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as of_policy:
        plan_gateway(policy=policy(tmp_path, 'servers = "nope.json"'))
    with pytest.raises(NotFoundError) as of_option:
        plan_gateway(config=tmp_path / "nope.json")
    assert "'servers'" in of_policy.value.hint
    assert "--config" not in of_policy.value.hint
    assert "path" in of_option.value.hint


def test_the_servers_are_named_once(tmp_path: Path) -> None:
    config = servers(tmp_path, a=WEB)
    with pytest.raises(FormatError) as caught:
        plan_gateway(policy=policy(tmp_path, 'servers = "servers.json"'), config=config)
    assert "--config" in caught.value.message + caught.value.hint


def test_a_policy_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        plan_gateway(policy=tmp_path / "gateway.toml")
    assert "gateway.toml" in caught.value.message
    (tmp_path / "gateway.toml").write_bytes(b"# " + b"x" * 2_000_000)
    with pytest.raises(FormatError):
        plan_gateway(policy=tmp_path / "gateway.toml")


def test_no_secret_is_in_a_plans_repr(tmp_path: Path) -> None:
    config = servers(tmp_path, a={**WEB, "headers": {"Authorization": "Bearer sk-123"}})
    assert "sk-123" not in repr(plan_gateway(config=config))
