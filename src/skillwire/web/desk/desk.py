"""What all pages of the desk share: the host, what was read for its pages, who watches, and who decides."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillwire.errors import NotFoundError, OriginError, UpstreamError
from skillwire.web.desk.answers import shown
from skillwire.web.desk.events import Watcher
from skillwire.web.desk.places import uri_at
from skillwire.web.desk.reading import Reader
from skillwire.web.desk.rows import SkillRows, list_questions

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.host.names import NamedEntry
    from skillwire.host.runtime import Host
    from skillwire.store.contract import Question


@dataclass
class Desk:
    """One desk. ``by`` is who decides here, for the log."""

    host: Host
    by: str = "user"
    reader: Reader = field(init=False)
    watcher: Watcher = field(init=False)
    rows: SkillRows = field(init=False)

    def __post_init__(self) -> None:
        self.reader = Reader(self.host)
        self.watcher = Watcher(self.host)
        self.rows = SkillRows(self.host)

    async def show(self, request: Request, template: str, *, status: int = 200, **context: object) -> Response:
        """A whole page. ``number`` was taken when it was asked for (``numbered``): what is old learns of it."""
        number, waiting = request.state.number, len(await list_questions(self.host))
        return shown(request, template, status=status, number=number, waiting=waiting, by=self.by, **context)

    def numbered(self, app: ASGIApp) -> ASGIApp:
        """Note with each request how many changes there had been: gathering what a page shows may take long."""

        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("state", {})["number"] = self.watcher.number
            await app(scope, receive, send)

        return noted

    async def find(self, request: Request) -> NamedEntry:
        """The skill that an address means, with what its origin promises of it when somebody wants it."""
        return await self.wanted(request.path_params["origin"], uri_at(request.path_params["place"]))

    async def wanted(self, label: str, uri: str) -> NamedEntry:
        """A skill by origin and URI, with what its origin promises of it when somebody wants it."""
        self.host.origins.get(label)
        try:
            return await self.host.find(uri, label)
        except (UpstreamError, OriginError):  # away: what is known of it is better than nothing
            return self.known(label, uri)

    def known(self, label: str, uri: str) -> NamedEntry:
        """A skill as it is known, without asking anybody."""
        origin = self.host.origins.get(label)
        for skill in self.host.names.skills:
            if skill.origin is origin and skill.entry.uri == uri:
                return skill
        raise NotFoundError(
            "skill-unknown",
            f"{label!r:.80} lists no skill {uri!r:.300}",
            "go back to the overview: it may have been removed, or its server may not have answered yet",
        )

    async def question(self, identity: str) -> Question:
        """A question that is open; ``NotFoundError`` if it was answered, or nobody waits any more."""
        for question in await self.host.store.questions(time.time()):
            if question.id == identity:
                return question
        raise NotFoundError(
            "question-gone",
            "nobody waits for this answer any more",
            "it was answered, here or elsewhere, or whoever asked has ended; the log says which",
        )
