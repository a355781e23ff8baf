"""Opens a gateway: builds the catalogs of each upstream and keeps them current while the gateway is open."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from skillwire.catalog.directory import DirectoryCatalog
from skillwire.client.link import ServerLink
from skillwire.client.remote import RemoteCatalog
from skillwire.client.servers import address_of
from skillwire.errors import StoreError
from skillwire.gateway.approval_gate import Admission, ApprovalGate, ApprovalView
from skillwire.gateway.approval_queue import ApprovalQueue
from skillwire.gateway.audit_log import AuditLog
from skillwire.gateway.config import plan_gateway
from skillwire.gateway.elicitation import Elicitation
from skillwire.gateway.federation import FederatedCatalog, Upstream, prepare_entry, uri_map_of
from skillwire.gateway.snapshots import MaterializedCatalog, SnapshotStore
from skillwire.host.approvals import Approvals, Policy, cannot_ask
from skillwire.host.state import check_state, open_cache, open_store, several
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.server.callers import everything
from skillwire.server.dialect import MCP_PATH
from skillwire.server.http import embedding_options
from skillwire.server.page import SourceStatus
from skillwire.server.skills import Skills, ignore_problem
from skillwire.store.content_cache import ContentCache
from skillwire.store.place import USER, expanded_state
from skillwire.store.store import Store
from skillwire.wire.meta import ORIGIN

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from mcp.server.lowlevel import Server

    from skillwire.catalog.contract import Catalog
    from skillwire.gateway.config import Plan
    from skillwire.server.access import Access
    from skillwire.server.dialect import ServedSkills
    from skillwire.server.http import HttpOptions, WebApp
    from skillwire.server.page import PageMaker
    from skillwire.skill import SkillEntry
    from skillwire.skill.entry import SkillMeta


class Gateway:
    """A running gateway. Serve it with ``asgi``, or serve its ``catalog``."""

    def __init__(self, plan: Plan, store: Store, cache: ContentCache, limits: Limits) -> None:
        self.policy = plan.policy
        self.is_public = plan.is_public
        self.store = store
        self.cache = cache
        self.approvals = Approvals(store, Policy(), cannot_ask)
        self.approval_view = ApprovalView(store)
        self.queue = ApprovalQueue(store)
        self.audit = AuditLog(store)
        self._plan = plan
        self._limits = limits
        self.upstreams: dict[str, Upstream] = {
            label: self._folder(label) if label in plan.folders else self._server(label)
            for label in sorted({*plan.servers, *plan.folders})
        }
        self.catalog = FederatedCatalog(self.upstreams)
        self._scope = anyio.CancelScope()
        self._stopped = anyio.Event()

    # One chain of catalogs for each upstream (see the package)

    def _folder(self, label: str) -> Upstream:
        def describe(_: str, meta: SkillMeta) -> SkillMeta:
            return replace(meta, meta={**meta.meta, ORIGIN: label})

        folder = self._plan.folders[label]
        catalog = DirectoryCatalog(folder, describe=describe)
        catalog.demand_root()
        return Upstream(label, None, self._gate(label, None, catalog), str(folder))

    def _server(self, label: str) -> Upstream:
        server, settings, limits = self._plan.servers[label], self.policy.upstream(label), self._limits
        limits = replace(
            limits,
            max_server_bytes=settings.max_bytes or limits.max_server_bytes,
            max_file_bytes=settings.max_file_bytes or limits.max_file_bytes,
            max_call_seconds=settings.timeout or limits.max_call_seconds,
        )
        link = ServerLink(label, server, limits=limits, dialect=settings.dialect, max_skills=settings.max_skills)
        remote = RemoteCatalog(
            link,
            store=self.store,
            cache=self.cache,
            limits=limits,
            allow_unverified=True,
            # An approval covers the files that the upstream promises. A snapshot would cover more.
            closed=self.policy.mode == "admit" and not settings.materialize,
            prepare=prepare_entry,
        )
        catalog: Catalog = remote
        if settings.materialize:

            def is_selected(entry: SkillEntry) -> bool:
                return self.policy.materializes(label, uri_map_of(label, remote).path(entry.uri))

            saved = SnapshotStore(label, self.store, self.cache, ignores_saved=self._plan.renews_snapshots)
            catalog = MaterializedCatalog(remote, label, is_selected, saved, limits=self._limits)
        return Upstream(label, remote, self._gate(label, remote, catalog), address_of(server))

    def _gate(self, label: str, remote: RemoteCatalog | None, catalog: Catalog) -> ApprovalGate:
        admission = Admission(label, self._plan, self.approval_view, self.approvals, remote)
        return ApprovalGate(catalog, admission, self.audit)

    # Serving

    async def settle(self, seconds: float) -> None:
        """Wait until every upstream was listed or failed, but not longer than ``seconds``."""
        with anyio.move_on_after(seconds):
            for upstream in self.upstreams.values():
                if upstream.remote is not None:
                    await upstream.remote.settle(seconds)

    def asgi(
        self,
        path: str = MCP_PATH,
        *,
        name: str = "skillwire",
        instructions: str | None = None,
        access: Access | str | os.PathLike[str] | None = None,
        public_url: str | None = None,
        metrics: bool = True,
        page: PageMaker | None = None,
    ) -> WebApp:
        """The gateway as a web application, with the options of ``Skills.asgi``.

        Without ``access`` clients have no names: they are not asked for approvals, and do not learn which skills
        wait for one.
        """
        skills = Skills(self.catalog, watch=False, on_problem=ignore_problem)
        options = embedding_options(path, access, public_url, metrics=metrics)
        return self.web_app(
            skills, options, name=name, instructions=instructions, page=page, is_open=access is None
        )

    def web_app(
        self,
        skills: Skills,
        options: HttpOptions,
        *,
        name: str,
        instructions: str | None,
        page: PageMaker | None,
        is_open: bool,
    ) -> WebApp:
        """The same with all settings. ``is_open``: every machine can connect, without a token."""
        policy = self.policy
        asks = policy.mode == "admit" and not policy.read_only and bool(policy.approvers) and not is_open

        def prepare(served: ServedSkills) -> None:
            if not is_open:
                self.ask_clients(served.server, served.sees)

        page = None if page is None else partial(page, sources=self.sources)
        return skills.web_app(
            replace(options, asks=asks), name=name, instructions=instructions, page=page, prepare=prepare
        )

    def sources(self) -> list[SourceStatus]:
        """The state of every upstream, for the page."""
        return [
            SourceStatus(label, "complete", None)
            if each.remote is None
            else SourceStatus(label, each.remote.state, each.remote.seen_at)
            for label, each in self.upstreams.items()
        ]

    def ask_clients(
        self, server: Server[Any], sees: Callable[[], Callable[[str], bool]] = lambda: everything
    ) -> None:
        """Ask the clients of ``server`` for approvals, in ``admit`` mode. ``sees()`` tests what a caller sees."""
        if self.policy.mode == "admit":
            server.middleware.insert(0, Elicitation(self, sees))

    async def run(self) -> None:
        """Keep every upstream connected, until ``stop``, and the store current, until cancelled."""
        async with anyio.create_task_group() as group:
            for task in (self.approval_view.run, self.audit.run, self.queue.run, self._follow, self._prune):
                group.start_soon(task)

    async def _prune(self) -> None:
        with suppress(StoreError):  # an unpruned cache is no reason to stop
            await to_thread.run_sync(lambda: self.cache.prune(now=time.time()), abandon_on_cancel=True)

    async def _follow(self) -> None:
        try:
            with self._scope:
                await self.catalog.follow()
        finally:
            self._stopped.set()

    async def stop(self, seconds: float) -> None:
        """Disconnect from every upstream, but wait no longer than ``seconds``."""
        self._scope.cancel()
        with anyio.move_on_after(seconds):
            await self._stopped.wait()


@asynccontextmanager
async def open_gateway(
    *,
    config: str | os.PathLike[str] | None = None,
    servers: Mapping[str, str | Mapping[str, Any]] | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    policy: str | os.PathLike[str] | None = None,
    state: str | Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> AsyncGenerator[Gateway]:
    """A gateway for the duration of the block: ``async with open_gateway(config="servers.json") as gateway``.

    It serves the servers of an ``mcpServers`` file, other servers by label (a URL, or an entry of such a file) and
    folders, as a ``gateway.toml`` decides.

    ``state`` is the folder for approvals, listings and verified content, the same one as for ``SkillHost.open``,
    or the URL of a PostgreSQL database that several gateways share (``postgresql://user@host/name``).
    ``"user"`` is the state of ``skillwire`` on the command line. Without it, the state ends with the gateway.
    """
    plan = plan_gateway(
        policy=None if policy is None else Path(policy),
        config=None if config is None else Path(config),
        servers={
            label: {"url": entry} if isinstance(entry, str) else entry for label, entry in (servers or {}).items()
        },
        folders=[Path(folder) for folder in several(folders)],
    )
    plan = replace(plan, is_public=True, state=None if state in (None, USER) else expanded_state(state))
    async with run_gateway(plan, state, limits=limits) as gateway:
        yield gateway


@asynccontextmanager
async def run_gateway(
    plan: Plan, state: str | Path | None, *, limits: Limits = DEFAULT_LIMITS
) -> AsyncGenerator[Gateway]:
    """The same for a checked plan. It serves the saved listings at once."""
    if state is None:
        # Content can be large, so it is not in memory even then.
        with TemporaryDirectory(prefix="skillwire-") as folder:
            cache = ContentCache(Path(folder) / "cache", forbidden=list(plan.folders.values()))
            async with _running(replace(plan, has_own_state=True), Store.memory(), cache, limits) as gateway:
                yield gateway
        return
    folders = list(plan.folders.values())
    await to_thread.run_sync(check_state, state, folders)
    store = await open_store(state)
    try:
        cache = await to_thread.run_sync(open_cache, state, folders)
    except BaseException:
        await store.close()
        raise
    async with _running(plan, store, cache, limits) as gateway:
        yield gateway


@asynccontextmanager
async def _running(plan: Plan, store: Store, cache: ContentCache, limits: Limits) -> AsyncGenerator[Gateway]:
    """A gateway whose tasks run for the duration of the block. The store is closed at its end."""
    try:
        gateway = Gateway(plan, store, cache, limits)
        await gateway.approval_view.refresh()
        error: BaseException | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(gateway.run)
            try:
                yield gateway
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as raised:  # an error of the block is raised unchanged, not in a group
                error = raised
            group.cancel_scope.cancel()
        if error is not None:
            raise error
    finally:
        await store.close()
