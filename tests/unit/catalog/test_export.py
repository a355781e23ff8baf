"""Trees that are written to a disk (Z3, B5)."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.catalog.export import write_skill, write_tree
from skillwire.catalog.verification import read_verified
from skillwire.errors import FormatError, VerificationError
from skillwire.install.transaction import open_swap
from skillwire.skill.entry import DYNAMIC, Partial
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REPOSITORIES = {
    "dot git": [".git/config"],
    "dot git below": ["docs/.git/hooks/post-checkout"],
    "file": [".git"],
    "upper case": [".GIT/config"],
    "zero width": [".g\u200cit/config"],
    "full width": [".\uff47it/config"],
    "space at the end": [".git /config"],
    "dot at the end": [".git./config"],
    "stream": [".git::$INDEX_ALLOCATION/config"],
    "short name": ["GIT~1/config"],
    "mercurial": [".hg/hgrc"],
    "bare": ["HEAD", "config", "objects/x", "refs/heads/main"],
    "bare below": ["a/HEAD", "a/objects/x", "a/refs/x"],
    "bare in lower case": ["head", "Objects/x", "Refs/x"],
    "shared parts elsewhere": ["HEAD", "commondir", "b/objects/x", "b/refs/x"],
}


def files(paths: list[str]) -> dict[str, bytes]:
    return {"SKILL.md": b"", **dict.fromkeys(paths, b"")}


def add(tree: dict[str, bytes], folder: Path) -> None:
    with open_swap() as swap:
        swap.put(folder.parent, folder.name, tree)


WRITERS: dict[str, Callable[[dict[str, bytes], Path], None]] = {
    "tree": lambda tree, folder: write_tree(folder.name, tree, folder),
    "pull": write_skill,
    "add": add,
}


@rule("V7")
@pytest.mark.anyio
@pytest.mark.parametrize("lacking", ["files", "digests", "everything"])
async def test_what_is_not_promised_whole_is_not_pulled(lacking: str) -> None:
    """Nothing is read."""
    catalog = MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})])
    entry = await catalog.get_skill("skill://flat/SKILL.md")
    assert len(await read_verified(catalog, entry)) == 2
    promises = {
        "files": Partial(entry.files[:1]),
        "digests": tuple(file._replace(digest=None) for file in entry.files),
        "everything": DYNAMIC,
    }
    read: list[int] = []
    with pytest.raises(VerificationError) as caught:
        await read_verified(catalog, replace(entry, resources=promises[lacking]), on_file=read.append)
    assert (caught.value.reference, caught.value.rule) == ("skill-unverifiable", "V7")
    assert read == []


@rule("Z3")
@pytest.mark.parametrize("paths", REPOSITORIES.values(), ids=REPOSITORIES.keys())
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS.keys())
def test_no_written_tree_is_or_contains_a_repository(
    tmp_path: Path, write: Callable[[dict[str, bytes], Path], None], paths: list[str]
) -> None:
    with pytest.raises(FormatError) as caught:
        write(files(paths), tmp_path / "flat")
    assert (caught.value.reference, caught.value.rule) == ("file-forbidden", "Z3")
    assert os.listdir(tmp_path) == []


@rule("Z3")
@pytest.mark.parametrize("name", [".git", "git~1", ".Git."])
def test_a_skill_is_not_called_like_a_repository(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError) as caught:
        write_skill(files([]), tmp_path / name)
    assert caught.value.rule == "Z3"
    assert os.listdir(tmp_path) == []


@rule("Z3")
def test_names_that_only_resemble_a_repository_are_written(tmp_path: Path) -> None:
    paths = [".gitignore", ".github/x.md", "docs/git.md", "HEAD", "refs/x", "docs/objects/x", "a.git/x"]
    write_skill(files(paths), tmp_path / "flat")
    assert (tmp_path / "flat/HEAD").is_file()
