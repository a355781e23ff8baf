"""The era of a client, in turn."""

from __future__ import annotations

import pytest

from rotation import settings


@pytest.fixture(params=settings([("legacy",), ("auto",)]))
def mode(request: pytest.FixtureRequest) -> str:
    return request.param[0]
