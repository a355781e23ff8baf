"""How an upstream is, in words for anybody.

An error of an upstream is told by its reference alone: its message may hold addresses, or what a process printed
last. The operator has those words on the terminal and in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.gateway.provenance import moment
from skillwire.skill.diagnostics import Diagnostic

if TYPE_CHECKING:
    from skillwire.client.remote import CatalogState
    from skillwire.errors import SkillwireError

_NOT_WHOLE = ("listing-too-long", "cursor-repeats")
_RAISE = "raise its bounds in the policy, or mend it"


def state_problem(
    label: str, state: CatalogState, error: SkillwireError | None, seen_at: float | None
) -> list[Diagnostic]:
    """How an upstream is, if it is not as it should be."""
    why = "" if error is None else f" [{error.reference}]"
    if state in ("unreachable", "connecting"):
        message = f"the upstream {label!r} cannot be reached and was never listed{why}"
        return [Diagnostic("upstream-away", message, "see whether it runs, and how it is configured", file="")]
    if state == "stale":
        since = "" if seen_at is None else f" since {moment(seen_at)}"
        is_longer = error is not None and error.reference in _NOT_WHOLE
        what = "has listed nothing whole" if is_longer else "has not answered"
        message = f"the upstream {label!r} {what}{since}; its last listing is served{why}"
        hint = _RAISE if is_longer else "see whether it runs"
        return [Diagnostic("upstream-stale", message, hint, file="")]
    if error is not None:
        message = f"the upstream {label!r} did not list all of its skills{why}"
        return [Diagnostic("upstream-partial", message, _RAISE, file="")]
    return []
