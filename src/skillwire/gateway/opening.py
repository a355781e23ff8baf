"""A running gateway from its plan and a place for its memory, which is that of ``skillwire approve`` too.

Each upstream is a chain of catalogs (see the package), and all of them are followed while the gateway is open.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, cast

import anyio
from anyio import to_thread

from skillwire.catalog.directory import DirectoryCatalog
from skillwire.catalog.mapped import MappedCatalog, UriMap
from skillwire.client.link import ServerLink
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import StoreError
from skillwire.gateway.admission import Admission
from skillwire.gateway.admitting import AdmittingCatalog
from skillwire.gateway.approval_view import Standing
from skillwire.gateway.federation import FederatedCatalog
from skillwire.gateway.materializing import MaterializingCatalog
from skillwire.gateway.provenance import ORIGIN
from skillwire.gateway.recording import Recorder
from skillwire.gateway.snapshots import SnapshotStore
from skillwire.gateway.upstream import UpstreamCatalog, prepare_entry
from skillwire.gateway.wishing import Wishes
from skillwire.host.approvals import Approvals, Policy, nobody
from skillwire.host.opening import check_state, open_cache, open_store
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import DEFAULT_SCHEME

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from skillwire.catalog.contract import Catalog
    from skillwire.client.dialects.contract import DialectName
    from skillwire.gateway.planning import Plan
    from skillwire.gateway.policy import GatewayPolicy
    from skillwire.skill import SkillEntry
    from skillwire.skill.entry import SkillMeta
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.contract import Store


@dataclass(frozen=True, slots=True)
class Upstream:
    """One upstream, as the gateway holds it."""

    label: str
    remote: RemoteCatalog | None  # none for a folder
    admitting: AdmittingCatalog
    catalog: MappedCatalog


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway: serve ``catalog``."""

    catalog: FederatedCatalog
    upstreams: Mapping[str, Upstream]
    policy: GatewayPolicy
    is_public: bool
    store: Store
    standing: Standing
    approvals: Approvals
    recorder: Recorder
    cache: ContentCache
    wishes: Wishes
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope, repr=False)
    _stopped: anyio.Event = field(default_factory=anyio.Event, repr=False)

    async def settle(self, seconds: float) -> None:
        """Wait until every upstream was listed or could not be, at most so long."""
        with anyio.move_on_after(seconds):
            for upstream in self.upstreams.values():
                if upstream.remote is not None:
                    await upstream.remote.settle(seconds)

    async def follow(self) -> None:
        """Keep every upstream connected, until ``stop``."""
        try:
            with self._scope:
                await self.catalog.follow()
        finally:
            self._stopped.set()

    async def stop(self, seconds: float) -> None:
        """Let go of every upstream; at most so long."""
        self._scope.cancel()
        with anyio.move_on_after(seconds):
            await self._stopped.wait()


@asynccontextmanager
async def open_gateway(
    plan: Plan, state: str | Path, *, limits: Limits = DEFAULT_LIMITS
) -> AsyncGenerator[Gateway]:
    """A gateway for the length of the block. It is ready at once, with what each upstream listed last."""
    folders = list(plan.folders.values())
    await to_thread.run_sync(check_state, state, folders)
    store = await open_store(state)
    try:
        cache = await to_thread.run_sync(open_cache, state, folders)
        gateway = _build(plan, store, cache, limits)
        await gateway.standing.look()
        error: BaseException | None = None
        async with anyio.create_task_group() as group:
            for work in (
                gateway.standing.run,
                gateway.recorder.run,
                gateway.wishes.run,
                gateway.follow,
                partial(_tidy, cache),
            ):
                group.start_soon(work)
            try:
                yield gateway
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as raised:  # the block's own, to be raised as itself and not as a group
                error = raised
            group.cancel_scope.cancel()
        if error is not None:
            raise error
    finally:
        await store.close()


def _build(plan: Plan, store: Store, cache: ContentCache, limits: Limits) -> Gateway:
    building = _Building(plan, store, cache, limits)
    upstreams = {label: building.upstream(label) for label in sorted({*plan.servers, *plan.folders})}
    catalog = FederatedCatalog({label: each.catalog for label, each in upstreams.items()})
    return Gateway(
        catalog,
        upstreams,
        plan.policy,
        plan.is_public,
        store,
        building.standing,
        building.approvals,
        building.recorder,
        cache,
        Wishes(store),
    )


class _Building:
    """The chain of catalogs for each upstream."""

    def __init__(self, plan: Plan, store: Store, cache: ContentCache, limits: Limits) -> None:
        self.standing, self.recorder = Standing(store), Recorder(store)
        self.approvals = Approvals(store, Policy(), nobody)
        self._plan = plan
        self._store = store
        self._cache = cache
        self._limits = limits

    def upstream(self, label: str) -> Upstream:
        plan = self._plan
        if label in plan.folders:
            folder = _folder_catalog(label, plan.folders[label])
            return self._admitted(label, None, folder, lambda: UriMap(label, DEFAULT_SCHEME), lambda: None)
        server = self._server(label)

        def is_wanted(entry: SkillEntry) -> bool:
            return plan.policy.materializes(label, server.uri_map.path(entry.uri))

        inner: Catalog = server
        if plan.policy.upstream(label).materialize:
            kept = SnapshotStore(label, self._store, self._cache, forget=plan.renews_snapshots)
            inner = MaterializingCatalog(server, label, is_wanted, kept, limits=self._limits)
        return self._admitted(label, server.remote, inner, lambda: server.uri_map, lambda: server.remote.seen_at)

    def _admitted(
        self,
        label: str,
        remote: RemoteCatalog | None,
        inner: Catalog,
        uri_map: Callable[[], UriMap],
        seen_at: Callable[[], float | None],
    ) -> Upstream:
        admission = Admission(
            label,
            self._plan.policy,
            self.standing,
            self.approvals,
            uri_map=uri_map,
            seen_at=seen_at,
            is_local=label in self._plan.folders,
            is_public=self._plan.is_public,
            approve_options=self._plan.approve_options,
            public_options=self._plan.public_options,
        )
        admitting = AdmittingCatalog(inner, admission, self.recorder)
        return Upstream(label, remote, admitting, MappedCatalog(admitting, uri_map))

    def _server(self, label: str) -> UpstreamCatalog:
        decided, limits = self._plan.policy.upstream(label), self._limits
        limits = replace(
            limits,
            max_server_bytes=decided.max_bytes or limits.max_server_bytes,
            max_file_bytes=decided.max_file_bytes or limits.max_file_bytes,
            max_call_seconds=decided.timeout or limits.max_call_seconds,
        )
        dialect = cast("DialectName | None", decided.dialect)
        link = ServerLink(
            label, self._plan.servers[label], limits=limits, dialect=dialect, max_skills=decided.max_skills
        )
        remote = RemoteCatalog(
            link,
            store=self._store,
            cache=self._cache,
            limits=limits,
            allow_unverified=True,
            # An approval covers the files that the upstream promises. A snapshot would cover more.
            closed=self._plan.policy.mode == "admit" and not decided.materialize,
            prepare=prepare_entry,
        )
        return UpstreamCatalog(remote)


def _folder_catalog(label: str, path: Path) -> DirectoryCatalog:
    def describe(_: str, meta: SkillMeta) -> SkillMeta:
        return replace(meta, meta={**meta.meta, ORIGIN: label})

    catalog = DirectoryCatalog(path, describe=describe)
    catalog.demand_root()
    return catalog


async def _tidy(cache: ContentCache) -> None:
    with suppress(StoreError):  # a gateway without a tidy cache is a gateway
        await to_thread.run_sync(lambda: cache.prune(now=time.time()), abandon_on_cancel=True)
