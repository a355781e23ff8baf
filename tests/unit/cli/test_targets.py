"""An archive wherever a folder can be named: I2, I3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from archives import pack_tar_gz, pack_zip
from rules import rule
from skillwire import connect
from skillwire.cli.main import run
from starting import skillwire_command
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    "SKILL.md": skill_md("pdf-tools", body="See [more](more.md) and [this](missing.md).\n"),
    "more.md": b"# More\n",
}
PACK = {"pdf.zip": pack_zip, "pdf.tar.gz": pack_tar_gz, "pdf.tgz": pack_tar_gz}


def packed(folder: Path, name: str = "pdf.zip") -> str:
    (folder / name).write_bytes(PACK[name](FILES))
    return name


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.zip").write_bytes(pack_zip({**FILES, "../out": b"x"}))
    return "bad.zip"


@rule("I2")
@pytest.mark.parametrize("name", PACK)
def test_a_packed_skill_is_listed_verified_and_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    archive = packed(tmp_path, name)
    assert run(["list", archive, "--json"]) == 0
    [entry] = json.loads(capsys.readouterr().out)["skills"]
    assert entry["uri"] == "skill://pdf-tools/SKILL.md"
    assert run(["verify", archive]) == 0
    capsys.readouterr()
    assert run(["list", "--tree", archive]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith(f"{archive}\n")
    assert "more.md" in drawn
    assert run(["read", archive, "pdf-tools/more.md"]) == 0
    assert capsys.readouterr().out == "# More\n"


@rule("U6", "I2")
def test_a_packed_skill_is_checked_like_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the place inside the archive, and the line."""
    monkeypatch.chdir(tmp_path)
    archive = packed(tmp_path)
    assert run(["check", archive]) == 1
    out = capsys.readouterr().out
    assert f"{archive}/SKILL.md:6:" in out
    assert "missing.md" in out
    assert "See [more](more.md)" in out


@rule("I3")
@pytest.mark.parametrize("verb", ["list", "check", "verify"])
def test_what_is_refused_is_named_with_its_reason(verb: str, bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing of it is shown."""
    assert run([verb, bad]) == 1
    said = "".join(capsys.readouterr())
    assert "bad.zip" in said
    assert "archive-refused" in said
    assert "'../out'" in said
    assert "pdf-tools" not in said


@pytest.mark.parametrize("verb", ["list", "check", "serve"])
def test_an_archive_that_does_not_exist_is_a_usage_error(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([verb, str(tmp_path / "nothing.zip")]) == 2
    assert "hint:" in capsys.readouterr().err


@rule("I2", "I3")
@pytest.mark.slow  # two processes
@pytest.mark.anyio
async def test_folders_and_archives_are_served_by_one_command(bad: str, tmp_path: Path) -> None:
    """Under one prefix, and a bad one costs itself only."""
    write_tree(tmp_path / "skills", small_tree())
    places = [str(tmp_path / name) for name in ("skills", packed(tmp_path), bad)]
    words = [*skillwire_command(), "serve", *places]
    async with connect([*words, "--prefix", "team"]) as client:
        entries = {entry.path: entry async for entry in client.list_skills()}
        assert len(entries) == 7
        entry = await client.get_skill(entries["team/pdf-tools"].uri)
        assert (await client.read_skill(entry)).data == FILES["SKILL.md"]
    async with connect(words, dialect="index") as client:
        entry = await client.get_skill("skill://pdf-tools/SKILL.md")
        assert entry.is_complete
        assert (await client.read_resource(entry, "skill://pdf-tools/more.md")).data == b"# More\n"
