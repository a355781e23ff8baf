"""Checks of skills among the resources: lists, annotations, templates and directories (R1, R3, T1, D1)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.client.bounds import as_list, as_object, as_uri
from skillwire.conform.server_run import METHOD_NOT_FOUND, NO_CURSOR, NOWHERE
from skillwire.skill.uri import parse_uri
from skillwire.wire.extension import DIRECTORY, DIRECTORY_READ

if TYPE_CHECKING:
    from skillwire.conform.report import Exchange, Ledger
    from skillwire.conform.server_run import ServerRun
    from skillwire.skill.uri import SkillUri

_MAX_VALUES = 100
_MAX_DEPTH = 32  # of nested empty directories


async def check_resources(run: ServerRun) -> None:
    """Check the skills in ``resources/list``."""
    known = {parse_uri(skill.entry.uri): skill.entry for skill in run.entries}
    for value, exchange in (await run.walk("BASE", "resources/list", "resources")).items:
        item = as_object(value)
        place = as_uri(item.get("uri"))
        if place is None or place not in known:
            continue
        entry = known[place]
        written = run.written.get(entry.uri, entry.frontmatter)  # the entry may be wrong
        right = {
            "name": written.get("name"),
            "description": written.get("description"),
            "mimeType": "text/markdown",
        }
        wrong = ", ".join(name for name, value in right.items() if item.get(name) != value)
        message = f"resources/list has {entry.uri!r:.300} with a different {wrong}"
        run.ledger.expect("R1", not wrong, message, exchange, item)
        size = next((file.size for file in entry.files if file.uri == entry.uri), None)
        _check_annotations(run.ledger, item, size, exchange)


def _check_annotations(ledger: Ledger, item: dict[str, Any], size: int | None, exchange: Exchange) -> None:
    """R3: present annotations are valid; missing ones are a warning."""
    uri, annotations = item.get("uri"), as_object(item.get("annotations"))
    wrong = [name for name, value in annotations.items() if not _is_valid_annotation(name, value)]
    if size is not None and "size" in item and item["size"] != size:
        wrong.append("size")
    missing = [name for name in ("audience", "priority") if name not in annotations]
    missing += ["size"] if "size" not in item else []
    if wrong:
        ledger.failed("R3", f"{uri!r:.300} has a wrong {', '.join(wrong)}", exchange, item)
    elif missing:
        ledger.warned("R3", f"{uri!r:.300} does not have its {', '.join(missing)}", exchange, item)
    else:
        ledger.passed("R3", exchange)


def _is_valid_annotation(name: str, value: Any) -> bool:
    """Whether an annotation is valid. Unknown annotations are valid."""
    match name:
        case "audience":
            roles = as_list(value)
            return isinstance(value, list) and all(role in ("user", "assistant") for role in roles)
        case "priority":
            return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        case "lastModified":
            try:
                return isinstance(value, str) and bool(datetime.fromisoformat(value))
            except ValueError:
                return False
        case _:
            return True


async def check_templates(run: ServerRun) -> None:
    """T1: a template for the URIs of skills can be completed."""
    if (await run.ask("resources/templates/list")).code == METHOD_NOT_FOUND:
        run.ledger.not_offered(("T1",), "resources/templates/list is unknown")
        return
    paged = await run.walk("BASE", "resources/templates/list", "resourceTemplates")
    schemes = {skill.root.scheme for skill in run.entries}
    template = next((found for item, _ in paged.items if (found := _skill_template(item, schemes))), None)
    if template is None or "completions" not in run.capabilities:
        run.ledger.not_offered(("T1",), "no template matches the URIs of skills, or completion is not declared")
        return
    uri, variable = template
    argument = {"name": variable, "value": ""}
    exchange = await run.ask("completion/complete", ref={"type": "ref/resource", "uri": uri}, argument=argument)
    completed: object = as_object((exchange.result or {}).get("completion")).get("values")
    values = as_list(completed)
    is_right = len(values) <= _MAX_VALUES and all(isinstance(value, str) for value in values)
    message = f"completing {uri!r:.200} did not return a list of at most {_MAX_VALUES} strings"
    run.ledger.expect("T1", isinstance(completed, list) and is_right, message, exchange)


def _skill_template(item: Any, schemes: set[str]) -> tuple[str, str] | None:
    """The URI template and its first variable, if ``item`` is a template for one of ``schemes``."""
    uri = as_object(item).get("uriTemplate")
    if not isinstance(uri, str) or uri.partition("://")[0] not in schemes or "{" not in uri:
        return None
    variable = uri.partition("{")[2].partition("}")[0].lstrip("+#./;?&").partition(",")[0].rstrip("*")
    return (uri, variable) if variable else None


class _Tree(NamedTuple):
    """The files and directories in the entries: sizes of files, and children of directories."""

    sizes: dict[SkillUri, int | None]
    children: dict[SkillUri, set[SkillUri]]


async def check_directories(run: ServerRun) -> None:
    """D1: read every directory that an entry implies, then check that other URIs are refused."""
    tree = _Tree({}, {})
    for skill in run.entries:
        for file in skill.entry.files:
            place = parse_uri(file.uri)
            tree.sizes[place] = file.size
            while len(place.segments) > len(skill.root.segments):
                tree.children.setdefault(place.parent, set()).add(place)
                place = place.parent
    for place in list(tree.children)[: run.bounds.directories]:
        await _check_directory(run, place, tree)
    if len(tree.children) > run.bounds.directories:
        run.ledger.warned("D1", f"only {run.bounds.directories} of {len(tree.children):,} directories were read")
    await run.expect_refusal("D1", "an unknown URI", DIRECTORY_READ, uri=NOWHERE.removesuffix("/SKILL.md"))
    if tree.children:
        first = str(next(iter(tree.children)))
        await run.expect_refusal("D1", "an unknown cursor", DIRECTORY_READ, uri=first, cursor=NO_CURSOR)
    if tree.sizes:
        await run.expect_refusal("D1", "the URI of a file", DIRECTORY_READ, uri=str(next(iter(tree.sizes))))


async def _check_directory(run: ServerRun, place: SkillUri, tree: _Tree) -> None:
    uri, ledger = str(place), run.ledger
    paged = await run.walk("D1", DIRECTORY_READ, "resources", uri=uri)
    seen: dict[SkillUri, bool] = {}  # each child, and whether it is a directory
    for value, exchange in paged.items:
        item = as_object(value)
        child, problem = _child(item, place, tree)
        if ledger.expect("D1", not problem, problem, exchange, item) and child in tree.sizes:
            _check_annotations(ledger, item, tree.sizes[child], exchange)
        if child is not None:
            if child in seen:
                ledger.failed("D1", f"{uri!r:.300} lists {str(child)!r:.300} twice", exchange)
            seen[child] = item.get("mimeType") == DIRECTORY
    if not paged.is_whole:
        return
    if not paged.items:
        ledger.failed("D1", f"{uri!r:.300} is empty, but the entries have files in it")
        return
    exchange = paged.items[-1][1]
    missing = ", ".join(sorted(str(child) for child in tree.children[place] - seen.keys()))
    ledger.expect("D1", not missing, f"{uri!r:.300} does not list {missing:.300}", exchange)
    more = [
        str(child)
        for child in sorted(seen.keys() - tree.children[place], key=str)
        if child not in tree.children and not (seen[child] and await _is_empty(run, child))
    ]
    if more:
        ledger.warned("D1", f"{uri!r:.300} lists files that are in no entry: {', '.join(more):.300}", exchange)


async def _is_empty(run: ServerRun, place: SkillUri) -> bool:
    """Whether ``place`` is a directory without files. Entries list only files, so it is in none."""
    if len(place.segments) > _MAX_DEPTH:
        return False
    result = (await run.ask(DIRECTORY_READ, uri=str(place))).result or {}
    if not isinstance(result.get("resources"), list) or "nextCursor" in result:
        return False
    for item in map(as_object, as_list(result["resources"])):
        child, _ = _child(item, place, _Tree({}, {}))
        if child is None or item.get("mimeType") != DIRECTORY or not await _is_empty(run, child):
            return False
    return True


def _child(item: dict[str, Any], place: SkillUri, tree: _Tree) -> tuple[SkillUri | None, str]:
    """The URI of a child, or ``None`` if it is not a child of ``place``; and the problem with it, if any."""
    child = as_uri(item.get("uri"))
    if child is None:
        return None, f"a child of {str(place)!r:.300} has no valid URI"
    if child.parent != place:
        return None, f"{str(child)!r:.300} is not a direct child of {str(place)!r:.300}"
    if not isinstance(item.get("name"), str):
        return child, f"{str(child)!r:.300} has no 'name'"
    is_directory = item.get("mimeType") == DIRECTORY
    if child in tree.children and not is_directory:
        return child, f"{str(child)!r:.300} is a directory, but does not have the type {DIRECTORY}"
    if child in tree.sizes and is_directory:
        return child, f"{str(child)!r:.300} is a file, but has the type {DIRECTORY}"
    return child, ""
