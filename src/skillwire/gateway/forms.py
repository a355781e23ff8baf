"""The form that asks a person about a skill, and what their answer means. Pure.

A form is short, and everything in it that an author chose is one line with nothing invisible in it (B6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from skillwire.skill.hidden import one_line, spell_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill.review import Review

FIELD = "approve"
_LONGEST = 300
_SHOWN = 5


def approval_form(label: str, review: Review, content: str) -> dict[str, Any]:
    """``message`` and ``requestedSchema`` of an elicitation about one content of one skill."""
    lines = [
        f"Approve the skill {shown_name(review.name)!r} from {label!r}?",
        f"It says: {_line(review.description)}",
        f"{len(review.files)} files, {review.size} bytes; content {content}",
    ]
    if review.scripts:
        lines.append(f"Can run, if a host lets it: {_few(review.scripts)}")
    if review.tools:
        lines.append(f"Asks for tools, which this does not grant: {_few(review.tools)}")
    if review.nested:
        lines.append(f"Skills inside, which need a yes of their own: {_few(review.nested)}")
    if review.hidden:
        lines.append(f"HIDDEN TEXT: {_few(tuple(map(str, review.hidden)))}")
    field = {"type": "boolean", "title": "Approve this content", "description": "Another content asks again."}
    schema = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    return {"message": "\n".join(lines), "requestedSchema": schema}


def is_yes(answer: Mapping[str, Any]) -> bool:
    """Whether a person said yes: they sent the form, and ticked the box."""
    content = answer.get("content")
    ticked = cast("dict[str, Any]", content).get(FIELD) if isinstance(content, dict) else None
    return answer.get("action") == "accept" and ticked is True


def shown_name(text: str) -> str:
    """A stranger's name on one line."""
    return _line(text)[:80] or "?"


def _few(items: tuple[str, ...]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(_line(item) for item in items[:_SHOWN]) + more


def _line(text: str) -> str:
    return spell_out(one_line(text)[:_LONGEST])
