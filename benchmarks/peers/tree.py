"""The tree that every server serves: skills side by side in one folder, since some peers look no deeper."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.scan import CACHE
from benchmarks.trees import FILES_PER_SKILL, write_skill

if TYPE_CHECKING:
    from pathlib import Path

_MOST_URIS = 5_000  # asked for in one measurement: all files of 1,000 skills


@dataclass(frozen=True)
class Tree:
    """A folder of generated skills, and the URIs below which servers have them."""

    root: Path
    skills: int

    def skill_uris(self) -> list[str]:
        """The skills that are asked for, in an order that is the same in each run."""
        return [f"skill://{_name(number)}/SKILL.md" for number in self._some(_MOST_URIS)]

    def digests(self) -> dict[str, str]:
        """Every file of the skills that are asked for, in such an order, with the SHA-256 of its bytes."""
        found = {
            f"skill://{_name(number)}/{file}": hashlib.sha256((self.root / _name(number) / file).read_bytes())
            for number in self._some(_MOST_URIS // FILES_PER_SKILL)
            for file in ("SKILL.md", *(f"references/part-{part}.md" for part in range(FILES_PER_SKILL - 1)))
        }
        uris = sorted(found)
        random.Random(2).shuffle(uris)
        return {uri: found[uri].hexdigest() for uri in uris}

    def _some(self, most: int) -> list[int]:
        return random.Random(1).sample(range(self.skills), min(self.skills, most))


def write_tree(skills: int, below: Path = CACHE / "peers") -> Tree:
    """The tree of that size, written unless it is already there."""
    root, done = below / f"flat-{skills}", below / f"flat-{skills}.complete"
    if not done.exists():
        for number in range(skills):
            write_skill(root / _name(number), number)
        done.touch()
    return Tree(root, skills)


def _name(number: int) -> str:
    return f"skill-{number:06d}"
