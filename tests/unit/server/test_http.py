"""What stands around the protocol."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from skillwire.errors import UpstreamError
from skillwire.server.http import listen


def test_a_listening_socket_names_its_protocol() -> None:
    """asyncio switches Nagle's algorithm off only then; otherwise small answers wait 40 ms."""
    with closing(listen("127.0.0.1", 0)) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_a_taken_address_says_what_to_do() -> None:
    with closing(listen("127.0.0.1", 0)) as first, pytest.raises(UpstreamError) as caught:
        listen("127.0.0.1", first.getsockname()[1])
    assert caught.value.reference == "address-unavailable"
    assert caught.value.hint
