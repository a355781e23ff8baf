"""``/skill/…``, ``/file/…``, ``/raw/…`` and ``/question/…``: a skill, its files, decisions and questions about it.

Files are fetched and verified when the user opens their page.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.responses import Response
from starlette.routing import Route

from skillwire.errors import ApprovalError, FormatError, NotFoundError, OriginError, SkillwireError
from skillwire.host.approvals import Answer
from skillwire.skill.approval import EXECUTE, fingerprint_of, has_contents
from skillwire.skill.review import review_entry
from skillwire.skill.uri import parse_uri, path_in_skill
from skillwire.web.desk import decisions
from skillwire.web.desk.decisions import standing_of
from skillwire.web.desk.guard import form_endpoint
from skillwire.web.desk.overview import list_questions
from skillwire.web.desk.responses import HEADERS, named_skill, page_response, redirect, skill_url
from skillwire.web.desk.review import make_sheet, other_requests
from skillwire.web.files import MAX_FILES, file_headers, file_tree, file_view, skill_links
from skillwire.web.highlight import code
from skillwire.web.markdown import markdown
from skillwire.web.theme import field_texts

if TYPE_CHECKING:
    from markupsafe import Markup
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from skillwire.host.origins import NamedEntry
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.skill.uri import SkillUri
    from skillwire.store.records import Question
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.guard import Form
    from skillwire.web.desk.overview import QuestionRow
    from skillwire.web.desk.review import Sheet
    from skillwire.web.markdown import LinkTo

_SHOWN = ("name", "description")  # shown at the top
_PATH = "{origin}/{skill:path}"
_BY_SKILL = {"approve": decisions.approve, "decline": decisions.decline, "enable": decisions.enable}
_BY_PLACE = {"revoke": decisions.revoke, "grants": decisions.set_grants}
_DONE = {
    "approve": "Approved, exactly as shown here.",
    "once": "Allowed once. The program that asked continues; nothing was stored.",
    "decline": "Declined. Models do not see it, and hosts do not ask about it, until it changes.",
    "enable": "Enabled. The decline is undone.",
    "revoke": "The approval and all grants were revoked.",
    "grants": "The grants were saved.",
}

_CONFLICTS = {
    "findings-unconfirmed": ("Confirm the findings first", "Back to the review"),
    "decided-meanwhile": ("Another decision was made while you were reading", "Review the new state"),
    "skill-changed": ("The skill changed while you were reading", "Review the new content"),
}


def routes(desk: Desk) -> list[BaseRoute]:
    """The page of a skill, its forms, the pages of its files, and the pages of questions."""

    async def skill(request: Request) -> Response:
        label, uri = named_skill(request)
        if request.query_params.get("part"):
            return await _updates(desk, request, label, uri)
        try:
            found = await desk.requested_skill(request)
        except (NotFoundError, OriginError):
            return await _unlisted(desk, request, label, uri)
        return await _show(desk, request, found)

    def action(name: str) -> Route:
        """The form of one decision. It shows the result, or that the skill or its state changed meanwhile."""

        async def act(request: Request, form: Form) -> Response:
            label, uri = named_skill(request)
            done = "once" if name == "approve" and form.get("lasts") == "once" else name
            try:
                if name in _BY_PLACE:
                    await _BY_PLACE[name](desk, label, uri, form)
                else:
                    await _BY_SKILL[name](desk, await desk.find_skill(label, uri), form)
            except ApprovalError as error:
                title, words = _CONFLICTS.get(error.reference, _CONFLICTS["skill-changed"])
                to = (skill_url(label, uri), words)
                return await desk.show(request, "message.html", status=409, title=title, error=error, action=to)
            return redirect(skill_url(label, uri, done=done))

        return Route(f"/{name}/{_PATH}", form_endpoint(act), methods=["POST"])

    forms = [action(name) for name in (*_BY_SKILL, *_BY_PLACE)]
    return [Route(f"/skill/{_PATH}", skill), *forms, *_file_routes(desk), *_question_routes(desk)]


async def _show(desk: Desk, request: Request, found: NamedEntry) -> Response:
    """The full page."""
    sheet = await make_sheet(desk.host, desk.reader, found)
    view = "source" if request.query_params.get("view") == "source" else "rendered"
    html = await to_thread.run_sync(_skill_md_html, sheet, view)
    label, uri = found.origin.label, found.entry.uri
    questions = await _questions(desk, found)
    waiting = await list_questions(desk.host) if request.query_params.get("done") else []
    return await desk.show(
        request,
        "desk/skill.html",
        sheet=sheet,
        view=view,
        html=html,
        requests=other_requests(sheet.review),
        fields=field_texts({key: value for key, value in found.entry.frontmatter.items() if key not in _SHOWN}),
        content=sheet.fingerprint,
        has_changed=False,
        has_new_state=False,
        standing=sheet.standing,
        questions=questions,
        may_once=any(row.first.kind == "load" for row in questions),
        wants_once=request.query_params.get("once") == "yes",
        next_question=waiting[0] if waiting else None,
        lines=request.query_params.get("lines", ""),
        execute=EXECUTE,
        done=_DONE.get(request.query_params.get("done", ""), ""),
        here=skill_url(label, uri),
        raw=skill_url(label, uri, "raw", path="SKILL.md"),
        to=partial(skill_url, label, uri),
    )


def _skill_md_html(sheet: Sheet, view: str) -> Markup | None:
    """The ``SKILL.md``, rendered or as source; ``None`` if it could not be read."""
    if sheet.source is None or sheet.body is None:
        return None
    if view == "source":
        return code(sheet.source, "SKILL.md")
    # The findings beside the text have the hidden parts.
    return markdown(sheet.body, link=_link_in(sheet.origin, sheet.entry, sheet.entry.uri), with_hidden=False)


async def _questions(desk: Desk, found: NamedEntry) -> list[QuestionRow]:
    """The open questions about this skill."""
    key = found.origin.label, found.entry.uri
    return [row for row in await list_questions(desk.host) if (row.first.origin, row.first.entry.uri) == key]


async def _updates(desk: Desk, request: Request, label: str, uri: str) -> Response:
    """The part with changes since the page was made. No server receives a request."""
    try:
        found = desk.known_skill(label, uri)
    except (NotFoundError, OriginError):
        return Response(headers=HEADERS, media_type="text/html")
    entry, content = found.entry, request.query_params.get("fingerprint", "")
    standing = await standing_of(desk.host, found)
    return page_response(
        request,
        "desk/skill.html",
        block="updates",
        content=content,
        has_changed=fingerprint_of(entry) != content,
        has_new_state=standing.token != request.query_params.get("state", ""),
        standing=standing,
        questions=await _questions(desk, found),
        here=skill_url(label, entry.uri),
    )


async def _unlisted(desk: Desk, request: Request, label: str, uri: str) -> Response:
    """The page of a skill that is no longer listed. Its approval can be revoked."""
    approval = await desk.host.store.approval(label, uri)
    if approval is None and not request.query_params.get("done"):
        desk.known_skill(label, uri)  # raises the right error for an unknown origin or skill
    done = _DONE.get(request.query_params.get("done", ""), "")
    action = skill_url(label, uri, "revoke")
    return await desk.show(
        request, "desk/unlisted.html", label=label, uri=uri, approval=approval, action=action, done=done
    )


def _file_routes(desk: Desk) -> list[BaseRoute]:
    """The page of a file, and its bytes."""

    async def file(request: Request) -> Response:
        found, uri, path = await _find_file(desk, request)
        content = await desk.reader.read(found, uri)
        link = _link_in(found.origin.label, found.entry, uri)
        as_text = request.query_params.get("view") != "rendered"
        view = await to_thread.run_sync(
            lambda: file_view(content.data, path, link=link, as_text=as_text, is_review=True)
        )
        resource, place = found.entry.resource(uri), partial(skill_url, found.origin.label, found.entry.uri)
        names = [each.path or each.uri for each in found.entry.files[:MAX_FILES]] or [path]
        return await desk.show(
            request,
            "file.html",
            name=path,
            skill_name=found.entry.name,
            skill_path=found.entry.name,
            origin=found.origin.label,
            back=place(),
            tree=file_tree((each, place("file", path=each)) for each in names),
            view=view,
            modified=None,
            size=len(content.data),
            raw=place("raw", path=path),
            other_view=place("file", path=path) + ("&view=rendered" if as_text else ""),
            digest=None if resource is None else resource.digest,
            uri=uri,
        )

    async def raw(request: Request) -> Response:
        found, uri, path = await _find_file(desk, request)
        content = await desk.reader.read(found, uri)
        return Response(content.data, headers={**file_headers(path), "Cache-Control": "no-store"})

    return [Route(f"/file/{_PATH}", file), Route(f"/raw/{_PATH}", raw)]


async def _find_file(desk: Desk, request: Request) -> tuple[NamedEntry, str, str]:
    """The skill, and the URI and path of one of its listed files (V2)."""
    found, wanted = await desk.requested_skill(request), request.query_params.get("path", "")
    uris = [file.uri for file in found.entry.files] or [found.entry.uri]
    for uri in uris:
        if (path_in_skill(found.entry.uri, uri) or uri) == wanted:
            return found, uri, wanted
    raise NotFoundError(
        "file-unlisted",
        f"{found.entry.uri!r:.300} has no file {wanted!r:.200}",
        "go back to the skill, which may have changed",
        rule="V2",
    )


def _link_in(origin: str, entry: SkillEntry, uri: str) -> LinkTo:
    """The targets of links in the file at ``uri``. External links become text; the review lists them."""

    def page_of(place: SkillUri) -> str | None:
        file = entry.resource(str(place))
        return None if file is None else skill_url(origin, entry.uri, "file", path=file.path or file.uri)

    return skill_links(entry, parse_uri(uri), page_of)


def _question_routes(desk: Desk) -> list[BaseRoute]:
    """The page of a question of a running agent or gateway, and its form.

    A question about reading a skill is answered on the page of the skill, if this desk knows the same content.
    Other questions are answered here: skills that this desk does not know, tools, code, reads of other origins,
    and unverifiable content. The next open question follows.
    """

    async def question(request: Request) -> Response:
        asked = await desk.open_question(request.path_params["id"])
        here = await _known_content(desk, asked)
        wants_once = request.query_params.get("once") == "yes"
        if asked.kind == "load" and here == "same":
            return redirect(skill_url(asked.origin, asked.entry.uri, **({"once": "yes"} if wants_once else {})))
        review = _review_of(asked)
        return await desk.show(
            request,
            "desk/question.html",
            question=asked,
            review=review,
            requests=other_requests(review),
            files=[(file.path or file.uri, file.size) for file in asked.entry.files],
            offered=(*review.tools, EXECUTE) if asked.kind == "load" else (),
            execute=EXECUTE,
            here=here,
            wants_once=wants_once,
            may_be_stored=_may_be_stored(asked),
            needs_reading=_needs_reading(asked, review),
            url=skill_url(asked.origin, asked.entry.uri),
            file_url=skill_url(asked.origin, asked.entry.uri, "file", path="") if here == "same" else "",
            address=asked.address or _address(desk, asked.origin),
        )

    async def answer(request: Request, form: Form) -> Response:
        asked = await desk.open_question(request.path_params["id"])
        choice = form.get("answer")
        if choice not in ("yes", "no"):
            raise FormatError("argument-invalid", "invalid answer", "use the buttons")
        if choice == "yes" and _needs_reading(asked, _review_of(asked)) and form.get("read") != asked.id:
            raise decisions.findings_unconfirmed(asked.entry.uri)
        remember = _may_be_stored(asked) and form.get("lasts") != "once"
        answer = Answer(
            choice == "yes", desk.by, remember, form.grants if choice == "yes" else frozenset(), form.note
        )
        await decisions.answer(desk, asked, answer)
        waiting = await list_questions(desk.host)
        return redirect(waiting[0].url if waiting else "/?done=answered")

    return [Route("/question/{id}", question), Route("/question/{id}", form_endpoint(answer), methods=["POST"])]


def _review_of(question: Question) -> Review:
    """The facts in the entry of a question, and the hidden text that the program found that asks."""
    review = review_entry(question.entry)
    return replace(review, hidden=tuple(dict.fromkeys([*review.hidden, *question.hidden])))


def _may_be_stored(question: Question) -> bool:
    """Whether an answer can be valid until the content changes."""
    return question.kind == "load" or (question.kind in ("execute", "tool") and question.lasts)


def _needs_reading(question: Question, review: Review) -> bool:
    """Whether an approval needs a confirmation that the findings were read (B6)."""
    return question.kind in ("load", "dynamic") and review.is_serious


def _address(desk: Desk, label: str) -> str:
    """The address of an origin of this desk; empty for others."""
    return next((origin.address for origin in desk.host.registry if origin.label == label), "")


async def _known_content(desk: Desk, question: Question) -> str:
    """``same`` or ``other`` if the desk knows the skill with the same or another content; empty if not at all.

    ``unsure`` if the entry is incomplete and its server does not respond.
    """
    try:
        entry = (await desk.find_skill(question.origin, question.entry.uri)).entry
    except SkillwireError:
        return ""
    if question.kind == "load" and not question.content:  # the question was asked before the files were known (V5)
        return "same" if has_contents(entry) else "unsure"
    if fingerprint_of(entry) == question.content:
        return "same"
    return "other" if has_contents(entry) or not question.content else "unsure"
