"""``/bulk/…``: approve several skills of one origin at once, if nothing in them needs a review.

The files of each skill are read when the user opens the page. A skill can be ticked if every file was searched and
nothing was found, or if exactly this content was approved before. Others have a link to their review. The form has
the content and the state of each skill, and the rules are checked again for each (A1, B6).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from starlette.routing import Route

from skillwire.errors import ApprovalError, SkillwireError
from skillwire.host.approvals import ASKED_TO
from skillwire.skill.approval import fingerprint_of
from skillwire.web.desk import decisions
from skillwire.web.desk.guard import Form, form_endpoint
from skillwire.web.desk.history import list_versions
from skillwire.web.desk.responses import skill_url
from skillwire.web.desk.review import make_sheet

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.host.origins import NamedEntry
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.review import Sheet

MAX_SKILLS = 25  # of one page: each is read
_READ_SECONDS = 15.0  # after that, the others wait for the next page


class Candidate(NamedTuple):
    """A skill that waits for a decision, and why it needs a review of its own; empty if it does not."""

    sheet: Sheet
    reason: str
    was_approved: bool

    @property
    def url(self) -> str:
        """The address of its review."""
        return skill_url(self.sheet.origin, self.sheet.entry.uri)


async def _candidate(desk: Desk, skill: NamedEntry) -> Candidate:
    sheet = await make_sheet(desk.host, desk.reader, skill)
    versions = await list_versions(desk.host, sheet.origin, skill.entry.uri, skill)
    was_approved = any(line.what == "approved" for each in versions[:1] for line in each.events)
    review, reason, decision = sheet.review, "", sheet.standing.decision
    if sheet.standing.state == "revoked" and decision and decision.facts.get("why") == ASKED_TO:
        reason = "its approval was revoked"  # by a person, not by a host that saw other content
    elif not sheet.may_approve:
        reason = "it cannot be approved now" if sheet.standing.state != "approved" else "it is approved"
    elif sheet.errors or review.is_serious:
        reason = "some files could not be read" if sheet.errors else "it has serious findings"
    elif not was_approved and not (review.risk.is_low and not review.widening and not review.nested):
        reason = "it has findings"
    return Candidate(sheet, reason, was_approved)


def routes(desk: Desk) -> list[BaseRoute]:
    """The page, and its form."""

    async def bulk(request: Request, outcomes: list[tuple[str, str]] | None = None) -> Response:
        origin = desk.host.registry.get(request.path_params["origin"])
        rows = [
            row
            for row in await desk.rows.all()
            if row.origin == origin.label and row.state in ("new", "changed", "revoked")
        ]
        found, until = list[Candidate](), time.monotonic() + _READ_SECONDS
        for row in rows[:MAX_SKILLS]:
            if time.monotonic() > until:
                break
            try:
                found.append(await _candidate(desk, await desk.find_skill(row.origin, row.uri)))
            except SkillwireError:  # it was removed meanwhile
                continue
        found.sort(key=lambda each: bool(each.reason))
        return await desk.show(
            request,
            "desk/bulk.html",
            origin=origin,
            candidates=found,
            more=len(rows) - len(found),
            outcomes=outcomes,
        )

    async def approve(request: Request, form: Form) -> Response:
        label, outcomes = request.path_params["origin"], list[tuple[str, str]]()
        for uri in form.all("skill")[:MAX_SKILLS]:
            fields = [(name, form.get(f"{name}:{uri}")) for name in ("fingerprint", "state")]
            try:
                skill = await desk.find_skill(label, uri)
                found = await _candidate(desk, skill)
                if found.reason and fingerprint_of(skill.entry) == form.get(f"fingerprint:{uri}"):
                    raise ApprovalError("review-needed", found.reason, "open its review", rule="A1")
                await decisions.approve(desk, skill, Form([*fields, ("note", form.note)]))
                outcomes.append((skill.name, ""))
            except SkillwireError as error:
                outcomes.append((uri, f"{error.message} {error.label}"))
        return await bulk(request, outcomes)

    async def shown(request: Request) -> Response:
        return await bulk(request)

    return [Route("/bulk/{origin}", shown), Route("/bulk/{origin}", form_endpoint(approve), methods=["POST"])]
