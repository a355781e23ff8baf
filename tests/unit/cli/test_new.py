"""``new``, ``check --fix`` and ``explain``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import skillwire
from skillwire.cli.explain import all_references, reports_of
from skillwire.cli.main import run
from skillwire.skill.diagnostics import KINDS
from trees import write_tree


@pytest.mark.parametrize("words", [[], ["--description", "Does: it # well"], ["--description", "123"]])
def test_a_new_skill_passes_a_strict_check(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("customer-refunds", "123", "true"):
        assert run(["new", name, "--in", "skills", *words]) == 0
    assert run(["check", "skills", "--strict"]) == 0
    capsys.readouterr()
    assert run(["list", "skills", "--json"]) == 0
    skills = json.loads(capsys.readouterr().out)["skills"]
    assert [skill["frontmatter"]["name"] for skill in skills] == ["123", "customer-refunds", "true"]
    assert not words or {skill["frontmatter"]["description"] for skill in skills} == {words[1]}


@pytest.mark.parametrize(("name", "reference"), [("Big Name", "name-invalid"), ("there", "folder-exists")])
def test_a_name_that_is_invalid_or_taken_is_refused(
    name: str, reference: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert run(["new", name]) == 2
    assert f"[{reference}]" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_fix_repairs_the_files_and_checks_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = b"---\nname: other\ndescription: Use it: now\n---\nDo it.\n"
    write_tree(tmp_path, {"team/one/SKILL.md": bad, "two/SKILL.md": bad.replace(b"other", b"two")})
    (tmp_path / "two/SKILL.md").chmod(0o640)
    monkeypatch.chdir(tmp_path / "team/one")
    assert run(["check", "--fix"]) == 0
    assert Path("SKILL.md").read_text() == '---\nname: one\ndescription: "Use it: now"\n---\nDo it.\n'
    assert run(["check", str(tmp_path)]) == 1
    assert run(["check", str(tmp_path), "--fix"]) == 0
    assert (tmp_path / "two/SKILL.md").stat().st_mode & 0o777 == 0o640
    assert "SKILL.md" in capsys.readouterr().err


def test_every_kind_of_problem_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(KINDS) <= set(all_references())
    for reference, kind in list(KINDS.items())[:5]:
        assert run(["explain", reference]) == 0
        assert kind.title in capsys.readouterr().out


def test_every_error_is_explained_with_its_hint(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "[name-mismatch]", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert any("rename the folder" in hint for hint in found["hints"])
    assert run(["explain", "target-unknwn"]) == 2
    assert "target-unknown" in capsys.readouterr().err


def test_no_reference_of_an_error_is_missing() -> None:
    """Every error class is called with its reference first, wherever it is raised."""
    sources = [path.read_text() for path in Path(skillwire.__file__).parent.rglob("*.py")]
    raised = {name for text in sources for name in re.findall(r'\w+Error\(\s*"([a-z0-9]+(?:-[a-z0-9]+)+)"', text)}
    assert len(raised) > 100
    assert raised <= {report.reference for report in reports_of(sources)}
