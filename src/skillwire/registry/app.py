"""A registry as a web application: MCP in every dialect, the HTTP API, the well-known index of each skill, health,
readiness and metrics.

``doors`` and ``page`` are the places for other routes and for pages. They get the ``Registry``, and see the same
callers: ``current_identity``.
"""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from skillwire.errors import SkillwireError
from skillwire.registry.api.accounts import new_token
from skillwire.registry.api.routes import RegistryApi
from skillwire.registry.api.skills import LARGEST_BLOB
from skillwire.registry.catalog import EVERYTHING, Changes, RegistryCatalog, RegistryViews
from skillwire.registry.documents import TokenBody
from skillwire.registry.identity import Identities, IdentityLayer, Network, current_identity
from skillwire.registry.model import Actor
from skillwire.registry.settings import RegistrySettings
from skillwire.registry.streams import TokenStreams
from skillwire.registry.well_known import WellKnown
from skillwire.server.access import digest_token
from skillwire.server.http import Door, HttpOptions
from skillwire.server.skills import Skills, ignore_problem
from skillwire.wire.extension import Freshness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from starlette.routing import Route

    from skillwire.registry.contract import RegistryStore
    from skillwire.server.http import WebApp
    from skillwire.server.page import PageMaker

_READY_SECONDS = 5.0
_TIDY_SECONDS = 3600.0
_AGAIN_SECONDS = 10.0

log = logging.getLogger("skillwire.registry")


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """How a registry is served."""

    settings: RegistrySettings = field(default_factory=RegistrySettings)
    name: str = "skillwire"
    instructions: str | None = None
    public_url: str | None = None
    page_size: int = 100
    proxies: tuple[Network, ...] = ()  # whose X-Forwarded-For is believed
    page: Callable[[Registry], PageMaker] | None = None
    doors: Callable[[Registry], Sequence[Route]] = lambda _: ()


class Registry:
    """The parts of a registry, around its store.

    ``wait`` returns when the database may have changed. ``hold`` lets one process do the work that only one should
    do, until it ends; then another one gets in.
    """

    def __init__(
        self,
        store: RegistryStore,
        options: RegistryOptions | None = None,
        *,
        wait: Callable[[float], Awaitable[object]] | None = None,
        hold: Callable[[str], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> None:
        self.store = store
        self.options = options or RegistryOptions()
        self.identities = Identities(store, self.options.settings)
        self.streams = TokenStreams(self.identities.is_valid)
        self.changes = Changes(store, wait, self.streams.end_revoked)
        self.views = RegistryViews(store, self.changes, current_identity)
        self._hold = hold

    def web_app(self, http: HttpOptions | None = None) -> WebApp:
        """The web application."""
        options = self.options
        api = RegistryApi(self.store, self.identities, self.changes)
        well_known = WellKnown(self.store, options.public_url)
        skills = Skills(
            _Everything(self),
            page_size=options.page_size,
            freshness=Freshness(0, "private"),
            on_problem=ignore_problem,
        )
        return skills.web_app(
            http or HttpOptions(public_url=options.public_url, max_upload_bytes=LARGEST_BLOB),
            name=options.name,
            instructions=options.instructions,
            page=None if options.page is None else options.page(self),
            views=self.views,
            door=Door(
                lambda app: IdentityLayer(app, self.identities, self.streams, options.proxies),
                [*api.routes(), *well_known.routes(), *options.doors(self)],
                self.is_ready,
            ),
        )

    async def is_ready(self) -> bool:
        """Whether the database answers."""
        with anyio.move_on_after(_READY_SECONDS):
            try:
                await self.store.clock()
            except SkillwireError:
                return False
            return True
        return False

    async def first_administrator(self) -> str | None:
        """A token of an administrator, if there is none yet. Of processes that start at once, one makes it."""
        async with self._hold("registry-administrator"):
            return await make_administrator(self.store, only_first=True)

    async def tidy(self) -> None:
        """Remove unused uploads and expired tokens every hour, until cancelled.

        One process does it for all replicas, as long as it lives and has its connection to the database.
        """
        while True:
            try:
                async with self._hold("registry-tidy"):
                    while True:
                        await self.store.tidy(time.time())
                        await anyio.sleep(_TIDY_SECONDS)
            except SkillwireError as error:
                log.warning("unused uploads were not removed: %s", error.message)
            await anyio.sleep(_AGAIN_SECONDS)


async def make_administrator(store: RegistryStore, *, only_first: bool) -> str | None:
    """A token of a new administrator, for those who have the database; ``None`` if it has tokens already."""
    actor = Actor(EVERYTHING, "local", time.time())
    if only_first and await store.tokens(actor):
        return None
    secret, info = new_token(actor, TokenBody(name="administrator", subject="user:admin", admin=True))
    await store.put_token(actor, info, digest_token(secret))
    return secret


class _Everything(RegistryCatalog):
    """The whole registry. Callers never see it; following it does the work in the background."""

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry.store, EVERYTHING, registry.changes)
        self._registry = registry

    async def follow(self) -> None:
        """Publish changes, and tidy, until cancelled."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._registry.tidy)
            await super().follow()
