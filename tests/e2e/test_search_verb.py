"""``skillwire search`` on folders and on real servers: what it finds, says and returns."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.cli.main import run
from starting import skillwire_command
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    tree = {
        "acme/refunds/SKILL.md": skill_md("refunds", "Gives customers their money back.", "Check the invoice.\n"),
        "pdf-forms/SKILL.md": skill_md("pdf-forms", "Completes documents.", "Press \x1b[31m Escape.\n"),
        "secret/SKILL.md": skill_md("secret", "About an invoice too."),
    }
    return write_tree(tmp_path / "skills", tree)


def serving(root: Path) -> list[str]:
    return ["--", *skillwire_command(), "serve", str(root), "--unlisted", "secret"]


def test_a_folder_is_searched_with_its_bodies(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", str(root), "my", "customer", "wants", "the", "money", "back"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "acme/refunds\tGives customers their money back.\tGives customers their money back."
    ]
    assert run(["search", str(root), "escape"]) == 0
    assert "Press [31m Escape." in capsys.readouterr().out  # nothing that acts on a terminal


def test_an_archive_is_searched_with_its_bodies(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = shutil.make_archive("pdf-forms", "zip", root / "pdf-forms")
    assert run(["search", archive, "escape"]) == 0
    out, err = capsys.readouterr()
    assert [line.split("\t")[0] for line in out.splitlines()] == ["pdf-forms"]
    assert "--bodies" not in err


@rule("V5", "L2")
def test_a_servers_files_are_read_only_if_asked_for(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is fetched ahead of need, and what is not listed is not found."""
    assert run(["search", "invoice", *serving(root)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert "--bodies" in err
    assert run(["search", "invoice", "--bodies", *serving(root)]) == 0
    out, err = capsys.readouterr()
    assert [line.split("\t")[0] for line in out.splitlines()] == ["acme/refunds"]
    assert "--bodies" not in err


def test_programs_get_a_document(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", str(root), "--limit", "1", "--json", "pdf", " forms"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["query"], document["bodies"]) == ("pdf forms", True)
    [hit] = document["hits"]
    assert (hit["uri"], hit["name"]) == ("skill://pdf-forms/SKILL.md", "pdf-forms")
    assert set(hit) == {"uri", "name", "description", "score", "snippet"}


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param(["  "], "query-missing", id="no-query"),
        pytest.param(["a", "--limit", "0"], "usage", id="limit"),
    ],
)
def test_a_wrong_word_is_refused(
    root: Path, words: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["search", str(root), *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"[{reference}]" in err


def test_punctuation_finds_nothing_and_is_no_error(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", str(root), '"*:(']) == 0
    assert capsys.readouterr().out == ""
