"""A registry that really serves: accounts, tokens, namespaces and skills, for tests of its doors."""

from __future__ import annotations

import hashlib
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from http_server import serving_app
from interaction.conftest import Wire
from skillwire.registry.app import Registry, RegistryOptions
from skillwire.registry.catalog import EVERYTHING
from skillwire.registry.client import RegistryClient
from skillwire.registry.contract import TokenInfo
from skillwire.registry.identity import parse_network
from skillwire.registry.model import Actor, Identity, Namespace
from skillwire.registry.schema import SCHEMA
from skillwire.registry.settings import RegistrySettings
from skillwire.registry.store import SqlRegistryStore
from skillwire.server.access import digest_token, new_token
from skillwire.server.http import HttpServer, listen
from skillwire.store.place import open_database
from skillwire.store.sqlite import SqliteDatabase
from skillwire.web.registry.site import registry_page
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence


@dataclass
class Running:
    """A registry at ``url``."""

    registry: Registry
    url: str

    async def token(self, subject: str, **more: Any) -> str:
        """A token of a person."""
        secret, digest = new_token()
        now = time.time()
        limits = {"namespace": None, "actions": None, "expires_at": None, **more}
        info = TokenInfo(secret[-8:], "test", subject, created_by="test", created_at=now, **limits)
        await self.registry.store.put_token(operator(), info, digest)
        return secret

    async def namespace(self, name: str, *, roles: Mapping[str, str] | None = None, **more: Any) -> None:
        """A namespace, with roles of principals."""
        await self.registry.store.create_namespace(operator(), Namespace(name, **more))
        for principal, role in (roles or {}).items():
            await self.registry.store.grant(operator(), name, principal, role)  # pyright: ignore[reportArgumentType]

    @asynccontextmanager
    async def api(self, token: str | None = None) -> AsyncIterator[RegistryClient]:
        """A client of the API."""
        async with RegistryClient.open(self.url, token) as client:
            yield client

    @asynccontextmanager
    async def raw(self, token: str | None = None) -> AsyncIterator[httpx2.AsyncClient]:
        """An HTTP client."""
        async with httpx2.AsyncClient(base_url=self.url, headers=bearer(token), timeout=20) as web:
            yield web

    @asynccontextmanager
    async def mcp(
        self, token: str | None = None, mode: str = "auto", path: str = "/mcp", **more: Any
    ) -> AsyncIterator[Wire]:
        """A client of MCP, in either era."""
        async with (
            httpx2.AsyncClient(headers=bearer(token), timeout=20) as web,
            Client(streamable_http_client(self.url + path, http_client=web), mode=mode, **more) as client,
        ):
            yield Wire(client, "legacy" if mode == "legacy" else "modern")


@asynccontextmanager
async def running_registry(
    settings: RegistrySettings | None = None, place: str | None = None, proxies: Sequence[str] = ()
) -> AsyncIterator[Running]:
    """A registry on SQLite in memory, or on the database at ``place``."""
    database = SqliteDatabase.memory(SCHEMA) if place is None else await open_database(place, SCHEMA)
    networks = tuple(map(parse_network, proxies))
    options = RegistryOptions(settings or RegistrySettings(), proxies=networks, page=registry_page)
    registry = Registry(SqlRegistryStore(database), options, wait=database.wait_for_change)
    listener = listen("127.0.0.1", 0)
    app = HttpServer(registry.web_app(), listener).app
    try:
        async with serving_app(app, listener) as url:
            yield Running(registry, url)
    finally:
        await registry.store.close()


def operator() -> Actor:
    """Who has the database."""
    return Actor(Identity("user:operator", frozenset({"user:operator"}), is_admin=True), "test", time.time())


def bearer(token: str | None) -> dict[str, str]:
    """The header with a token."""
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def refunds(body: str = "Do it.\n", name: str = "refunds", extra: str = "", **files: bytes) -> dict[str, bytes]:
    """The files of a skill."""
    return {"SKILL.md": skill_md(name, "Refunds for customers.", body, extra), **files}


async def publish(client: RegistryClient, path: str, files: Mapping[str, bytes], **more: Any) -> dict[str, Any]:
    """Publish a version, as a program would."""
    digests = {name: f"sha256:{hashlib.sha256(data).hexdigest()}" for name, data in files.items()}
    namespace = path.partition("/")[0]
    missing = await client.call(
        "POST", f"namespaces/{namespace}/blobs/missing", {"digests": sorted(digests.values())}
    )
    for name, digest in digests.items():
        if digest in missing["missing"]:
            await client.upload(namespace, digest, files[name])
    listed = [{"path": name, "digest": digests[name], "size": len(files[name])} for name in files]
    return await client.call("POST", f"skills/{path}/-/versions", {"files": listed, **more})


__all__ = ["EVERYTHING", "Running", "digest_token", "operator", "publish", "refunds", "running_registry"]
