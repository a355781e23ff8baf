"""What foreign errors are called, and what of their words is passed on."""

from __future__ import annotations

import httpx2
import pytest

from rules import rule
from skillwire.client.connect import connect
from skillwire.client.failures import CONNECTING, as_ours
from skillwire.client.meter import Meter
from skillwire.errors import NotFoundError
from skillwire.limits import DEFAULT_LIMITS

SECRET = "s3cr3t"


def refused_by_http() -> Exception:
    return httpx2.LocalProtocolError(f"Illegal header value b'Bearer {SECRET}'")


def refused_by_a_codec() -> Exception:
    with pytest.raises(UnicodeEncodeError) as caught:
        f"{SECRET}é".encode("ascii")
    return caught.value


@rule("O1")
@pytest.mark.parametrize("raised", [refused_by_http(), refused_by_a_codec()], ids=lambda each: type(each).__name__)
def test_an_error_that_may_quote_a_header_is_named_and_not_repeated(raised: Exception) -> None:
    """Headers are secrets."""
    error = as_ours(raised, Meter(DEFAULT_LIMITS), CONNECTING)
    assert error.reference == "connection-lost"
    assert type(raised).__name__ in error.message
    assert SECRET not in repr(error)


def test_other_errors_are_passed_on() -> None:
    error = as_ours(httpx2.ConnectError("no route"), Meter(DEFAULT_LIMITS), CONNECTING)
    assert "ConnectError: no route" in error.message


@rule("O1")
@pytest.mark.anyio
async def test_a_line_that_was_written_as_one_word_is_not_repeated_when_it_cannot_be_started() -> None:
    """Arguments may be secrets."""
    with pytest.raises(NotFoundError) as caught:
        async with connect([f"no-such-program --key {SECRET}"]):
            pass
    assert "'no-such-program …'" in caught.value.message
    assert SECRET not in str(caught.value)
