"""``skillwire explain``: explains the reference of a problem or an error.

The message and the hint of a reference are read from the places in this program that report it, so that the
explanation cannot differ from them. Only files that contain the reference are parsed.
"""

from __future__ import annotations

import ast
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.cli.command import JSON, Arguments, argument, verb
from skillwire.cli.printer import Printer, counted, runnable
from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_REFERENCE = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_REPORTERS = re.compile(
    r"[A-Z]\w*Error|Diagnostic|Refusal|\w*Failure|invalid_\w+|_\w*(?:error|invalid|refus|problem|fail)\w*"
)
_SHOWN = 3


class ExplainedPlace(NamedTuple):
    """One place in the source that reports a reference: its message and hint, with … for each variable part."""

    reference: str
    message: str
    hint: str
    rule: str


@verb(
    "Explain a problem or an error. Its reference is in brackets after the message. Without one, list all.",
    argument("reference", "[REFERENCE]", "such as name-mismatch", required=False),
    JSON,
    examples="""\
  skillwire explain name-mismatch
  skillwire explain
""",
)
def command(arguments: Arguments, printer: Printer) -> None:
    """Explain a reference, or list all."""
    if arguments.reference is None:
        references = all_references()
        printer.result({"references": references}, *references)
        printer.talk(counted(len(references), "reference"))
        return
    wanted: str = arguments.reference.strip("[]").lower()
    reports, kind = list(reports_of(_sources(), wanted)), _kind(wanted)
    if not reports and kind is None:
        near = get_close_matches(wanted, all_references(), 3)
        hint = f"did you mean {' or '.join(near)}?" if near else "list all of them: skillwire explain"
        raise NotFoundError("reference-unknown", f"unknown reference {wanted!r:.80}", hint)
    messages = list(dict.fromkeys(report.message for report in reports if report.message))
    hints = list(dict.fromkeys(report.hint for report in reports if report.hint))
    rules = sorted({report.rule for report in reports if report.rule} | ({kind["rule"]} if kind else set()))
    printer.json({"reference": wanted, **(kind or {}), "messages": messages, "hints": hints, "rules": rules})
    printer.data(wanted if kind is None else f"{wanted}: {kind['title']}")
    if kind is not None:
        served = "the skill is served nevertheless" if kind["served"] else "the skill is not served"
        printer.data(f"  severity:   {kind['severity']}; {served}")
    _print("message", messages, printer)
    _print("what to do", [runnable(hint) for hint in hints], printer)
    if rules:
        printer.data(f"  rules:      {', '.join(rules)} of the protocol and of this program")


def _print(title: str, texts: list[str], printer: Printer) -> None:
    for number, text in enumerate(texts[:_SHOWN]):
        printer.data(f"  {f'{title}:' if number == 0 else '':12}{text}")
    if len(texts) > _SHOWN:
        printer.data(f"  {'':12}… and {len(texts) - _SHOWN} more; --json lists all")


def _kind(reference: str) -> dict[str, Any] | None:
    from skillwire.skill.diagnostics import KINDS

    kind = KINDS.get(reference)
    if kind is None:
        return None
    return {"title": kind.title, "severity": kind.severity, "served": not kind.refuses, "rule": kind.rule}


def all_references() -> list[str]:
    """Return every reference that this program reports."""
    from skillwire.skill.diagnostics import KINDS

    return sorted({*KINDS, *(report.reference for report in reports_of(_sources()))})


def _sources() -> Iterator[str]:
    import skillwire

    for path in sorted(Path(skillwire.__file__).parent.rglob("*.py")):
        yield path.read_text(encoding="utf-8")


def reports_of(sources: Iterable[str], wanted: str | None = None) -> Iterator[ExplainedPlace]:
    """Yield every report in ``sources``, or those of one reference."""
    for source in sources:
        if wanted is not None and f'"{wanted}"' not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            values, words = _reported(node)
            reference = _template(values[0]) if values else ""
            if _REFERENCE.fullmatch(reference) and wanted in (None, reference):
                texts = [*map(_template, values[1:3]), "", ""]
                given = {word.arg: _template(word.value) for word in words}
                yield ExplainedPlace(reference, texts[0], given.get("hint") or texts[1], given.get("rule", ""))


def _reported(node: ast.AST) -> tuple[list[ast.expr], list[ast.keyword]]:
    """Return the arguments of a call that reports something, or the parts of a problem."""
    value = node.value if isinstance(node, (ast.Yield, ast.Return)) else None
    if isinstance(value, ast.Tuple) and len(value.elts) == 3:
        return value.elts, []
    if not isinstance(node, ast.Call):
        return [], []
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    return (node.args, node.keywords) if _REPORTERS.fullmatch(name) else ([], [])


def _template(node: ast.expr) -> str:
    """Return a text with … in place of each variable part."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _template(node.left) + _template(node.right)
    return ""
