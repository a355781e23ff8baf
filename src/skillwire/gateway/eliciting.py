"""Asking the person at a client for a yes: a skill that waits for one is asked about when it is wanted (A1, B6).

In ``admit`` mode, for whoever may see the skill. A request that was refused only for want of a yes is asked about
where its client can put a form before its person (MCP elicitation) and the gateway is not read-only. The form says
what a review says. A yes is recorded in the name of whoever is behind that client, for exactly the content that
the form was about, and the request is answered; a no is recorded too and not asked about again for a while, of
whoever gave it (``refusals.py``): they are told that the skill waits.
Where nobody can be asked, the client is told what is missing, and which command gives it; whoever looks at this
host's questions is asked instead (``wishing.py``). What they declined is not asked about anywhere.

- Handshake era: the form is a request to the client while its own request waits.
- Stateless era: the answer to ``resources/read``, ``tools/call`` and ``prompts/get`` is that input is required,
  and the client asks again with it. The request state is signed and bound to the subject, the skill and the
  content: an answer counts only for a question that this gateway put to this subject (Z5).

A client could make up its person's answer, so its approval counts for little (Z5). On stdio it is that of the
person who started the gateway, and counts there. Over HTTP only subjects that the policy names as ``approvers``
can approve, for all clients of the gateway. It never counts for the operator's own host.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from skillwire.errors import FormatError, NotFoundError, SkillwireError, StoreError
from skillwire.gateway.forms import FIELD, approval_form, is_yes, wants_to_read
from skillwire.gateway.recording import contents_name
from skillwire.gateway.refusals import Refusals
from skillwire.gateway.wanting import can_ask, given_answer, is_refused, waiting_answer, wanted_word, who_asks
from skillwire.gateway.wishing import Wish
from skillwire.host.approvals import Answer, ApprovalRequest
from skillwire.server.binding import is_modern
from skillwire.skill.review import review_entry
from skillwire.skill.uri import parse_uri, skill_md_uri
from skillwire.store.contract import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server

    from skillwire.gateway.opening import Gateway, Upstream
    from skillwire.gateway.refusals import About, Asker
    from skillwire.server.binding import Context
    from skillwire.skill import SkillEntry

_PATIENCE_SECONDS = 600.0

log = logging.getLogger("skillwire.gateway")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A skill that a client wants and that waits for a yes."""

    upstream: Upstream
    entry: SkillEntry
    content: str
    who: str
    asker: Asker
    subject: str | None = None

    @property
    def key(self) -> About:
        """What a no is remembered by."""
        return self.asker, self.upstream.label, self.entry.uri, self.content


def attach_eliciting(server: Server[Any], gateway: Gateway, sees: Callable[[], Callable[[str], bool]]) -> None:
    """Ask, on ``server``, whoever may see a skill that waits; nobody, unless the policy wants approvals."""
    if gateway.policy.mode == "admit":
        server.middleware.insert(0, Eliciting(gateway, sees))


class Eliciting:
    """The middleware."""

    def __init__(self, gateway: Gateway, sees: Callable[[], Callable[[str], bool]]) -> None:
        self._gateway = gateway
        self._sees = sees
        self._key = secrets.token_bytes(32)
        self._asking: dict[About, anyio.Lock] = {}
        self._refusals = Refusals()

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer; if that is refused, and a yes is all that is missing, ask for it and answer again."""
        word = wanted_word(ctx)
        if word is None:
            return await call_next(ctx)
        answer, refusal = await _tried(ctx, call_next)
        if refusal is not None or is_refused(answer):
            wanted = await self._waiting(ctx, word)
            if wanted is not None:
                return await self._lacking(ctx, word, wanted, call_next, answer)
        if refusal is not None:
            raise refusal
        return answer

    async def _lacking(
        self, ctx: Context, word: str, wanted: Wanted, call_next: CallNext, refused: HandlerResult
    ) -> HandlerResult:
        """The answer to a request that was refused for want of a yes alone."""
        is_askable, can_be_asked = await self._is_askable(wanted), can_ask(ctx) and self._may_approve(wanted)
        if is_askable and can_be_asked:
            required = await self._ask(ctx, wanted)
            if required is not None:
                return required
            still = await self._waiting(ctx, word)
            if still is None:
                return await call_next(ctx)
            wanted = still
        if is_askable and not (can_be_asked and self._refusals.has(wanted.key)):
            self._wish(wanted)
        admission = wanted.upstream.admitting.admission
        how = admission.how_to_approve(wanted.entry)
        return waiting_answer(ctx, refused, admission.missing(wanted.entry), how)

    def _may_approve(self, wanted: Wanted) -> bool:
        """Z5: over HTTP only those whom the operator named; others wait for an answer at the desk."""
        return not self._gateway.is_public or wanted.subject in self._gateway.policy.approvers

    async def _is_askable(self, wanted: Wanted) -> bool:
        """Whether a yes can be given through this gateway, or because of it."""
        if wanted.content == "dynamic" or self._gateway.policy.read_only:  # V7
            return False
        try:
            return not await self._gateway.wishes.is_declined(wanted.upstream.label, wanted.entry)
        except StoreError as error:
            log.warning("nobody is asked, because decisions cannot be looked up: %s", error.message)
            return False

    def _wish(self, wanted: Wanted) -> None:
        """Ask whoever looks at the questions of this host; nobody waits for it."""
        self._gateway.wishes.note(Wish(wanted.upstream.label, wanted.entry, wanted.content, wanted.who))

    async def _ask(self, ctx: Context, wanted: Wanted) -> dict[str, Any] | None:
        """A result that requires input, or ``None`` when all was said that can be."""
        try:
            if is_modern(ctx):
                return await self._require(ctx, wanted)
            lock = self._asking.setdefault(wanted.key, anyio.Lock())
            async with lock:
                if not self._refusals.has(wanted.key) and await self._is_waiting(wanted):
                    await self._ask_now(ctx, wanted)
            self._asking.pop(wanted.key, None)
        except SkillwireError as error:  # it cannot be shown, so that nobody can say yes to it
            log.info("nobody could be asked about %r: %s", wanted.entry.uri[:200], error.message)
        return None

    async def _require(self, ctx: Context, wanted: Wanted) -> dict[str, Any] | None:
        given = given_answer(ctx)
        is_ours = given is not None and self._is_ours((ctx.params or {}).get("requestState"), wanted)
        wants_text = given is not None and is_ours and wants_to_read(given)
        if given is not None and is_ours and not wants_text:
            await self._settle(wanted, yes=is_yes(given))
            return None
        if self._refusals.has(wanted.key):
            return None
        form = await self._form(wanted, with_text=wants_text)
        request = {"method": "elicitation/create", "params": {"mode": "form", **form}}
        required = {"inputRequests": {FIELD: request}, "requestState": self._signed(wanted, int(time.time()))}
        return {"resultType": "input_required", **required}

    def _signed(self, wanted: Wanted, at: int) -> str:
        """The request state of a question that was put at this time."""
        about = [str(at), wanted.asker.key, wanted.upstream.label, wanted.entry.uri, wanted.content]
        return f"{at}.{hmac.digest(self._key, json.dumps(about).encode(), 'sha256').hex()}"

    def _is_ours(self, state: object, wanted: Wanted) -> bool:
        """Whether this gateway put that question to this subject, a while ago at most."""
        at = state.partition(".")[0] if isinstance(state, str) else ""
        if not (at.isascii() and at.isdigit() and len(at) < 20) or time.time() - int(at) > _PATIENCE_SECONDS:
            return False
        return hmac.compare_digest(str(state).encode(), self._signed(wanted, int(at)).encode())

    async def _ask_now(self, ctx: Context, wanted: Wanted) -> None:
        said: dict[str, Any] = {}
        for with_text in (False, True):
            form = await self._form(wanted, with_text=with_text)
            try:
                with anyio.fail_after(_PATIENCE_SECONDS):
                    answer = await ctx.session.elicit_form(
                        form["message"], form["requestedSchema"], ctx.request_id
                    )
            except (MCPError, TimeoutError) as error:  # no way to the client, or nobody there
                log.info("a client could not ask its person: %s", error)
                return
            said = {"action": answer.action, "content": answer.content}
            if not wants_to_read(said):
                break
        await self._settle(wanted, yes=is_yes(said))

    async def _form(self, wanted: Wanted, *, with_text: bool) -> dict[str, Any]:
        """V5: made from the entry alone; with its text if the person asked to see it."""
        if not with_text:
            return approval_form(wanted.upstream.label, review_entry(wanted.entry), wanted.content)
        review, text = await wanted.upstream.admitting.review(wanted.entry)
        return approval_form(wanted.upstream.label, review, wanted.content, text)

    async def _settle(self, wanted: Wanted, *, yes: bool) -> None:
        gateway, entry, label = self._gateway, wanted.entry, wanted.upstream.label
        if yes:
            origin = wanted.upstream.admitting.admission.client_origin
            request = ApprovalRequest("load", origin, entry, review_entry(entry))
            await gateway.approvals.remember(request, Answer(yes=True, by=wanted.who))
            await gateway.standing.look()
            return
        self._refusals.note(wanted.key)
        # Their own no: it does not speak for whoever decides for this host, and ends no question of others.
        facts = {"kind": "elicitation", "fingerprint": wanted.content}
        await gateway.store.log(LogLine("denied", label, entry.uri, wanted.who, time.time(), facts))

    async def _waiting(self, ctx: Context, word: str) -> Wanted | None:
        """The skill that ``word`` means, if a yes is all it lacks."""
        for uri in await self._meant(word):
            try:
                place = parse_uri(uri)
                upstream = self._gateway.upstreams.get(place.segments[0])
                if upstream is None or len(place.segments) < 2 or not self._sees()(uri):
                    continue
                entry = await upstream.admitting.waiting_around(upstream.catalog.inner_uri(uri))
            except (FormatError, NotFoundError):
                continue
            if entry is not None:
                asker, token = self._refusals.asker(ctx), get_access_token()
                subject = None if token is None else token.subject
                return Wanted(upstream, entry, contents_name(entry), who_asks(ctx), asker, subject)
        return None

    async def _meant(self, word: str) -> list[str]:
        """The URIs that a word of a client may mean: a URI, a path, or a name that one waiting skill has."""
        if "://" in word:
            return [word]
        found = [skill_md_uri(word.strip("/"))]
        for upstream in self._gateway.upstreams.values():
            for entry in await upstream.admitting.waiting():
                if entry.name == word:
                    path = f"{upstream.label}/{upstream.admitting.admission.path_of(entry)}"
                    found.append(skill_md_uri(path))
        return found if len(found) <= 2 else found[:1]

    async def _is_waiting(self, wanted: Wanted) -> bool:
        entry = await wanted.upstream.admitting.waiting_around(wanted.entry.uri)
        return entry is not None and contents_name(entry) == wanted.content


async def _tried(ctx: Context, call_next: CallNext) -> tuple[HandlerResult, MCPError | None]:
    """The answer, or the error that is also that for what is not there."""
    try:
        return await call_next(ctx), None
    except MCPError as error:
        if error.code != INVALID_PARAMS:
            raise
        return None, error
