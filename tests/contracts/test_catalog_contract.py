"""Every catalog of skillwire passes the suite that is published as ``skillwire.testing``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from contracts.conftest import CHANGEABLE, KINDS, named, opened
from skillwire import CombinedCatalog, DirectoryCatalog, MemoryCatalog
from skillwire.catalog import safe_open
from skillwire.testing import CatalogContract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from skillwire.testing import Sample


class TestEveryCatalog(CatalogContract):
    @pytest.fixture(autouse=True)
    def no_settling(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Trust the time of change of a file immediately, so that a folder offers a check too."""
        monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)

    @pytest.fixture(params=KINDS, ids=named)
    async def sample(
        self, request: pytest.FixtureRequest, tmp_path: Path, package_names: Iterator[str]
    ) -> AsyncIterator[Sample]:
        async with opened(request.param(tmp_path, package_names)) as sample:
            yield sample

    @pytest.fixture(params=CHANGEABLE, ids=named)
    async def changeable(self, request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Sample]:
        async with opened(request.param(tmp_path, iter(()))) as sample:
            yield sample

    async def test_the_catalogs_that_are_served_most_offer_a_check_for_changes(self, changeable: Sample) -> None:
        catalog = changeable.catalog
        await catalog.list_skills()
        if isinstance(catalog, DirectoryCatalog | MemoryCatalog | CombinedCatalog):
            assert await catalog.unchanged() is not None
            assert await catalog.unchanged("skill://flat/SKILL.md") is not None
