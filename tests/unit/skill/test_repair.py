"""Repairs of a SKILL.md: they change what is wrong, and nothing else."""

from __future__ import annotations

import pytest

from rules import rule
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.repair import repair_skill_md

BODY = "---\nDo: it.\r\n"


def repaired(fields: str, folder: str = "refunds") -> tuple[str, int]:
    data, changes = repair_skill_md(f"---\n{fields}{BODY}".encode(), folder)
    assert data.decode().startswith("---\n")
    assert data.decode().endswith(BODY)
    return data.decode()[4 : -len(BODY)], len(changes)


@rule("F2", "F3", "U3")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("name: other\ndescription: d\n", "name: refunds\ndescription: d\n", id="name"),
        pytest.param("description: d\n", "name: refunds\ndescription: d\n", id="no-name"),
        pytest.param(
            "name: refunds\ndescription: Use it: now # really\n",
            'name: refunds\ndescription: "Use it: now # really"\n',
            id="quoting",
        ),
        pytest.param(
            "name: refunds\nallowed-tools:\n  - Read\n  - Bash(git:*)\ndescription: d\n",
            "name: refunds\nallowed-tools: Read Bash(git:*)\ndescription: d\n",
            id="tools",
        ),
        pytest.param(
            "name: refunds\ndescription: d\nmetadata:\n  version: 1.10\n  ok: true\n  who: ada\n",
            'name: refunds\ndescription: d\nmetadata:\n  version: "1.10"\n  ok: "true"\n  who: ada\n',
            id="metadata",
        ),
    ],
)
def test_what_is_wrong_is_repaired(before: str, after: str) -> None:
    assert repaired(before) == (after, 1)
    assert repaired(after) == (after, 0)
    assert parse_skill_md(f"---\n{after}{BODY}".encode()).frontmatter["name"] == "refunds"


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param("name: refunds\ndescription: d\nallowed-tools:\n  - 1\n", id="tools-that-are-not-text"),
        pytest.param("name: refunds\ndescription: d\nallowed-tools: # mine\n  - Read\n", id="a-comment"),
        pytest.param("name: refunds\ndescription: d\nmetadata:\n  list: [1]\n", id="a-list"),
        pytest.param("name: refunds\ndescription: d\nmetadata: {a: 1}\n", id="a-flow-mapping"),
        pytest.param("name: refunds\n\tdescription: d\n", id="a-tab"),
        pytest.param("name: &a refunds\ndescription: *b\n", id="an-alias"),
    ],
)
def test_what_could_change_the_meaning_stays(fields: str) -> None:
    assert repaired(fields) == (fields, 0)


def test_a_folder_whose_name_is_invalid_gives_no_name() -> None:
    assert repaired("name: other\ndescription: d\n", "Refunds Now") == ("name: other\ndescription: d\n", 0)


@pytest.mark.parametrize("data", [b"", b"# no frontmatter\n", b"---\nname: x\n", b"---\n\xff: 1\n---\n"])
def test_what_has_no_frontmatter_stays(data: bytes) -> None:
    assert repair_skill_md(data, "refunds") == (data, [])
