"""O2, B6: no text of a stranger changes the shape of what a model is told."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from rules import rule
from skillwire.skill.entry import DYNAMIC, SkillEntry
from skillwire.skill.hidden import escape_text
from skillwire.skill.model import build_catalog, build_summary, estimate_tokens

MARKUP = st.lists(
    st.sampled_from(["<", ">", "&", "</", "/>", "]]>", "<!--", "-->", "<![CDATA[", "&lt;", "&#0;", "&#x1b;",
                     "<?", "?>", '"', "'", "skill", "available_skills", "description", "\n", "\x00",
                     "\ud800", "\u2028", " ", "a"]),
    max_size=12,
).map("".join)  # fmt: skip
ANY = st.text(st.characters(), max_size=40) | MARKUP


def entry(name: str, description: str) -> SkillEntry:
    return SkillEntry("skill://a/b/SKILL.md", {"name": name, "description": description}, DYNAMIC)


@rule("O2")
@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=3), ANY, ANY)
def test_a_catalog_has_one_element_for_each_skill_whatever_is_in_them(
    skills: list[tuple[str, str]], server: str, tool: str
) -> None:
    entries = [entry(name, description) for name, description in skills]
    block = build_catalog(entries, tool_name=tool, server_name=server, server_in_entries=True)
    root = ElementTree.fromstring(block[block.index("<available_skills>") :])
    assert [[field.tag for field in skill] for skill in root] == [
        ["name", "path", "server", "description", "uri"] for _ in skills
    ]
    for skill, (_, description) in zip(root, skills, strict=True):
        shown = skill.findtext("description") or ""
        assert "\n" not in shown
        assert re.findall(r"[!-~]", shown) == re.findall(r"[!-~]", description)


@rule("O2")
@given(ANY)
def test_escaped_text_is_text_and_reads_back(text: str) -> None:
    """But for what XML cannot carry, nothing is lost."""
    escaped = escape_text(text)
    assert not set("<>\"'") & set(escaped)
    read = ElementTree.fromstring(f"<x y='{escaped}'>{escaped}</x>")
    assert visible(read.text or "") == visible(text)


def visible(text: str) -> str:
    """What a person sees, and what XML must carry."""
    lines = re.sub(r"\r\n?", "\n", text)
    return "".join(
        character
        for character in lines
        if character != "\ufffd" and (character.isprintable() or character in "\n\t")
    )


@rule("O2")
@given(st.lists(st.tuples(ANY, ANY), max_size=4))
def test_a_summary_has_as_many_lines_as_skills(skills: list[tuple[str, str]]) -> None:
    """Whatever counts as the end of a line somewhere."""
    summary = build_summary([entry(name, description) for name, description in skills])
    assert len(summary.splitlines()) == len(skills)
    assert all(line.startswith("- ") for line in summary.splitlines())


@rule("V5")
@given(ANY, ANY)
def test_an_estimate_is_made_of_anything(name: str, description: str) -> None:
    estimate = estimate_tokens(entry(name, description))
    assert estimate.listed > 0
    assert (estimate.loaded, estimate.everything) == (None, None)
