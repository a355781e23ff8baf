"""Skills among a server's resources: listings, annotations, templates and completion (R1, R3, T1)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.asking import METHOD_NOT_FOUND, walk
from skillwire.errors import FormatError
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Listed, Run
    from skillwire.conform.evidence import Exchange
    from skillwire.conform.outcome import Ledger
    from skillwire.skill.uri import SkillUri

_MAX_VALUES = 100


async def check_resources(run: Run) -> None:
    """Look for the skills in ``resources/list``."""
    paged = await walk(run, "BASE", "BASE", "resources/list", "resources")
    known = {parse_uri(skill.entry.uri): skill for skill in run.entries}
    for item, exchange in paged.items:
        fields = as_object(item)
        skill = known.get(_place(fields.get("uri")))  # pyright: ignore[reportArgumentType] - None is in no table
        if skill is not None:
            _check_listed(run, fields, skill, exchange)


def _check_listed(run: Run, item: dict[str, Any], skill: Listed, exchange: Exchange) -> None:
    """R1: against what the author wrote, which the entry may have wrong."""
    ledger, written = run.ledger, run.written.get(skill.entry.uri, skill.entry.frontmatter)
    right = {"name": written.get("name"), "description": written.get("description"), "mimeType": "text/markdown"}
    wrong = [name for name, value in right.items() if item.get(name) != value]
    ledger.expect(
        "R1",
        not wrong,
        f"resources/list shows {skill.entry.uri!r:.300} with another {', '.join(wrong)}",
        exchange,
        item,
    )
    size = next((file.size for file in skill.entry.files if file.uri == skill.entry.uri), None)
    check_annotations(ledger, item, size, exchange)


def check_annotations(ledger: Ledger, item: dict[str, Any], size: int | None, exchange: Exchange) -> None:
    """R3: what is there has its shape; a server that says nothing is not wrong, and not helpful."""
    uri, annotations = item.get("uri"), as_object(item.get("annotations"))
    wrong = [name for name, value in annotations.items() if not _is_right(name, value)]
    if size is not None and "size" in item and item["size"] != size:
        wrong.append("size")
    if wrong:
        ledger.broken("R3", f"{uri!r:.300} has a wrong {', '.join(wrong)}", exchange, item)
        return
    missing = [name for name in ("audience", "priority") if name not in annotations]
    missing += ["size"] if "size" not in item else []
    if missing:
        ledger.doubtful("R3", f"{uri!r:.300} does not say its {', '.join(missing)}", exchange, item)
    else:
        ledger.held("R3", exchange)


async def check_templates(run: Run) -> None:
    """T1: a template for the skills' URIs, if there is one, is completed."""
    if (await run.ask("resources/templates/list")).code == METHOD_NOT_FOUND:
        run.ledger.absent(("T1",), "resources/templates/list is not known")
        return
    paged = await walk(run, "BASE", "BASE", "resources/templates/list", "resourceTemplates")
    schemes = {skill.root.scheme for skill in run.entries}
    template = next((found for item, _ in paged.items if (found := _fitting(as_object(item), schemes))), None)
    if template is None or "completions" not in run.capabilities:
        run.ledger.absent(("T1",), "no template for skills' URIs, or no completion")
        return
    uri, variable = template
    exchange = await run.ask(
        "completion/complete",
        ref={"type": "ref/resource", "uri": uri},
        argument={"name": variable, "value": ""},
    )
    said: object = as_object((exchange.result or {}).get("completion")).get("values")
    values = as_list(said)
    run.ledger.expect(
        "T1",
        isinstance(said, list) and len(values) <= _MAX_VALUES and all(isinstance(value, str) for value in values),
        f"completing {uri!r:.200} gave no list of at most {_MAX_VALUES} texts",
        exchange,
    )


def _fitting(item: dict[str, Any], schemes: set[str]) -> tuple[str, str] | None:
    uri = item.get("uriTemplate")
    if not isinstance(uri, str) or uri.partition("://")[0] not in schemes or "{" not in uri:
        return None
    variable = uri.partition("{")[2].partition("}")[0].lstrip("+#./;?&").partition(",")[0].rstrip("*")
    return (uri, variable) if variable else None


def _place(uri: object) -> SkillUri | None:
    try:
        return parse_uri(uri) if isinstance(uri, str) else None
    except FormatError:
        return None


def _is_right(name: str, value: Any) -> bool:
    """Whether an annotation has its shape; of one that is not known nothing can be said."""
    match name:
        case "audience":
            roles = as_list(value)
            return isinstance(value, list) and all(role in ("user", "assistant") for role in roles)
        case "priority":
            return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        case "lastModified":
            return isinstance(value, str) and _is_moment(value)
        case _:
            return True


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
