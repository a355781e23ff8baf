"""The form that asks a person about a skill, and what their answer means. Pure.

A form is short, and everything in it that an author chose is one line with nothing invisible in it (B6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from skillwire.skill.hidden import one_line, spell_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill.review import Review

FIELD, READ = "approve", "read"
_READ_FIELD = {"type": "boolean", "title": "Read it first", "description": "Shows its text, and asks again."}
_TEXT_LINES = 200
_LONGEST = 300
_SHOWN = 5


def approval_form(label: str, review: Review, content: str, text: str | None = None) -> dict[str, Any]:
    """``message`` and ``requestedSchema`` of an elicitation about one content of one skill.

    Without ``text``, the person may ask to see it (V5).
    """
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
    if text is not None:
        shown = text.splitlines()
        lines += ["Its SKILL.md:", *(f"| {_line(each)}" for each in shown[:_TEXT_LINES])]
        if len(shown) > _TEXT_LINES:
            lines.append(f"and {len(shown) - _TEXT_LINES} lines more")
    field = {"type": "boolean", "title": "Approve this content", "description": "Another content asks again."}
    fields = {FIELD: field} if text is not None else {FIELD: field, READ: _READ_FIELD}
    schema = {"type": "object", "properties": fields, "required": [FIELD]}
    return {"message": "\n".join(lines), "requestedSchema": schema}


def is_yes(answer: Mapping[str, Any]) -> bool:
    """Whether a person said yes: they sent the form, and ticked the box."""
    return _ticks(answer, FIELD)


def wants_to_read(answer: Mapping[str, Any]) -> bool:
    """Whether the person wants to see the skill before they decide."""
    return _ticks(answer, READ) and not is_yes(answer)


def _ticks(answer: Mapping[str, Any], field: str) -> bool:
    content = answer.get("content")
    ticked = cast("dict[str, Any]", content).get(field) if isinstance(content, dict) else None
    return answer.get("action") == "accept" and ticked is True


def shown_name(text: str) -> str:
    """A stranger's name on one line."""
    return _line(text)[:80] or "?"


def _few(items: tuple[str, ...]) -> str:
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(_line(item) for item in items[:_SHOWN]) + more


def _line(text: str) -> str:
    return spell_out(one_line(text)[:_LONGEST])
