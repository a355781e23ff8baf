"""Asks the user of a client to approve a skill that waits for approval, when the client requests it (A1, B6, Z5).

In ``admit`` mode a request may fail only because an approval is missing. If the caller may see the skill, the
client supports forms (MCP elicitation) and the gateway is not read-only, the client is asked to show a form with
the review of the skill. An approval is stored for exactly the content of the form, in the name of the subject or
client, and the request is answered. A decline is logged, and the same requester is not asked again for a while.

If a client cannot be asked, it gets an error that names the command for the operator, and a question for the
operator is added to the ``ApprovalQueue`` (``approval_queue.py``). There are no further questions about content
that the operator declined.

- Handshake era: the form is a request to the client, sent while the client's own request waits.
- Stateless era: the response to ``resources/read``, ``tools/call`` and ``prompts/get`` is ``input_required``, and
  the client sends the request again with the answer. The request state is signed and bound to the requester, the
  skill and the content, so an answer counts only for a question that this gateway sent to this requester (Z5).

A client could invent the answer of its user, so the effect of such an approval is limited (Z5). On stdio it is
given by the user who started the gateway, and counts there. Over HTTP only the ``approvers`` of the policy are
asked, and their approvals count for all clients of the gateway. They never count for the operator's own host.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from weakref import WeakKeyDictionary

import anyio
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.methods import INPUT_REQUIRED_METHODS

from skillwire.errors import FormatError, NotFoundError, SkillwireError, StoreError
from skillwire.gateway.approval_queue import content_name
from skillwire.host.approvals import Answer, ApprovalRequest
from skillwire.server.dialect import is_modern
from skillwire.server.sdk_compat import connection_of
from skillwire.skill.hidden import one_line, spell_out
from skillwire.skill.review import review_entry
from skillwire.skill.uri import parse_uri, skill_md_uri
from skillwire.store.records import LogLine
from skillwire.wire.extension import SKILLS_GET
from skillwire.wire.fallback import LOAD, READ
from skillwire.wire.native import SKILLS_ACTIVATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.gateway.gateway import Gateway, Upstream
    from skillwire.server.dialect import Context
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review

APPROVE_FIELD, READ_FIELD = "approve", "read"
_ANSWER_SECONDS = 600.0
_DECLINED_SECONDS = 3600.0
_ANONYMOUS_DECLINED_SECONDS = 60.0
_MAX_DECLINED = 10_000
_MAX_TEXT_LINES = 200
_MAX_LINE = 300
_MAX_ITEMS = 5
_METHODS_WITH_URI_OR_NAME = (SKILLS_GET, SKILLS_ACTIVATE, "resources/read", "prompts/get")

log = logging.getLogger("skillwire.gateway")


class Requester(NamedTuple):
    """Who sent a request, and for how long a decline of theirs counts."""

    key: str
    declined_seconds: float = _DECLINED_SECONDS


QuestionKey: TypeAlias = tuple[Requester, str, str, str]  # requester, label, URI, content


@dataclass(frozen=True, slots=True)
class WaitingSkill:
    """A requested skill that waits for approval."""

    upstream: Upstream
    entry: SkillEntry
    content: str
    requester: Requester
    requester_name: str
    subject: str | None = None

    @property
    def key(self) -> QuestionKey:
        """Identifies a question about this content to this requester."""
        return self.requester, self.upstream.label, self.entry.uri, self.content


class Elicitation:
    """The middleware. ``sees()`` returns a test of which URIs the current caller sees."""

    def __init__(self, gateway: Gateway, sees: Callable[[], Callable[[str], bool]]) -> None:
        self._gateway = gateway
        self._sees = sees
        self._signing_key = secrets.token_bytes(32)
        self._locks: dict[QuestionKey, anyio.Lock] = {}
        self._declined = DeclinedQuestions()

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a request. If it fails because an approval is missing, ask for it and answer again."""
        reference = _requested_reference(ctx)
        if reference is None:
            return await call_next(ctx)
        response: HandlerResult = None
        failure: MCPError | None = None
        try:
            response = await call_next(ctx)
        except MCPError as error:
            if error.code != INVALID_PARAMS:  # the code for a skill that does not exist
                raise
            failure = error
        is_failed_tool = isinstance(response, dict) and response.get("isError") is True
        if failure is not None or is_failed_tool:
            skill = await self._waiting_skill(ctx, reference)
            if skill is not None:
                return await self._answer_waiting(ctx, reference, skill, call_next, response)
        if failure is not None:
            raise failure
        return response

    async def _answer_waiting(
        self, ctx: Context, reference: str, skill: WaitingSkill, call_next: CallNext, failed: HandlerResult
    ) -> HandlerResult:
        """Answer a request for a skill that waits. ``failed`` is the result of the failed tool, if any."""
        # Z5: over HTTP only the approvers of the policy. Others wait for the operator's answer.
        may_approve = not self._gateway.is_public or skill.subject in self._gateway.policy.approvers
        is_askable, can_show_form = await self._is_askable(skill), may_approve and _can_show_forms(ctx)
        if is_askable and can_show_form:
            required = await self._ask_client(ctx, skill)
            if required is not None:
                return required
            still_waiting = await self._waiting_skill(ctx, reference)
            if still_waiting is None:
                return await call_next(ctx)
            skill = still_waiting
        if is_askable and not (can_show_form and self._declined.has(skill.key)):
            upstream = skill.upstream
            request = ApprovalRequest("load", upstream.label, skill.entry, address=upstream.address)
            self._gateway.queue.add(request, skill.requester_name)
        admission = skill.upstream.gate.admission
        message, hint = admission.waiting_message(skill.entry), admission.approval_hint(skill.entry)
        return _approval_missing(ctx, failed, message, hint)

    async def _is_askable(self, skill: WaitingSkill) -> bool:
        """Whether this gateway may ask for an approval of the skill, in a form or through the queue."""
        if skill.content == "dynamic" or self._gateway.policy.read_only:  # V7
            return False
        try:
            return not await self._gateway.queue.is_declined(skill.upstream.label, skill.entry)
        except StoreError as error:
            log.warning("decisions cannot be read, so no approval is asked for: %s", error.message)
            return False

    # Asking

    async def _ask_client(self, ctx: Context, skill: WaitingSkill) -> dict[str, Any] | None:
        """A response that requires input; ``None`` if the user answered, or cannot be asked."""
        try:
            if is_modern(ctx):
                return await self._require_input(ctx, skill)
            lock = self._locks.setdefault(skill.key, anyio.Lock())
            async with lock:
                entry = await skill.upstream.gate.waiting_around(skill.entry.uri)
                is_waiting = entry is not None and content_name(entry) == skill.content
                if is_waiting and not self._declined.has(skill.key):
                    await self._send_form(ctx, skill)
            self._locks.pop(skill.key, None)
        except SkillwireError as error:  # the skill cannot be shown, so it cannot be approved
            log.info("no form about %r could be made: %s", skill.entry.uri[:200], error.message)
        return None

    async def _require_input(self, ctx: Context, skill: WaitingSkill) -> dict[str, Any] | None:
        """Stateless era: use the answer that the request carries, or return a response that requires one."""
        answer = _carried_answer(ctx)
        is_signed = answer is not None and self._is_signed((ctx.params or {}).get("requestState"), skill)
        wants_text = answer is not None and is_signed and wants_to_read(answer)
        if answer is not None and is_signed and not wants_text:
            await self._decide(skill, is_approved=is_approval(answer))
            return None
        if self._declined.has(skill.key):
            return None
        form = await self._form(skill, with_text=wants_text)
        request = {"method": "elicitation/create", "params": {"mode": "form", **form}}
        return {
            "resultType": "input_required",
            "inputRequests": {APPROVE_FIELD: request},
            "requestState": self._signed_state(skill, int(time.time())),
        }

    def _signed_state(self, skill: WaitingSkill, at: int) -> str:
        """The request state of a question that was sent at this time."""
        question = [str(at), skill.requester.key, skill.upstream.label, skill.entry.uri, skill.content]
        return f"{at}.{hmac.digest(self._signing_key, json.dumps(question).encode(), 'sha256').hex()}"

    def _is_signed(self, state: object, skill: WaitingSkill) -> bool:
        """Whether this gateway recently sent that question to this requester."""
        at = state.partition(".")[0] if isinstance(state, str) else ""
        if not (at.isascii() and at.isdigit() and len(at) < 20) or time.time() - int(at) > _ANSWER_SECONDS:
            return False
        return hmac.compare_digest(str(state).encode(), self._signed_state(skill, int(at)).encode())

    async def _send_form(self, ctx: Context, skill: WaitingSkill) -> None:
        """Handshake era: send the form; if the user wants to read the skill first, a second form with its text."""
        answer: dict[str, Any] = {}
        for with_text in (False, True):
            form = await self._form(skill, with_text=with_text)
            try:
                with anyio.fail_after(_ANSWER_SECONDS):
                    result = await ctx.session.elicit_form(
                        form["message"], form["requestedSchema"], ctx.request_id
                    )
            except (MCPError, TimeoutError) as error:
                log.info("a client did not answer a form: %s", error)
                return
            answer = {"action": result.action, "content": result.content}
            if not wants_to_read(answer):
                break
        await self._decide(skill, is_approved=is_approval(answer))

    async def _form(self, skill: WaitingSkill, *, with_text: bool) -> dict[str, Any]:
        """V5: the form needs the entry only; the ``SKILL.md`` is read if the user asked for its text."""
        if not with_text:
            return approval_form(skill.upstream.label, review_entry(skill.entry), skill.content)
        review, text = await skill.upstream.gate.review(skill.entry)
        return approval_form(skill.upstream.label, review, skill.content, text)

    async def _decide(self, skill: WaitingSkill, *, is_approved: bool) -> None:
        gateway, entry = self._gateway, skill.entry
        if is_approved:
            origin = skill.upstream.gate.admission.client_origin
            request = ApprovalRequest("load", origin, entry)
            await gateway.approvals.remember(request, Answer(yes=True, by=skill.requester_name))
            await gateway.approval_view.refresh()
            return
        self._declined.add(skill.key)
        # The kind marks it as the decline of one requester: the operator's questions stay open.
        facts = {"kind": "elicitation", "fingerprint": skill.content}
        label, name = skill.upstream.label, skill.requester_name
        await gateway.store.log(LogLine("denied", label, entry.uri, name, time.time(), facts))

    # Finding the skill

    async def _waiting_skill(self, ctx: Context, reference: str) -> WaitingSkill | None:
        """The skill that ``reference`` means, if only an approval is missing."""
        for uri in await self._possible_uris(reference):
            try:
                upstream = self._gateway.upstreams.get(parse_uri(uri).segments[0])
                inner = None if upstream is None else upstream.uri_map().inner(uri)
                if upstream is None or inner is None or not self._sees()(uri):
                    continue
                entry = await upstream.gate.waiting_around(inner)
            except (FormatError, NotFoundError):
                continue
            if entry is not None:
                token = get_access_token()
                subject = None if token is None else token.subject
                requester, name = self._declined.requester(ctx), _requester_name(ctx)
                return WaitingSkill(upstream, entry, content_name(entry), requester, name, subject)
        return None

    async def _possible_uris(self, reference: str) -> list[str]:
        """The URIs that a reference may mean: a URI, a path, or the name of exactly one waiting skill."""
        if "://" in reference:
            return [reference]
        found = [skill_md_uri(reference.strip("/"))]
        for upstream in self._gateway.upstreams.values():
            for entry in await upstream.gate.waiting():
                if entry.name == reference:
                    path = f"{upstream.label}/{upstream.gate.admission.path_of(entry)}"
                    found.append(skill_md_uri(path))
        # If several waiting skills have that name, only the path counts.
        return found if len(found) <= 2 else found[:1]


class DeclinedQuestions:
    """Questions that requesters declined in a form. They are not asked again for a while.

    A decline belongs to the subject of a token, or else to the session. The stateless era has no sessions. Clients
    without a token are told apart by the names that they report, which many share, so their declines count for a
    minute only: long enough to stop a model that repeats the request at once.
    """

    def __init__(self) -> None:
        self._until: OrderedDict[QuestionKey, float] = OrderedDict()
        self._sessions: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._session_numbers = count()

    def requester(self, ctx: Context) -> Requester:
        """The sender of a request."""
        token = get_access_token()
        if token is not None and token.subject:
            return Requester(f"subject:{token.subject}")
        if is_modern(ctx):
            return Requester(_requester_name(ctx), _ANONYMOUS_DECLINED_SECONDS)
        session = connection_of(ctx.session)
        if session not in self._sessions:
            self._sessions[session] = next(self._session_numbers)
        return Requester(f"session:{self._sessions[session]}")

    def add(self, key: QuestionKey) -> None:
        """Remember a declined question. The oldest are forgotten if there are too many."""
        self._until[key] = time.monotonic() + key[0].declined_seconds
        self._until.move_to_end(key)
        while len(self._until) > _MAX_DECLINED:
            self._until.popitem(last=False)

    def has(self, key: QuestionKey) -> bool:
        """Whether the question was declined recently."""
        return time.monotonic() < self._until.get(key, 0.0)


# Requests


def _requested_reference(ctx: Context) -> str | None:
    """The skill or file that a request is about: a URI, a path or a name."""
    params, reference = ctx.params or {}, None
    if ctx.method in _METHODS_WITH_URI_OR_NAME:
        reference = params.get("uri") or params.get("name")
    elif ctx.method == "tools/call" and params.get("name") in (LOAD, READ):
        reference = cast("dict[str, Any]", params.get("arguments") or {}).get("skill")
    return reference if isinstance(reference, str) and reference else None


def _can_show_forms(ctx: Context) -> bool:
    """Whether the client supports forms, and a form can be sent in response to this request.

    In the handshake era a form is a request on the stream of the client's request: over HTTP that needs responses
    as event streams. In the stateless era only three methods can respond with a question.
    """
    declared = ctx.session.client_capabilities
    elicitation = None if declared is None else declared.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return ctx.method in INPUT_REQUIRED_METHODS if is_modern(ctx) else ctx.session.can_send_request


def _carried_answer(ctx: Context) -> dict[str, Any] | None:
    """The answer that a request of the stateless era carries."""
    answers = (ctx.params or {}).get("inputResponses")
    answer = cast("dict[str, Any]", answers).get(APPROVE_FIELD) if isinstance(answers, dict) else None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None


def _requester_name(ctx: Context) -> str:
    """The subject of the token, or else the name that the client reports."""
    token = get_access_token()
    if token is not None and token.subject:
        return token.subject
    params = ctx.session.client_params
    return f"client:{_short_name(params.client_info.name)}" if params is not None else "client"


def _approval_missing(ctx: Context, failed: HandlerResult, message: str, hint: str) -> dict[str, Any]:
    """The response that an approval is missing: a tool's result, or the error for a skill that does not exist."""
    text = f"{message}; {hint} [approval-missing A1]"
    if isinstance(failed, dict):
        return {**failed, "content": [{"type": "text", "text": text}]}
    if ctx.method == "resources/read":  # the data of its errors is the URI only, as in wire/errors.py
        raise MCPError(code=INVALID_PARAMS, message=text, data={"uri": (ctx.params or {}).get("uri")})
    raise MCPError(code=INVALID_PARAMS, message=message, data={"reference": "approval-missing", "hint": hint})


# Forms


def approval_form(label: str, review: Review, content: str, text: str | None = None) -> dict[str, Any]:
    """``message`` and ``requestedSchema`` of an elicitation about one content of one skill.

    Everything that an author chose is shortened to one line and shows invisible characters (B6). Without ``text``
    the form offers to read the skill first (V5).
    """
    lines = [
        f"Approve the skill {_short_name(review.name)!r} from {label!r}?",
        f"Description: {_one_line(review.description)}",
        f"{len(review.files)} files, {review.size} bytes; content {content}",
    ]
    if review.scripts:
        lines.append(f"Scripts, which a host may run: {_first_items(review.scripts)}")
    if review.tools:
        lines.append(f"Requested tools, which an approval does not grant: {_first_items(review.tools)}")
    if review.nested:
        lines.append(f"Nested skills, which need their own approval: {_first_items(review.nested)}")
    if review.hidden:
        lines.append(f"HIDDEN TEXT: {_first_items(tuple(map(str, review.hidden)))}")
    fields = {
        APPROVE_FIELD: {
            "type": "boolean",
            "title": "Approve this content",
            "description": "Any change needs a new approval.",
        }
    }
    if text is None:
        description = "Shows the text of the skill in a second form."
        fields[READ_FIELD] = {"type": "boolean", "title": "Read it first", "description": description}
    else:
        text_lines = text.splitlines()
        lines += ["SKILL.md:", *(f"| {_one_line(each)}" for each in text_lines[:_MAX_TEXT_LINES])]
        if len(text_lines) > _MAX_TEXT_LINES:
            lines.append(f"and {len(text_lines) - _MAX_TEXT_LINES} more lines")
    schema = {"type": "object", "properties": fields, "required": [APPROVE_FIELD]}
    return {"message": "\n".join(lines), "requestedSchema": schema}


def is_approval(answer: Mapping[str, Any]) -> bool:
    """Whether the user sent the form with the approval ticked."""
    return _is_ticked(answer, APPROVE_FIELD)


def wants_to_read(answer: Mapping[str, Any]) -> bool:
    """Whether the user wants to read the skill before deciding."""
    return _is_ticked(answer, READ_FIELD) and not is_approval(answer)


def _is_ticked(answer: Mapping[str, Any], field: str) -> bool:
    content = answer.get("content")
    ticked = cast("dict[str, Any]", content).get(field) if isinstance(content, dict) else None
    return answer.get("action") == "accept" and ticked is True


def _short_name(text: str) -> str:
    return _one_line(text)[:80] or "?"


def _first_items(items: tuple[str, ...]) -> str:
    more = f" and {len(items) - _MAX_ITEMS} more" if len(items) > _MAX_ITEMS else ""
    return ", ".join(_one_line(item) for item in items[:_MAX_ITEMS]) + more


def _one_line(text: str) -> str:
    return spell_out(one_line(text)[:_MAX_LINE])
