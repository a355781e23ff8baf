"""Trees of skills that tests share: honest ones with every trait that has broken a peer somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.testing import SAMPLE_SKILLS, sample_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Tree = dict[str, bytes]
small_tree = sample_files
SMALL_TREE_SKILLS = SAMPLE_SKILLS


def skill_md(
    name: str, description: str = "Does one thing well.", body: str = "Do it.\n", extra: str = ""
) -> bytes:
    """A small valid ``SKILL.md``."""
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n\n{body}".encode()


# Characters that a person does not see: tags, controls, bidirectional controls, fillers, zero width, selectors.
UNSEEN = (
    "\U000e0041\U000e007f\x07\x9b\u202e\u2066\u061c\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\u034f"
    "\u00ad\u200b\u200c\u200d\u200e\u2060\ufeff\ufe0f\u180f\U000e0100\ufff9"
    "\U0001107f\U00013430\U0001345f\U00016fe4\U00040000\U000f0041\U0010fffd\ue000\ufdd0"
)


def write_tree(root: Path, tree: Mapping[str, bytes]) -> Path:
    """Put a tree on disk."""
    for path, data in tree.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return root


def replace_file(path: Path, data: bytes) -> None:
    """Change a file in one step: a server that watches never sees it empty."""
    new = path.parents[1] / f"..{path.name}"  # a name that no skill's file has
    new.write_bytes(data)
    new.replace(path)


def files_of(tree: Mapping[str, bytes], skill: str) -> Tree:
    """The files of one skill, nested ones included, by their path inside it."""
    return {path[len(skill) + 1 :]: data for path, data in tree.items() if path.startswith(f"{skill}/")}
