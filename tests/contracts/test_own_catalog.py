"""What third parties write passes the published suite: a catalog of their own, and the example of a storage."""

from __future__ import annotations

import ast
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from contracts import own_catalog
from contracts.own_catalog import OwnCatalog
from skillwire.testing import CatalogContract, Sample, sample_files

if TYPE_CHECKING:
    from skillwire import FilesCatalog, Skill

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_storage.py"


def as_bytes(skill: Skill) -> dict[str, bytes]:
    return {name: data if isinstance(data, bytes) else data.encode() for name, data in skill.files.items()}


class TestOwnCatalog(CatalogContract):
    @pytest.fixture
    def sample(self) -> Sample:
        catalog = OwnCatalog(sample_files())

        async def put(skill: Skill) -> None:
            catalog.put(skill.path, as_bytes(skill))

        async def remove(path: str) -> None:
            catalog.put(path, {})

        return Sample(catalog, put, remove)


class TestStorageOfTheExample(CatalogContract):
    @pytest.fixture
    def sample(self, tmp_path: Path) -> Sample:
        database = str(tmp_path / "skills.db")
        catalog: FilesCatalog = runpy.run_path(str(EXAMPLE))["open_storage"](database)
        versions = iter(range(1000))

        def write(path: str, files: dict[str, bytes]) -> None:
            with closing(sqlite3.connect(database)) as db, db:
                db.execute("DELETE FROM files WHERE path LIKE ?", (f"{path}/%",))
                rows = [(f"{path}/{name}" if path else name, next(versions), files[name]) for name in files]
                db.executemany("INSERT INTO files VALUES (?, ?, ?)", rows)

        async def put(skill: Skill) -> None:
            write(skill.path, as_bytes(skill))
            await catalog.refresh()

        async def remove(path: str) -> None:
            write(path, {})
            await catalog.refresh()

        write("", sample_files())
        return Sample(catalog, put, remove)


def test_both_use_public_names_only() -> None:
    for file in (Path(own_catalog.__file__), EXAMPLE):
        imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
        modules = {node.module for node in imports if (node.module or "").startswith("skillwire")}
        assert modules <= {"skillwire", "skillwire.lowlevel", "skillwire.types", "skillwire.errors"}
