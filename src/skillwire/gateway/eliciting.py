"""Asking the person at a client for a yes: a skill that waits for one is asked about when it is wanted (A1, B6).

In ``admit`` mode, where a client can put a form before its person (MCP elicitation) and the gateway is not
read-only. The form says what a review says. A yes is recorded in the name of whoever is behind that client, for
exactly the content that the form was about, and the request is answered; a no is recorded too and not asked about
again for a while. Without a form nothing changes: the skill answers like one that does not exist.

- Handshake era: the form is a request to the client while its own request waits.
- Stateless era: the answer to ``resources/read``, ``tools/call`` and ``prompts/get`` is that input is required,
  and the client asks again with it. The state it brings back is the content that the person saw; whoever made one
  up could as well make up the answer, so that it is compared and not sealed.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import anyio
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.shared.exceptions import MCPError
from mcp_types.methods import INPUT_REQUIRED_METHODS

from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.gateway.forms import FIELD, approval_form, is_yes, shown_name
from skillwire.gateway.recording import contents_name
from skillwire.host.approvals import Answer, ApprovalRequest
from skillwire.server.binding import is_modern
from skillwire.skill.uri import SkillUri, parse_uri, skill_md_uri
from skillwire.store.contract import LogLine
from skillwire.wire.extension import SKILLS_GET
from skillwire.wire.fallback import LOAD, READ

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server

    from skillwire.gateway.opening import Gateway, Upstream
    from skillwire.server.binding import Context
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review

_ASKED: TypeAlias = tuple[str, str, str, str]  # who, label, URI, content
_PATIENCE_SECONDS = 600.0
_REFUSED_SECONDS = 3600.0
_MOST_REFUSED = 10_000

log = logging.getLogger("skillwire.gateway")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A skill that a client wants and that waits for a yes."""

    upstream: Upstream
    entry: SkillEntry
    content: str
    who: str

    @property
    def key(self) -> _ASKED:
        """What a no is remembered by."""
        return self.who, self.upstream.label, self.entry.uri, self.content


def attach_eliciting(server: Server[Any], gateway: Gateway, sees: Callable[[], Callable[[str], bool]]) -> None:
    """Ask, on ``server``, whoever may see a skill that waits; nobody, unless the policy wants approvals."""
    if gateway.policy.mode == "admit" and not gateway.policy.read_only:
        server.middleware.insert(0, Eliciting(gateway, sees))


class Eliciting:
    """The middleware."""

    def __init__(self, gateway: Gateway, sees: Callable[[], Callable[[str], bool]]) -> None:
        self._gateway = gateway
        self._sees = sees
        self._asking: dict[_ASKED, anyio.Lock] = {}
        self._refused: OrderedDict[_ASKED, float] = OrderedDict()

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Ask first, if that is all that is missing; then answer."""
        word = _wanted(ctx)
        if word is None or not _can_ask(ctx):
            return await call_next(ctx)
        try:
            required = await self._ask(ctx, word)
        except SkillwireError as error:  # it cannot be shown, so that nobody can say yes to it
            log.info("nobody could be asked about %r: %s", word[:200], error.message)
            required = None
        return await call_next(ctx) if required is None else required

    async def _ask(self, ctx: Context, word: str) -> dict[str, Any] | None:
        """A result that requires input, or ``None`` when all was said."""
        wanted = await self._waiting(ctx, word)
        if wanted is None or self._was_refused(wanted.key):
            return None
        if is_modern(ctx):
            given = _given(ctx, wanted.content)
            if given is None:
                review = await wanted.upstream.admitting.review(wanted.entry)
                form = approval_form(wanted.upstream.label, review, wanted.content)
                request = {"method": "elicitation/create", "params": {"mode": "form", **form}}
                required = {"inputRequests": {FIELD: request}, "requestState": wanted.content}
                return {"resultType": "input_required", **required}
            await self._settle(wanted, yes=is_yes(given))
            return None
        lock = self._asking.setdefault(wanted.key, anyio.Lock())
        async with lock:
            if not self._was_refused(wanted.key) and await self._is_waiting(wanted):
                await self._ask_now(ctx, wanted)
        self._asking.pop(wanted.key, None)
        return None

    async def _ask_now(self, ctx: Context, wanted: Wanted) -> None:
        review = await wanted.upstream.admitting.review(wanted.entry)
        form = approval_form(wanted.upstream.label, review, wanted.content)
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                answer = await ctx.session.elicit_form(form["message"], form["requestedSchema"], ctx.request_id)
        except (MCPError, TimeoutError) as error:  # no way to the client, or nobody there
            log.info("a client could not ask its person: %s", error)
            return
        said = {"action": answer.action, "content": answer.content}
        await self._settle(wanted, yes=is_yes(said), review=review)

    async def _settle(self, wanted: Wanted, *, yes: bool, review: Review | None = None) -> None:
        gateway, entry, label = self._gateway, wanted.entry, wanted.upstream.label
        if yes:
            review = review or await wanted.upstream.admitting.review(entry)
            request = ApprovalRequest("load", label, entry, review)
            await gateway.approvals.remember(request, Answer(yes=True, by=wanted.who))
            await gateway.standing.look()
            return
        self._refused[wanted.key] = time.monotonic()
        while len(self._refused) > _MOST_REFUSED:
            self._refused.popitem(last=False)
        facts = {"kind": "load", "fingerprint": wanted.content}
        await gateway.store.log(LogLine("denied", label, entry.uri, wanted.who, time.time(), facts))

    async def _waiting(self, ctx: Context, word: str) -> Wanted | None:
        for uri in await self._meant(word):
            try:
                place = parse_uri(uri)
                upstream = self._gateway.upstreams.get(place.segments[0])
                if upstream is None or len(place.segments) < 2 or not self._sees()(uri):
                    continue
                inside = SkillUri(place.scheme, place.segments[1:])
                entry = await upstream.admitting.waiting_around(upstream.addressed.theirs(str(inside)))
            except (FormatError, NotFoundError):
                continue
            if entry is not None and contents_name(entry) != "dynamic":  # V7: nothing to bind a yes to
                return Wanted(upstream, entry, contents_name(entry), _who(ctx))
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

    def _was_refused(self, key: _ASKED) -> bool:
        return time.monotonic() - self._refused.get(key, -_REFUSED_SECONDS) < _REFUSED_SECONDS


def _wanted(ctx: Context) -> str | None:
    """Which skill or file a request is about: a URI, a path or a name."""
    params = ctx.params or {}
    if ctx.method in (SKILLS_GET, "resources/read"):
        word = params.get("uri")
    elif ctx.method == "tools/call" and params.get("name") in (LOAD, READ):
        word = cast("dict[str, Any]", params.get("arguments") or {}).get("skill")
    elif ctx.method == "prompts/get":
        word = params.get("name")
    else:
        word = None
    return word if isinstance(word, str) and word else None


def _can_ask(ctx: Context) -> bool:
    declared = ctx.session.client_capabilities
    asks = None if declared is None else declared.elicitation
    if asks is None or (asks.form is None and asks.url is not None):
        return False
    return ctx.method in INPUT_REQUIRED_METHODS if is_modern(ctx) else ctx.session.can_send_request


def _given(ctx: Context, content: str) -> dict[str, Any] | None:
    """The answer that a request of the stateless era brings, if it is about this very content."""
    params = ctx.params or {}
    answers = params.get("inputResponses")
    if params.get("requestState") != content or not isinstance(answers, dict):
        return None
    answer = cast("dict[str, Any]", answers).get(FIELD)
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None


def _who(ctx: Context) -> str:
    """Who says yes: the subject of a token, or else the client by the name it gives itself."""
    token = get_access_token()
    if token is not None and token.subject:
        return token.subject
    params = ctx.session.client_params
    return f"client:{shown_name(params.client_info.name)}" if params is not None else "client"
