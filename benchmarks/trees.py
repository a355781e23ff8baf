"""Generated trees of skills: each a ``SKILL.md`` of 4 KB and four files of 2 KB, fifty to a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILES_PER_SKILL = 5

_HEAD = """\
---
name: {name}
description: >-
  Profile a CSV file and report column types, missing values and outliers.
  Use when someone hands you a CSV and asks what is in it. Number {number}.
license: Apache-2.0
metadata:
  author: skillwire
  version: "1.{number}"
allowed-tools: Read Bash(python:*)
---

"""


def skill_folder(root: Path, number: int) -> Path:
    """Where skill ``number`` of a generated tree is."""
    return root / f"team-{number // 50:04d}" / f"skill-{number:06d}"


def generate(root: Path, skills: int) -> Path:
    """Write the tree below ``root`` unless it is already there."""
    done = root / f"tree-{skills}" / ".complete"
    if done.exists():
        return done.parent
    for number in range(skills):
        write_skill(skill_folder(done.parent, number), number)
    done.touch()
    return done.parent


def write_skill(folder: Path, number: int) -> None:
    """One skill, whose texts differ from those of every other number."""
    (folder / "references").mkdir(parents=True, exist_ok=True)
    head = _HEAD.format(name=folder.name, number=number)
    body = f"Line of instructions number {number}, as long as such lines are.\n" * 80
    (folder / "SKILL.md").write_text((head + body)[:4096])
    for part in range(4):
        text = f"{number}.{part} reference text for an agent to read when it is needed\n" * 40
        (folder / "references" / f"part-{part}.md").write_text(text[:2048])
