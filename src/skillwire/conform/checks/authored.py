"""A ``SKILL.md`` and the frontmatter that its entry carries: the same, field by field (E1, F1, F4, F5).

Two faults have causes that can be told from what differs, and rules of their own: YAML 1.1 instead of 1.2 (F4),
and the line break at the end of a block scalar (F5).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import FormatError
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.verify import differing_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.conform.checks.asking import Listed, Run
    from skillwire.conform.evidence import Exchange

_TRAP = re.compile(  # what YAML 1.1 reads as a boolean, an octal, a sexagesimal, a date or a number in thousands
    rb"^[^#\r\n]*:[ \t]+(?:[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[yYnN]|0\d+|\d+(?::[0-5]?\d)+"
    rb"|\d{4}-\d\d?-\d\d?.*|[+-]?\d+(?:_\d+)+)[ \t]*\r?$",
    re.MULTILINE,
)
_DATE = re.compile(r"\d{4}-\d\d?-\d")


def check_document(run: Run, skill: Listed, data: bytes, exchange: Exchange) -> None:
    """Compare the bytes of a ``SKILL.md`` with the entry's frontmatter."""
    uri, ledger = skill.entry.uri, run.ledger
    try:
        document = parse_skill_md(data)
    except FormatError as error:
        ledger.broken("F1", f"{uri!r:.300}: {error.message}", exchange)
        return
    ledger.held("F1", exchange)
    sent, written = skill.entry.frontmatter, document.frontmatter
    run.written[uri] = written
    different = differing_fields(sent, written, sent.keys() | written.keys())
    for name in different:
        rule, why = _cause(sent.get(name), written.get(name), is_there=name in sent and name in written)
        part = {"entry": sent.get(name), "SKILL.md": written.get(name)}
        ledger.broken(rule, f"{uri!r:.300}: the field {name!r:.80} {why}", exchange, part)
    if not different:
        ledger.held("E1", exchange)
        head = data[: data.find(b"\n---", 4)]
        if _TRAP.search(head):
            ledger.held("F4", exchange)
        if document.frontmatter and _ends_in_break(list(document.frontmatter.values())[-1]):
            ledger.held("F5", exchange)


def _cause(sent: Any, written: Any, *, is_there: bool) -> tuple[str, str]:
    """The rule that a difference breaks, and what happened, in words."""
    if not is_there:
        return "E1", "is not in both the entry and the SKILL.md"
    if _throughout(sent, written, _is_without_break):
        return "F5", "lost its last line break"
    if _throughout(sent, written, _is_misread):
        return "F4", f"was read as {sent!r:.80}, in YAML 1.2 it is {written!r:.80}"
    return "E1", "differs between the entry and the SKILL.md"


def _throughout(sent: Any, written: Any, is_so: Callable[[Any, Any], bool]) -> bool:
    """Whether ``is_so`` holds wherever the two differ."""
    if isinstance(sent, dict) and isinstance(written, dict):
        one, other = cast("dict[str, Any]", sent), cast("dict[str, Any]", written)
        return one.keys() == other.keys() and all(
            one[key] == other[key] or _throughout(one[key], other[key], is_so) for key in one
        )
    return is_so(sent, written)


def _is_without_break(sent: Any, written: Any) -> bool:
    return isinstance(sent, str) and isinstance(written, str) and written == sent + "\n"


def _is_misread(sent: Any, written: Any) -> bool:
    """Whether the two are scalars of different kinds, or differ as a date does once it is written out again."""
    if isinstance(sent, dict | list) or isinstance(written, dict | list):
        return False
    return type(sent) is not type(written) or (isinstance(written, str) and _DATE.match(written) is not None)


def _ends_in_break(value: Any) -> bool:
    """Whether the last text in ``value`` ends in a line break."""
    while isinstance(value, dict | list) and value:
        items = cast("dict[str, Any] | list[Any]", value)
        value = list(items.values())[-1] if isinstance(items, dict) else items[-1]
    return isinstance(value, str) and value.endswith("\n")
