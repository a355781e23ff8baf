"""``skillwire mirror`` as a process: a folder, a repository and a server, and what is printed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from e2e.commands import run
from git_server import Repository
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TREE = {"refunds/SKILL.md": skill_md("refunds"), "team/release/SKILL.md": skill_md("release")}


@pytest.fixture
def signed_in(environment: dict[str, str], registry: dict[str, str]) -> dict[str, str]:
    """The environment of an administrator of a registry with the namespace ``vendor``."""
    environment |= {"SKILLWIRE_REGISTRY": registry["url"], "SKILLWIRE_TOKEN": registry["token"]}
    assert run(environment, "registry", "namespace", "vendor").returncode == 0
    return environment


def test_a_folder_is_mirrored_reviewed_and_mirrored_again(tmp_path: Path, signed_in: dict[str, str]) -> None:
    skills = write_tree(tmp_path / "skills", TREE)
    words = ("mirror", str(skills), "--namespace", "vendor", "--json")
    done = run(signed_in, *words)
    assert done.returncode == 0, done.stderr
    found = {each["path"]: each for each in json.loads(done.stdout)["skills"]}
    assert {path: each["outcome"] for path, each in found.items()} == {
        "vendor/refunds": "waits",
        "vendor/team/release": "waits",
    }
    made = run(signed_in, "registry", "token", "rita", "--for", "user:rita", "--json")
    assert run(signed_in, "registry", "grant", "vendor", "user:rita", "reviewer").returncode == 0
    review = str(found["vendor/refunds"]["review"])
    assert run(signed_in, "registry", "reviews", review, "--approve").returncode == 1  # the one who mirrored
    rita = signed_in | {"SKILLWIRE_TOKEN": json.loads(made.stdout)["secret"]}
    assert run(rita, "registry", "reviews", review, "--approve").returncode == 0
    shutil.rmtree(skills / "team")
    again = run(signed_in, *words)
    assert again.returncode == 1
    assert {each["path"]: each["outcome"] for each in json.loads(again.stdout)["skills"]} == {
        "vendor/refunds": "unchanged",
        "vendor/team/release": "gone",
    }
    one = run(signed_in, "mirror", str(skills), "refunds", "--namespace", "vendor")
    assert (one.returncode, "unchanged" in one.stdout) == (0, True)
    assert str(tmp_path) not in run(signed_in, "registry", "history", "vendor/refunds", "--json").stdout


def test_a_repository_records_its_commit(tmp_path: Path, signed_in: dict[str, str]) -> None:
    repository = Repository(tmp_path / "repository", TREE)
    done = run(signed_in, "mirror", f"{repository.folder}@main", "--namespace", "vendor/git", "--json")
    assert done.returncode == 0, done.stderr
    history = json.loads(run(signed_in, "registry", "history", "vendor/git/refunds", "--json").stdout)
    source = history["versions"][0]["source"]
    assert source["mirror"] == "repository repository"
    assert len(source["commit"]) == 40


def test_a_server_is_mirrored_and_wrong_words_are_explained(
    tmp_path: Path, signed_in: dict[str, str], registry: dict[str, str]
) -> None:
    folder = write_tree(tmp_path / "one", {"own/SKILL.md": skill_md("own")}) / "own"
    assert run(signed_in, "publish", str(folder), "--namespace", "vendor", "--yes").returncode == 0
    done = run(signed_in, "mirror", registry["mcp"], "--namespace", "vendor/copies", "--json")
    assert done.returncode == 0, done.stderr
    [copied] = json.loads(done.stdout)["skills"]
    assert (copied["path"], copied["outcome"]) == ("vendor/copies/vendor/own", "waits")
    for words, reference in [
        (("mirror", str(folder)), "namespace-missing"),
        (("mirror", str(folder), "--namespace", "absent"), "namespace-not-found"),
    ]:
        failed = run(signed_in, *words, "--json")
        assert failed.returncode in (1, 2)
        assert reference in failed.stdout
