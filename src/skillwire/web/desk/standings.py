"""The states of skills at the desk: how a person stands to each, and whether its origin can be asked. PURE.

new          nobody decided anything about this content
approved     exactly this content was approved
changed      another content of it was approved
revoked      a person took their yes back
declined     a person said no to exactly this content: no model is told of it
dynamic      nothing about it can be verified, so that there is nothing to say yes to for good (V7)
local        in a folder of the person's own: it needs no approval
unlisted     approved, and its origin does not list it any more, or is not known here
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from skillwire.host.results import standing_of
from skillwire.skill.approval import has_contents

if TYPE_CHECKING:
    from skillwire.host.names import NamedEntry
    from skillwire.host.origins import Origin
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import LogLine

State: TypeAlias = Literal["new", "approved", "changed", "revoked", "declined", "dynamic", "local", "unlisted"]
STATES: tuple[State, ...] = get_args(State)


def state_of(skill: NamedEntry, approval: Approval | None, decision: LogLine | None) -> State:
    """The state of a skill, given the approval and the newest decision that are remembered for it."""
    standing = standing_of(skill, approval, decision)
    return "new" if standing == "unapproved" else standing


def state_once_wanted(skill: NamedEntry, approval: Approval | None, decision: LogLine | None) -> State:
    """The same after its server was asked for all that it promises: what is missing then stays missing."""
    state = state_of(skill, approval, decision)
    return "dynamic" if state == "new" and not has_contents(skill.entry) else state


def mark_of(state: State, approval: Approval | None) -> str:
    """How a person stands to a skill, in a word that a form sends back: another one if somebody else decided.

    Of an approved skill, also what it may use.
    """
    if state != "approved" or approval is None:
        return state
    said = json.dumps([approval.by, approval.at, sorted(approval.grants)])
    return f"{state}-{sha256(said.encode()).hexdigest()[:16]}"


def is_away(origin: Origin | None) -> bool:
    """Whether an origin cannot be asked now."""
    return origin is None or (origin.error is not None and origin.state in ("stale", "unreachable"))
