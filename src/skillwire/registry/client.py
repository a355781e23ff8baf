"""The client of a registry's HTTP API, for the command line and other programs.

Responses are bounded and checked. An error of the registry becomes the same error here, with its reference and
hint. A request that can be repeated without harm is repeated after a lost connection. Publishing the same content
again changes nothing.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlsplit

import anyio
import httpx2

from skillwire.errors import (
    ApprovalError,
    ConflictError,
    FormatError,
    LimitError,
    NotFoundError,
    SkillwireError,
    UpstreamError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.entry import digest_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

_ATTEMPTS = 3
_PAUSE_SECONDS = 0.5
_MOST_BYTES = DEFAULT_LIMITS.max_file_bytes
_LONGEST_TEXT = 2_000
_PORTS = {"http": 80, "https": 443}
_KINDS: Final[Mapping[int, type[SkillwireError]]] = {
    400: FormatError,
    401: ApprovalError,
    403: ApprovalError,
    404: NotFoundError,
    409: ConflictError,
    413: LimitError,
    422: VerificationError,
}


def registry_url(text: str) -> str:
    """The address of a registry as it is stored: without a path of MCP or of the API at its end."""
    parts = urlsplit(text)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.username
        or parts.query
        or parts.fragment
    ):
        raise FormatError("url-invalid", f"{text!r:.200} is not the URL of a registry", "write https://HOST")
    path = parts.path.rstrip("/").removesuffix("/mcp").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def is_at_registry(url: str, registry: str) -> bool:
    """Whether ``url`` is an address of this registry: the same scheme, host and port, and its path or below."""
    try:
        ours, theirs = urlsplit(registry), urlsplit(url)
        origins = {(each.scheme, each.hostname, each.port or _PORTS.get(each.scheme)) for each in (ours, theirs)}
    except ValueError:
        return False
    is_below = f"{theirs.path}/".startswith(f"{ours.path.rstrip('/')}/")
    return len(origins) == 1 and is_below and theirs.username is None


class RegistryClient:
    """A connection to one registry."""

    def __init__(self, url: str, http: httpx2.AsyncClient) -> None:
        self.url = url
        self._http = http

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, token: str | None = None, seconds: float = 60.0
    ) -> AsyncGenerator[RegistryClient]:
        """Open a client of the registry at ``url``."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        # Not followed: the token is for this server only.
        async with httpx2.AsyncClient(headers=headers, timeout=seconds, follow_redirects=False) as http:
            yield cls(registry_url(url), http)

    async def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        repeats: bool = True,
    ) -> dict[str, Any]:
        """The document that an operation returns."""
        content = None if body is None else json.dumps(body).encode()
        data = await self._request(method, path, content, query or {}, repeats=repeats)
        try:
            document: object = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise self._not_registry()
        return cast("dict[str, Any]", document)

    async def find(self, path: str) -> dict[str, Any] | None:
        """The document at a path, or ``None``."""
        try:
            return await self.call("GET", path)
        except NotFoundError:
            return None

    async def upload(self, namespace: str, digest: str, data: bytes) -> None:
        """Upload the bytes of a file."""
        await self._request("PUT", f"namespaces/{quote(namespace)}/blobs/{digest}", data, {}, repeats=True)

    async def file(self, skill: str, version: str, path: str, digest: str) -> bytes:
        """The verified bytes of a file of a version."""
        where = f"skills/{skill}/-/versions/{quote(version)}/files/{quote(path)}"
        data = await self._request("GET", where, None, {}, repeats=True)
        if digest_of(data) != digest:
            raise VerificationError(
                "digest-mismatch", f"the registry sent other bytes for {path!r:.200}", "the registry must be fixed"
            )
        return data

    async def _request(
        self, method: str, path: str, content: bytes | None, query: Mapping[str, str], *, repeats: bool
    ) -> bytes:
        url = f"{self.url}/v1/{path}"
        for attempt in range(_ATTEMPTS):
            is_last = not repeats or attempt == _ATTEMPTS - 1
            try:
                async with self._http.stream(method, url, content=content, params=dict(query)) as response:
                    data = await _read(response)
            except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError) as error:
                if is_last:
                    raise UpstreamError(
                        "registry-unreachable",
                        f"{self.url} does not answer: {str(error) or type(error).__name__:.300}",
                        "check the address and the network; repeating the command is safe",
                    ) from error
            else:
                if response.status_code < 300:
                    return data
                if response.status_code not in (502, 503, 504) or is_last:
                    raise self._error(response.status_code, data)
            await anyio.sleep(_PAUSE_SECONDS * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _error(self, status: int, data: bytes) -> SkillwireError:
        try:
            document: Any = json.loads(data)
            words = [str(document["error"][key])[:_LONGEST_TEXT] for key in ("reference", "message", "hint")]
        except (ValueError, RecursionError, LookupError, TypeError):
            return self._not_registry() if status < 500 else _failed(self.url, status)
        return _KINDS.get(status, UpstreamError)(*words)

    def _not_registry(self) -> UpstreamError:
        return UpstreamError(
            "not-a-registry",
            f"there is no registry at {self.url}",
            "give the address that 'skillwire registry' prints",
        )


def _failed(url: str, status: int) -> UpstreamError:
    return UpstreamError("registry-failed", f"{url} answers with the HTTP status {status}", "try again later")


async def _read(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for part in response.aiter_bytes():
        data += part
        if len(data) > _MOST_BYTES:
            raise LimitError(
                "response-too-large",
                f"the response has more than {_MOST_BYTES} bytes",
                "the registry must be fixed",
            )
    return bytes(data)
