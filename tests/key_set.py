"""A key of an issuer of web tokens, and its public half on a real web server."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cryptography.hazmat.primitives.asymmetric import rsa


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    """The key that signs."""
    from cryptography.hazmat.primitives.asymmetric import rsa  # late: every run imports this file

    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def jwks_url(key: rsa.RSAPrivateKey) -> Iterator[str]:
    """The address of the key set, whose only key is ``one``."""
    import jwt

    public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
    page = json.dumps({"keys": [{**public, "kid": "one", "use": "sig", "alg": "RS256"}]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/keys.json"
    server.shutdown()
    server.server_close()
    thread.join()
