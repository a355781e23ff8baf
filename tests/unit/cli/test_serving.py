"""What ``serve`` and ``gateway`` share: whether whoever comes by is let in."""

from __future__ import annotations

import pytest

from skillwire.cli.serving import is_open
from skillwire.server.access import Access
from skillwire.server.http import listen


@pytest.mark.parametrize(
    ("host", "is_everywhere"),
    [
        ("127.0.0.1", False),
        ("localhost", False),
        ("::1", False),
        ("0.0.0.0", True),
        ("::", True),
    ],
)
def test_who_is_let_in_depends_on_the_address_and_not_on_how_it_is_written(host: str, is_everywhere: bool) -> None:
    with listen(host, 0) as listener:
        assert is_open(listener, None) is is_everywhere
        assert not is_open(listener, Access())
