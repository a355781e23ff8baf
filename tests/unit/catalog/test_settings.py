"""What a folder says about its skills in ``skillwire.toml``: hostile until it is checked (R3, R4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.catalog.check import Checker
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.settings import SETTINGS_FILE, parse_settings
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.cli.printer import Printer
from skillwire.cli.server_session import print_served
from skillwire.server.skills import Skills
from skillwire.skill.entry import SkillMeta
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

TREE = {"acme/pay/SKILL.md": skill_md("pay"), "acme/pay/notes.md": b"x", "draft/SKILL.md": skill_md("draft")}
PROVENANCE = "io.modelcontextprotocol.skills/provenance"
GOOD = f"""\
[skills."acme/pay"]
audience = ["user", "assistant"]
meta = {{ "{PROVENANCE}" = {{ from = "acme", at = [1, 2.5, true] }} }}

[skills.draft]
listed = false
"""


def folder(root: Path, settings: str | bytes) -> Path:
    data = settings.encode() if isinstance(settings, str) else settings
    return write_tree(root, {**TREE, SETTINGS_FILE: data})


def references(catalog: DirectoryCatalog) -> list[tuple[str, str]]:
    return [(problem.reference, problem.skill or "") for problem in catalog.snapshot().problems()]


def loaded(root: Path) -> DirectoryCatalog:
    catalog = DirectoryCatalog(root)
    catalog.load()
    return catalog


@rule("R3", "R4", "L2")
async def test_the_file_sets_audience_meta_and_listing(tmp_path: Path) -> None:
    catalog = loaded(folder(tmp_path, GOOD))
    assert catalog.snapshot().keys == ["acme/pay"]
    assert references(catalog) == []
    pay, draft = [await catalog.get_skill(f"skill://{path}/SKILL.md") for path in ("acme/pay", "draft")]
    assert (pay.meta.audience, pay.meta.meta) == (
        ("user", "assistant"),
        {PROVENANCE: {"from": "acme", "at": [1, 2.5, True]}},
    )
    assert draft.meta == SkillMeta(listed=False)


def deep(depth: int) -> str:
    return "meta = { 'com.example/x' = " + "[" * depth + "]" * depth + " }"


# What is wrong in one table concerns one skill.
WRONG = {
    "unknown-key": "lsited = false",
    "listed-is-text": 'listed = "no"',
    "audience-is-text": 'audience = "user"',
    "audience-is-empty": "audience = []",
    "audience-unknown": 'audience = ["everybody"]',
    "audience-of-lists": "audience = [[]]",
    "meta-is-text": 'meta = "x"',
    "meta-key-plain": "meta = { owner = 1 }",
    "meta-key-reserved": "meta = { 'io.modelcontextprotocol/x' = 1 }",
    "meta-key-of-the-gateway": "meta = { 'io.github.skillwire/origin' = 'me' }",
    "meta-is-a-date": "meta = { 'com.example/x' = 2026-01-01 }",
    "meta-is-not-a-number": "meta = { 'com.example/x' = nan }",
    "meta-is-too-large": "meta = { 'com.example/x' = 0x" + "f" * 5000 + " }",
    "meta-is-too-deep": deep(40),
}


@rule("R4", "B1")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_skill_with_a_wrong_table_is_reported_and_not_listed(tmp_path: Path, wrong: str) -> None:
    catalog = loaded(folder(tmp_path, f'[skills."acme/pay"]\n{wrong}\n'))
    assert references(catalog) == [("settings-invalid", "acme/pay")]
    assert catalog.snapshot().keys == ["draft"]
    assert catalog.snapshot().record("acme/pay") is not None


# What is wrong with the file concerns all.
BROKEN = {
    "no-toml": b"[skills",
    "no-text": b"\xff",
    "unknown-part": b"[skill.draft]\nlisted = false\n",
    "skills-is-a-list": b"skills = []",
    "too-large": b"#" * (64 * 1024 + 1),
    "nests-for-ever": b"x = " + b"[" * 60_000,
    "a-key-of-many-parts": b".".join([b"a"] * 32_000) + b" = 1",  # minutes, if it is parsed
    "a-number-of-many-digits": b"x = " + b"1" * 5000,
}


@rule("R4", "B1")
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_reported_and_publishes_nothing(tmp_path: Path, data: bytes) -> None:
    catalog = loaded(folder(tmp_path, data))
    assert references(catalog) == [("settings-invalid", "")]
    assert catalog.snapshot().keys == []
    assert catalog.snapshot().record("draft") is not None


@rule("E4", "R4")
def test_a_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text(GOOD)
    root = write_tree(tmp_path / "skills", TREE)
    (root / SETTINGS_FILE).symlink_to(tmp_path / "elsewhere.toml")
    assert references(loaded(root)) == [("settings-invalid", "")]


@rule("R4")
def test_the_file_is_never_a_file_of_a_skill(tmp_path: Path) -> None:
    """Not even if the folder that is served is a skill. Further down it is a file like any other."""
    tree = {
        "SKILL.md": skill_md("tool"),
        SETTINGS_FILE: b"[skills.tool]\nlisted = false\n",
        f"sub/{SETTINGS_FILE}": b"?",
    }
    catalog = loaded(write_tree(tmp_path / "tool", tree))
    record = catalog.snapshot().record("tool")
    assert record is not None
    assert set(record.files) == {"SKILL.md", f"sub/{SETTINGS_FILE}"}
    assert not record.entry.listed
    (tmp_path / "tool" / SETTINGS_FILE).write_text("listed = false")
    report = Checker(str(tmp_path / "tool")).run()
    assert [report.place(problem.file) for problem in report.problems] == [tmp_path / "tool" / SETTINGS_FILE]


@rule("R4", "S1")
async def test_a_change_of_the_file_is_picked_up_by_every_view(tmp_path: Path) -> None:
    root = write_tree(tmp_path, TREE)
    catalog = loaded(root)
    view = VisibleCatalog(catalog, ["acme", "draft"])
    assert len((await view.list_skills()).items) == 2
    (root / SETTINGS_FILE).write_text(GOOD)
    change = await catalog.refresh([SETTINGS_FILE])
    assert (change.changed, change.removed) == ({"skill://acme/pay/SKILL.md"}, {"skill://draft/SKILL.md"})
    assert [entry.path for entry in (await view.list_skills()).items] == ["acme/pay"]
    (root / SETTINGS_FILE).unlink()
    assert (await catalog.refresh([SETTINGS_FILE])).added == {"skill://draft/SKILL.md"}
    assert len((await view.list_skills()).items) == 2


@rule("R4")
async def test_a_path_without_a_skill_is_reported_as_long_as_there_is_none(tmp_path: Path) -> None:
    root = folder(tmp_path, "[skills.later]\nlisted = false\n")
    catalog = loaded(root)
    assert references(catalog) == [("settings-unmatched", "")]
    write_tree(root, {"later/SKILL.md": skill_md("later")})
    await catalog.refresh(["later/SKILL.md"])
    assert references(catalog) == []
    assert "later" not in catalog.snapshot().keys


@rule("R4")
async def test_check_and_serve_report_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = folder(tmp_path, '[skills.draft]\nlisted = "no"\n[skills.gone]\n')
    report = Checker(str(root)).run()
    assert [problem.reference for problem in report.problems] == ["settings-invalid", "settings-unmatched"]
    assert (report.errors, report.skills) == (1, 2)
    await print_served(DirectoryCatalog(root), Printer())
    said = capsys.readouterr().err
    assert "[settings-invalid]" in said
    assert "[settings-unmatched]" in said


@rule("R4")
async def test_code_decides_with_what_the_file_says(tmp_path: Path) -> None:
    def describe(path: str, meta: SkillMeta) -> SkillMeta:
        return replace(meta, listed=True, meta={**meta.meta, "com.example/path": path})

    skills = Skills(folder(tmp_path, GOOD), describe=describe)
    found = {entry.path: entry.meta async for entry in skills.catalog.entries()}
    assert found["draft"] == SkillMeta(meta={"com.example/path": "draft"})
    assert set(found["acme/pay"].meta) == {PROVENANCE, "com.example/path"}


def test_repeated_audiences_are_one() -> None:
    settings = parse_settings(b'[skills.a]\naudience = ["user", "user"]\n')
    assert settings.about("a").audience == ("user",)
