"""The pages of a registry. Each shows what the caller may see: the store decides that in its queries.

A list shows one page of an index and knows no totals, so that it costs the same for every size of a registry. A
private namespace gives the same page as one that does not exist.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from starlette.responses import RedirectResponse, StreamingResponse

from skillwire.catalog.contract import no_skill
from skillwire.catalog.examination import review_skill
from skillwire.errors import NotFoundError
from skillwire.limits import KIB
from skillwire.registry.catalog import entry_of
from skillwire.registry.identity import current_identity
from skillwire.registry.model import (
    Actor,
    SkillRef,
    parse_namespace,
    parse_served_path,
    parse_skill_path,
)
from skillwire.registry.visibility import no_namespace
from skillwire.server.callers import ViewCache
from skillwire.skill.uri import skill_md_uri
from skillwire.web.catalog.lists import MAX_VIEWS, list_row
from skillwire.web.catalog.pages import TABS, CatalogPages
from skillwire.web.desk.guard import Form
from skillwire.web.events import ChangeCounter
from skillwire.web.registry.decisions import change_skill, decide_review
from skillwire.web.registry.versions import difference, version_rows
from skillwire.web.theme import read_form

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from skillwire.catalog.contract import Catalog
    from skillwire.catalog.examination import Examiner
    from skillwire.registry.app import Registry
    from skillwire.registry.contract import AuditLine, Release, ReviewRequest, VersionLine
    from skillwire.registry.model import Action
    from skillwire.server.page import Sessions
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.web.catalog.pages import View
    from skillwire.web.catalog.site import Site

_T = TypeVar("_T")
PAGE_SIZE: Final = 50
MOST_COUNTED: Final = 1_000
_MOST_VERSIONS: Final = 100
_MOST_LINES: Final = 1_000
_MOST_REVIEWS: Final = 200
_MOST_ASKED: Final = 500
_MAX_FORM: Final = 16 * KIB
_MAX_FIELDS: Final = 20
_DONE: Final = {
    "moved": "The channel has this version now.",
    "waits": "The channel gets this version when another person approves it.",
    "unchanged": "Nothing changed: the channel has this version already.",
    "removed": "The channel is removed.",
    "yanked": "The version is yanked. Nothing new gets it.",
    "unyanked": "The version is no longer yanked. No channel was moved.",
    "deprecated": "The skill is deprecated.",
    "undeprecated": "The skill is no longer deprecated.",
    "approved": "Approved. The channel has this version now.",
    "declined": "Declined. The channel keeps its version.",
}


class Watched(ChangeCounter):
    """Counts the changes of the skills that a caller sees, and the results about those that they asked for."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__()
        self._asked: dict[str, SkillEntry] = {}
        self._watch = catalog.changes()
        self._watch.forward(lambda _: self.tell())

    def close(self) -> None:
        """Stop listening for changes."""
        self._watch.close()

    def ask(self, entries: Iterable[SkillEntry]) -> None:
        """Wait for results about these skills."""
        self._asked |= {entry.uri: entry for entry in entries}
        while len(self._asked) > _MOST_ASKED:
            self._asked.pop(next(iter(self._asked)))

    def tell_results(self, examiner: Examiner) -> None:
        """Tell open pages about new results. Results about other skills are none of the caller's business."""
        found = [uri for uri, entry in self._asked.items() if examiner.known(entry) is not None]
        for uri in found:
            del self._asked[uri]
        if found:
            self.tell()


class RegistryPages(CatalogPages):
    """One method for each address. The pages of files are those of a catalog."""

    list_template = "registry/list.html"
    skill_template = "registry/skill.html"

    def __init__(self, site: Site, registry: Registry) -> None:
        super().__init__(site)
        self._store = registry.store
        self._wake = registry.changes.wake
        self._watched = ViewCache(Watched, MAX_VIEWS)

    @property
    def views(self) -> dict[str, View]:
        """The pages by their paths."""
        views = {path: view for path, view in super().views.items() if path != "/problems"}
        more: dict[str, View] = {
            "/versions/{path:path}": self.versions,
            "/reviews": self.reviews,
            "/reviews/{number}": self.review,
            "/log": self.log,
        }
        return {**views, **more}

    @property
    def forms(self) -> dict[str, View]:
        """What forms are sent to."""
        return {"/change/{path:path}": self.change, "/reviews/{number}": self.decide}

    # Skills

    async def skill(self, request: Request) -> Response:
        """A version of a skill. A skill without a stable version leads to its newest one."""
        try:
            return await super().skill(request)
        except NotFoundError:
            ref = parse_served_path(request.path_params["path"].rstrip("/"))
            if ref is None or ref.version is not None or ref.channel is not None:
                raise
            newest = _newest(await self._store.history(current_identity(), ref.path))
            if newest is None:
                raise
            place = SkillRef(ref.path, version=newest.version).served_path
            query = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(f"{self._site.base}/skill/{quote(place, safe='/@')}{query}", 303)

    async def about(self, entry: SkillEntry) -> dict[str, Any]:
        """The version that is shown, who published it, and whether others may read it without a token."""
        who, ref = current_identity(), parse_served_path(entry.path)
        release = None if ref is None else await self._store.release(who, ref)
        if ref is None or release is None:  # it was removed meanwhile
            raise no_skill(entry.uri)
        namespace = await self._store.namespace(who, ref.namespace)
        return {"release": release, "is_public": namespace is not None and namespace.public}

    async def versions(self, request: Request) -> Response:
        """The versions of a skill, the differences between two of them, and what the caller may change."""
        who, path, query = current_identity(), parse_skill_path(request.path_params["path"]), request.query_params
        lines = await self._store.history(who, path)
        if not lines:
            raise no_skill(skill_md_uri(path))
        namespace = path.partition("/")[0]
        actions = await self._store.actions(who, namespace)
        reviews = [each for each in await self._reviews(actions, namespace) if each.path == path]
        rows = version_rows(lines, reviews)
        there = [row for row in rows if row.line.deleted is None]
        new = next((row for row in there if row.line.version == query.get("to", "")), there[0] if there else None)
        wanted = query.get("from", (new.before or "") if new else "")
        old = next((row.line.version for row in there if row.line.version == wanted), None)
        old_release, release = await self._release(path, old), await self._release(path, new and new.line.version)
        has_two = release is not None and old != release.version
        return self._site.page(
            "registry/versions.html",
            path=path,
            tabs=TABS,
            namespace=await self._store.namespace(who, namespace),
            rows=rows if "all" in query else rows[:_MOST_VERSIONS],
            more=0 if "all" in query else max(len(rows) - _MOST_VERSIONS, 0),
            there=[row.line for row in there],
            channels=sorted({channel for line in lines for channel in line.channels} | {"stable"}),
            release=release,
            old=old,
            difference=await difference(self._store, who, old_release, release) if release and has_two else None,
            lines=query.get("lines", "split" if old else "unified"),
            may_publish="publish" in actions,
            done=_DONE.get(query.get("done", ""), ""),
        )

    async def change(self, request: Request) -> Response:
        """Move a channel, yank a version, or deprecate a skill; or undo that."""
        path = parse_skill_path(request.path_params["path"])
        form = await self._form(request)
        if form is None:
            return self._site.refuse_form()
        return self._done(path, await change_skill(self._store, _actor(request), path, form))

    # Reviews and the log

    async def reviews(self, request: Request) -> Response:
        """The reviews that wait in the namespaces where the caller works."""
        found = await self._store.reviews(current_identity(), request.query_params.get("namespace") or None)
        return self._site.page("registry/reviews.html", reviews=found[:_MOST_REVIEWS], total=len(found))

    async def review(self, request: Request) -> Response:
        """One review: the differences to the version that the channel has, and what is in the new one."""
        who, wanted = current_identity(), await self._review(request)
        release = await self._release(wanted.path, wanted.version)
        if release is None:
            raise _no_review(wanted.number)
        ref = SkillRef(wanted.path, version=wanted.version)
        actions = await self._store.actions(who, ref.namespace)
        old = await self._release(wanted.path, wanted.current)
        return self._site.page(
            "registry/review.html",
            wanted=wanted,
            release=release,
            place=ref.served_path,
            review=await self._findings(release),
            difference=await difference(self._store, who, old, release),
            lines=request.query_params.get("lines", "split" if old else "unified"),
            may_review="review" in actions,
            is_own=who.name in (wanted.by, release.published_by),
        )

    async def decide(self, request: Request) -> Response:
        """Approve or decline a review."""
        form = await self._form(request)
        if form is None:
            return self._site.refuse_form()
        wanted = await self._review(request)
        release = await self._release(wanted.path, wanted.version)
        if release is None:
            raise _no_review(wanted.number)
        review = await self._findings(release)
        done = await decide_review(self._store, _actor(request), wanted, form, is_serious=review.is_serious)
        return self._done(wanted.path, done)

    async def log(self, request: Request) -> Response:
        """The newest lines of the log of a namespace; of the whole registry for its administrators."""
        query, actor = request.query_params, _actor(request)
        name, before = query.get("namespace", ""), query.get("before", "")
        # The number of a line counts the changes of all namespaces, so it is no part of an address of an owner.
        is_number = actor.identity.is_admin and before.isascii() and before.isdigit() and len(before) < 19
        limit = _MOST_LINES if "all" in query else _MOST_VERSIONS
        found: Sequence[AuditLine] = ()
        if name or actor.identity.is_admin or not actor.identity.principals:  # the store refuses strangers
            namespace = parse_namespace(name) if name else None
            number = int(before) if is_number else None
            found = await self._store.audit(actor, namespace=namespace, before=number, limit=limit + 1)
        return self._site.page(
            "registry/log.html",
            lines=found[:limit],
            namespace=name,
            has_more=len(found) > limit,
            is_admin=actor.identity.is_admin,
            is_all="all" in query,
        )

    # Lists

    async def _listed(self, request: Request) -> dict[str, Any]:
        """One page of skills, by path: of the registry, a namespace, or a folder in it."""
        who, query, number = current_identity(), request.query_params, self._changes.number
        under = query.get("under", "").strip("/")
        context = await self._namespace(request, under) if under else await self._namespaces(query.get("from", ""))
        after = query.get("after", "")
        after = after if after.isascii() and after.isprintable() else ""
        releases = await self._store.skills(who, after, PAGE_SIZE + 1, below=under)
        entries = [entry_of(each, SkillRef(each.path)) for each in releases[:PAGE_SIZE]]
        self._ask(entries)
        return {
            "under": under,
            "is_first": not after and not query.get("from", ""),
            "rows": [list_row(entry, self._examiner.known(entry)) for entry in entries],
            "after": entries[-1].path if len(releases) > PAGE_SIZE else "",
            "number": number,
            **context,
        }

    async def _namespaces(self, after: str) -> dict[str, Any]:
        """The namespaces of the first page, with the number of skills in each."""
        who = current_identity()
        after = after if after.isascii() and after.isprintable() else ""
        found = await self._store.namespaces(who, after, PAGE_SIZE + 1)
        shown = found[:PAGE_SIZE]
        counts = await self._store.counts(who, [each.name for each in shown], MOST_COUNTED)
        return {
            "namespaces": shown,
            "counts": counts,
            "most": MOST_COUNTED,
            "has_more": len(found) > PAGE_SIZE,
        }

    async def _namespace(self, request: Request, under: str) -> dict[str, Any]:
        """The namespace around a folder; for its owners with roles, for those who work in it with reviews."""
        who = current_identity()
        name = (parse_skill_path(under) if "/" in under else parse_namespace(under)).partition("/")[0]
        found = await self._store.namespace(who, name)
        if found is None:
            raise no_namespace(name)
        actions = await self._store.actions(who, name)
        is_owner = "manage" in actions
        return {
            "namespace": found,
            "actions": sorted(actions),
            "grants": await self._store.grants(_actor(request), name) if is_owner else None,
            "waiting": await self._reviews(actions, name),
        }

    async def _reviews(self, actions: frozenset[Action], namespace: str) -> Sequence[ReviewRequest]:
        """The open reviews of a namespace, for those who do more than read there."""
        return await self._store.reviews(current_identity(), namespace) if actions - {"read"} else ()

    async def _similar(self, query: str) -> list[str]:  # noqa: ARG002 - no list of all words exists
        return []

    async def run(self) -> None:
        """Examine the skills of open pages in the background, until cancelled."""
        await self._examiner.run()

    async def events(self, request: Request) -> Response:
        """Announces changes of the skills that the caller may see, until the session ends."""
        response, sessions = await super().events(request), self._site.sessions
        if isinstance(response, StreamingResponse) and sessions is not None and sessions.name_in(request.scope):
            response.body_iterator = _while_signed_in(response.body_iterator, sessions, request)
        return response

    def _ask(self, entries: Sequence[SkillEntry]) -> None:
        self._watched.of(self._catalog).ask(entry for entry in entries if self._examiner.known(entry) is None)
        super()._ask(entries)

    def _tell(self) -> None:
        for watched in self._watched.values():
            watched.tell_results(self._examiner)

    # What requests name

    async def _release(self, path: str, version: str | None) -> Release | None:
        ref = SkillRef(path, version=version)
        return None if version is None else await self._store.release(current_identity(), ref)

    async def _findings(self, release: Release) -> Review:
        ref = SkillRef(release.path, version=release.version)
        return await review_skill(self._catalog, entry_of(release, ref))

    async def _review(self, request: Request) -> ReviewRequest:
        """The open review with the number in the path, if the caller may see it."""
        text = request.path_params["number"]
        for each in await self._store.reviews(current_identity()):
            if str(each.number) == text:
                return each
        raise _no_review(text)

    async def _form(self, request: Request) -> Form | None:
        """The fields of a form of this site; ``None`` if another one sent it, or if it is too large."""
        if not self._site.is_own_form(request):
            return None
        return Form(await read_form(request, _MAX_FORM, _MAX_FIELDS))

    def _done(self, path: str, done: str) -> Response:
        self._wake()
        return RedirectResponse(f"{self._site.base}/versions/{quote(path)}?done={done}", 303)

    @property
    def _sends_token(self) -> bool:
        return bool(current_identity().principals)

    @property
    def _changes(self) -> ChangeCounter:
        return self._watched.of(self._catalog)


async def _while_signed_in(events: AsyncIterable[_T], sessions: Sessions, request: Request) -> AsyncIterator[_T]:
    """The events of a caller who is signed in. Each is sent only if the session has not ended."""
    was_signed_in = await sessions.user(request.scope) is not None
    async for event in events:
        if was_signed_in and await sessions.user(request.scope) is None:
            return
        yield event


def _actor(request: Request) -> Actor:
    return Actor(current_identity(), request.client.host if request.client else "unknown", time.time())


def _newest(lines: Sequence[VersionLine]) -> VersionLine | None:
    return next((line for line in lines if line.deleted is None), None)


def _no_review(number: object) -> NotFoundError:
    return NotFoundError("review-not-found", f"no review {number!s:.20} waits for you", "see the open reviews")
