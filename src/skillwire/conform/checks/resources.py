"""Checks of skills among the resources: lists, annotations, templates and directories (R1, R3, T1, D1)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.context import METHOD_NOT_FOUND, NO_CURSOR, NOWHERE, expect_refusal, walk
from skillwire.errors import FormatError
from skillwire.skill.uri import SkillUri, format_uri, parse_uri
from skillwire.wire.extension import DIRECTORY, DIRECTORY_READ

if TYPE_CHECKING:
    from skillwire.conform.checks.context import ListedSkill, ServerRun
    from skillwire.conform.report import Exchange, Ledger

_MAX_VALUES = 100
_DEPTH = 32  # of nested empty directories


async def check_resources(run: ServerRun) -> None:
    """Check the skills in ``resources/list``."""
    paged = await walk(run, "BASE", "BASE", "resources/list", "resources")
    known = {parse_uri(skill.entry.uri): skill for skill in run.entries}
    for item, exchange in paged.items:
        fields = as_object(item)
        skill = known.get(_place(fields.get("uri")))  # pyright: ignore[reportArgumentType] - None is never a key
        if skill is not None:
            _check_listed(run, fields, skill, exchange)


def _check_listed(run: ServerRun, item: dict[str, Any], skill: ListedSkill, exchange: Exchange) -> None:
    """R1: compare with the ``SKILL.md``, because the entry may be wrong."""
    ledger, written = run.ledger, run.written.get(skill.entry.uri, skill.entry.frontmatter)
    right = {"name": written.get("name"), "description": written.get("description"), "mimeType": "text/markdown"}
    wrong = [name for name, value in right.items() if item.get(name) != value]
    ledger.expect(
        "R1",
        not wrong,
        f"resources/list has {skill.entry.uri!r:.300} with a different {', '.join(wrong)}",
        exchange,
        item,
    )
    size = next((file.size for file in skill.entry.files if file.uri == skill.entry.uri), None)
    check_annotations(ledger, item, size, exchange)


def check_annotations(ledger: Ledger, item: dict[str, Any], size: int | None, exchange: Exchange) -> None:
    """R3: present annotations are valid; missing ones are a warning."""
    uri, annotations = item.get("uri"), as_object(item.get("annotations"))
    wrong = [name for name, value in annotations.items() if not _is_right(name, value)]
    if size is not None and "size" in item and item["size"] != size:
        wrong.append("size")
    if wrong:
        ledger.failed("R3", f"{uri!r:.300} has a wrong {', '.join(wrong)}", exchange, item)
        return
    missing = [name for name in ("audience", "priority") if name not in annotations]
    missing += ["size"] if "size" not in item else []
    if missing:
        ledger.warned("R3", f"{uri!r:.300} does not have its {', '.join(missing)}", exchange, item)
    else:
        ledger.passed("R3", exchange)


async def check_templates(run: ServerRun) -> None:
    """T1: a template for the URIs of skills can be completed."""
    if (await run.ask("resources/templates/list")).code == METHOD_NOT_FOUND:
        run.ledger.not_offered(("T1",), "resources/templates/list is unknown")
        return
    paged = await walk(run, "BASE", "BASE", "resources/templates/list", "resourceTemplates")
    schemes = {skill.root.scheme for skill in run.entries}
    template = next((found for item, _ in paged.items if (found := _fitting(as_object(item), schemes))), None)
    if template is None or "completions" not in run.capabilities:
        run.ledger.not_offered(("T1",), "no template matches the URIs of skills, or completion is not declared")
        return
    uri, variable = template
    exchange = await run.ask(
        "completion/complete",
        ref={"type": "ref/resource", "uri": uri},
        argument={"name": variable, "value": ""},
    )
    completion: object = as_object((exchange.result or {}).get("completion")).get("values")
    values = as_list(completion)
    run.ledger.expect(
        "T1",
        isinstance(completion, list)
        and len(values) <= _MAX_VALUES
        and all(isinstance(value, str) for value in values),
        f"completing {uri!r:.200} did not return a list of at most {_MAX_VALUES} strings",
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
    """Whether an annotation is valid. Unknown annotations are valid."""
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


class _Tree(NamedTuple):
    """The files and directories in the entries: sizes of files, and children of directories."""

    sizes: dict[SkillUri, int | None]
    children: dict[SkillUri, set[SkillUri]]


async def check_directories(run: ServerRun) -> None:
    """D1: read every directory that an entry implies, then check that other URIs are refused."""
    tree = _tree(run)
    for place in list(tree.children)[: run.bounds.directories]:
        await _check_directory(run, place, tree)
    if len(tree.children) > run.bounds.directories:
        run.ledger.warned("D1", f"only {run.bounds.directories} of {len(tree.children):,} directories were read")
    await expect_refusal(run, "D1", "an unknown URI", DIRECTORY_READ, uri=NOWHERE.removesuffix("/SKILL.md"))
    if tree.children:
        first = str(next(iter(tree.children)))
        await expect_refusal(run, "D1", "an unknown cursor", DIRECTORY_READ, uri=first, cursor=NO_CURSOR)
    if tree.sizes:
        await expect_refusal(run, "D1", "the URI of a file", DIRECTORY_READ, uri=str(next(iter(tree.sizes))))


def _tree(run: ServerRun) -> _Tree:
    sizes: dict[SkillUri, int | None] = {}
    children: dict[SkillUri, set[SkillUri]] = {}
    for skill in run.entries:
        for file in skill.entry.files:
            place = parse_uri(file.uri)
            sizes[place] = file.size
            while len(place.segments) > len(skill.root.segments):
                children.setdefault(place.parent, set()).add(place)
                place = place.parent
    return _Tree(sizes, children)


async def _check_directory(run: ServerRun, place: SkillUri, tree: _Tree) -> None:
    uri = format_uri(place.path, place.scheme)
    paged = await walk(run, "D1", "D1", DIRECTORY_READ, "resources", uri=uri)
    seen: set[SkillUri] = set()
    folders: set[SkillUri] = set()
    for item, exchange in paged.items:
        child = _check_child(run.ledger, as_object(item), place, tree, exchange)
        if child is not None:
            if child in seen:
                run.ledger.failed("D1", f"{uri!r:.300} lists {str(child)!r:.300} twice", exchange)
            seen.add(child)
            if as_object(item).get("mimeType") == DIRECTORY:
                folders.add(child)
    if not paged.items or not paged.is_whole:
        if paged.is_whole:
            run.ledger.failed("D1", f"{uri!r:.300} is empty, but the entries have files in it")
        return
    exchange = paged.items[-1][1]
    missing = sorted(str(child) for child in tree.children[place] - seen)
    run.ledger.expect("D1", not missing, f"{uri!r:.300} does not list {', '.join(missing):.300}", exchange)
    more = [
        str(child)
        for child in sorted(seen - tree.children[place], key=str)
        if child not in tree.children and not (child in folders and await _is_empty(run, child))
    ]
    if more:
        run.ledger.warned("D1", f"{uri!r:.300} lists files that are in no entry: {', '.join(more):.300}", exchange)


async def _is_empty(run: ServerRun, place: SkillUri) -> bool:
    """Whether ``place`` is a directory without files. Entries list only files, so it is in none."""
    if len(place.segments) > _DEPTH:
        return False
    exchange = await run.ask(DIRECTORY_READ, uri=format_uri(place.path, place.scheme))
    result = exchange.result or {}
    if not isinstance(result.get("resources"), list) or "nextCursor" in result:
        return False
    for item in as_list(result["resources"]):
        _, child = _child(as_object(item), place, _Tree({}, {}))
        is_folder = as_object(item).get("mimeType") == DIRECTORY
        if child is None or not is_folder or not await _is_empty(run, child):
            return False
    return True


def _check_child(
    ledger: Ledger, item: dict[str, Any], place: SkillUri, tree: _Tree, exchange: Exchange
) -> SkillUri | None:
    """Check a child and return its URI; ``None`` if it is not a child of ``place``."""
    problem, child = _child(item, place, tree)
    if not ledger.expect("D1", not problem, problem, exchange, item):
        return child
    if child in tree.sizes:
        check_annotations(ledger, item, tree.sizes[child], exchange)
    return child


def _child(item: dict[str, Any], place: SkillUri, tree: _Tree) -> tuple[str, SkillUri | None]:
    uri = item.get("uri")
    try:
        child = parse_uri(uri) if isinstance(uri, str) else None
    except FormatError:
        child = None
    if child is None:
        return f"a child of {str(place)!r:.300} has no valid URI", None
    if child.parent != place:
        return f"{uri!r:.300} is not a direct child of {str(place)!r:.300}", None
    if not isinstance(item.get("name"), str):
        return f"{uri!r:.300} has no 'name'", child
    is_directory = item.get("mimeType") == DIRECTORY
    if child in tree.children and not is_directory:
        return f"{uri!r:.300} is a directory, but does not have the type {DIRECTORY}", child
    if child in tree.sizes and is_directory:
        return f"{uri!r:.300} is a file, but has the type {DIRECTORY}", child
    return "", child
