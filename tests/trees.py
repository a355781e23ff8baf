"""Trees of skills that tests share: honest ones with every trait that has broken a peer somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Tree = dict[str, bytes]


def skill_md(
    name: str, description: str = "Does one thing well.", body: str = "Do it.\n", extra: str = ""
) -> bytes:
    """A small valid ``SKILL.md``."""
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n\n{body}".encode()


def small_tree() -> Tree:
    """Six skills: flat, prefixed, nested, CRLF with BOM, odd file names, binary and empty files."""
    return {
        "flat/SKILL.md": skill_md("flat"),
        "acme/billing/refunds/SKILL.md": skill_md("refunds", extra="metadata:\n  owner: billing\n"),
        "acme/billing/refunds/templates/reply.md": b"Dear customer,\n",
        "acme/billing/refunds/references/limits.csv": b"tier,limit\ngold,500\n",
        "acme/release/SKILL.md": skill_md("release"),
        "acme/release/changelog/SKILL.md": skill_md("changelog"),
        "acme/release/changelog/templates/entry.md": b"- \n",
        "acme/release/notes.md": b"notes\n",
        "windows/SKILL.md": b"\xef\xbb\xbf---\r\nname: windows\r\ndescription: CRLF and a BOM\r\n---\r\n\r\nhello",
        "odd-names/SKILL.md": skill_md("odd-names"),
        "odd-names/references/R\u00e9sum\u00e9 & notes #1?.md": "na\u00efve\n".encode(),
        "odd-names/assets/100%.bin": bytes(range(256)),
        "odd-names/assets/empty": b"",
        "odd-names/.hidden": b"dot\n",
    }


# Characters that a person does not see: tags, controls, bidirectional controls, fillers, zero width, selectors.
UNSEEN = (
    "\U000e0041\U000e007f\x07\x9b\u202e\u2066\u061c\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800\u034f"
    "\u00ad\u200b\u200c\u200d\u200e\u2060\ufeff\ufe0f\u180f\U000e0100\ufff9"
    "\U0001107f\U00013430\U0001345f\U00016fe4\U00040000\U000f0041\U0010fffd\ue000\ufdd0"
)
SMALL_TREE_SKILLS = [
    "acme/billing/refunds",
    "acme/release",
    "acme/release/changelog",
    "flat",
    "odd-names",
    "windows",
]


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
