"""The commands of a registry as processes: publishing that is killed, and who may read the stored token."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from e2e.commands import run
from starting import skillwire_command
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_publisher_that_is_killed_leaves_nothing_and_a_repeat_finishes(
    tmp_path: Path, environment: dict[str, str], registry: dict[str, str]
) -> None:
    url = registry["url"]
    assert run(environment, "registry", "login", url, typed=registry["token"] + "\n").returncode == 0
    stored = tmp_path / ".local/state/skillwire/registries.json"
    assert stored.stat().st_mode & 0o777 == 0o600
    assert run(environment, "registry", "namespace", "acme").returncode == 0
    files = {f"refunds/notes/{number}.md": os.urandom(20_000) for number in range(60)}
    folder = write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("refunds"), **files}) / "refunds"
    command = ["publish", str(folder), "--namespace", "acme", "--yes", "--json"]
    with subprocess.Popen(
        [*skillwire_command(), *command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the plan is shown just before the upload
        process.kill()
    history = run(environment, "registry", "history", "acme/refunds", "--json")
    if history.returncode == 0:  # it was quicker than the signal
        assert len(json.loads(history.stdout)["versions"]) == 1
    else:
        assert json.loads(history.stdout)["error"]["reference"] == "skill-unknown"
    again = run(environment, *command)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["version"] == "0.1.0"
    assert run(environment, *command).returncode == 0
    document = json.loads(run(environment, "registry", "history", "acme/refunds", "--json").stdout)
    assert [(each["version"], each["channels"]) for each in document["versions"]] == [("0.1.0", ["stable"])]
    faults = run(environment, "registry", "fsck", "--state", str(tmp_path / "server"), "--json")
    assert json.loads(faults.stdout) == {"faults": []}


def test_a_skill_with_errors_is_not_published(
    tmp_path: Path, environment: dict[str, str], registry: dict[str, str]
) -> None:
    environment |= {"SKILLWIRE_REGISTRY": registry["url"], "SKILLWIRE_TOKEN": registry["token"]}
    assert run(environment, "registry", "namespace", "acme").returncode == 0
    folder = write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("other")}) / "refunds"
    done = run(environment, "publish", str(folder), "--namespace", "acme", "--yes", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["reference"] == "skill-has-problems"
    write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("refunds")})
    asked = run(environment, "publish", str(folder), "--namespace", "acme", "--json")
    assert asked.returncode == 1
    assert json.loads(asked.stdout)["error"]["reference"] == "publish-not-confirmed"


def test_where_the_user_may_not_publish_is_told_before_the_question(
    tmp_path: Path, environment: dict[str, str], registry: dict[str, str]
) -> None:
    run(environment, "registry", "login", registry["url"], typed=registry["token"] + "\n")
    folder = write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("refunds")}) / "refunds"
    refused = run(environment, "publish", str(folder), "--namespace", "nowhere", "--json")
    assert json.loads(refused.stdout)["error"]["reference"] == "namespace-not-found"
    assert run(environment, "registry", "namespace", "acme").returncode == 0
    asked = run(environment, "publish", str(folder), "--namespace", "acme", "--json")
    assert json.loads(asked.stdout)["error"]["reference"] == "publish-not-confirmed"


def test_the_log_tells_what_was_before_and_after(
    tmp_path: Path, environment: dict[str, str], registry: dict[str, str]
) -> None:
    def at(*words: str) -> str:
        done = run(environment, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(environment, "registry", "login", registry["url"], typed=registry["token"] + "\n")
    at("registry", "namespace", "acme")
    at("registry", "namespace", "acme", "--public")
    at("registry", "grant", "acme", "user:ben", "publisher")
    at("registry", "grant", "acme", "user:ben", "owner")
    for body in ("One.\n", "Two.\n"):
        files = {"refunds/SKILL.md": skill_md("refunds", body=body)}
        at("publish", str(write_tree(tmp_path / "skills", files) / "refunds"), "--namespace", "acme", "--yes")
    at("registry", "yank", "acme/refunds@0.1.1", "--reason", "pays twice")
    at("registry", "yank", "acme/refunds@0.1.1", "--undo")
    at("registry", "deprecate", "acme/refunds", "--reason", "moved", "--instead", "acme/money")
    at("registry", "deprecate", "acme/refunds", "--undo")
    rows = [row.partition(" ")[2] for row in at("registry", "audit", "acme").splitlines()]
    assert {row.partition(": ")[0] for row in rows} == {"user:admin from 127.0.0.1"}
    details = [row.partition(": ")[2] for row in rows]
    assert details[:8] == [
        "undeprecated acme/refunds: before: instead=acme/money message=moved",
        "deprecated acme/refunds: instead: acme/money, message: moved",
        "unyanked acme/refunds@0.1.1: before: pays twice",
        "yanked acme/refunds@0.1.1: channels: stable=0.1.0, reason: pays twice",
        "published acme/refunds@0.1.1: stable: 0.1.0 → 0.1.1",
        "published acme/refunds@0.1.0: stable: nothing → 0.1.0",
        "role-changed acme: publisher → owner, principal: user:ben",
        "role-changed acme: nothing → publisher, principal: user:ben",
    ]
    assert details[8] == "namespace-changed acme: public: False → True"
