"""``resources/directory/read``: every directory of the skills, compared with their entries (D1, R3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.asking import NO_CURSOR, NOWHERE, expect_refusal, walk
from skillwire.conform.checks.resources import check_annotations
from skillwire.errors import FormatError
from skillwire.skill.uri import SkillUri, format_uri, parse_uri
from skillwire.wire.extension import DIRECTORY_READ
from skillwire.wire.media import DIRECTORY

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Run
    from skillwire.conform.evidence import Exchange
    from skillwire.conform.outcome import Ledger


_DEPTH = 32  # of empty directories in each other


class _Tree(NamedTuple):
    """What the entries say: sizes of files, and the children of every directory of a skill."""

    sizes: dict[SkillUri, int | None]
    children: dict[SkillUri, set[SkillUri]]


async def check_browsing(run: Run) -> None:
    """Read every directory that an entry implies, then what is none."""
    tree = _tree(run)
    for place in list(tree.children)[: run.bounds.directories]:
        await _check_directory(run, place, tree)
    if len(tree.children) > run.bounds.directories:
        run.ledger.doubtful("D1", f"only {run.bounds.directories} of {len(tree.children):,} directories were read")
    await expect_refusal(run, "D1", "an unknown URI", DIRECTORY_READ, uri=NOWHERE.removesuffix("/SKILL.md"))
    if tree.children:
        first = str(next(iter(tree.children)))
        await expect_refusal(run, "D1", "text that is no cursor", DIRECTORY_READ, uri=first, cursor=NO_CURSOR)
    if tree.sizes:
        await expect_refusal(run, "D1", "the URI of a file", DIRECTORY_READ, uri=str(next(iter(tree.sizes))))


def _tree(run: Run) -> _Tree:
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


async def _check_directory(run: Run, place: SkillUri, tree: _Tree) -> None:
    uri = format_uri(place.path, place.scheme)
    paged = await walk(run, "D1", "D1", DIRECTORY_READ, "resources", uri=uri)
    seen: set[SkillUri] = set()
    folders: set[SkillUri] = set()
    for item, exchange in paged.items:
        child = _check_child(run.ledger, as_object(item), place, tree, exchange)
        if child is not None:
            if child in seen:
                run.ledger.broken("D1", f"{uri!r:.300} shows {str(child)!r:.300} twice", exchange)
            seen.add(child)
            if as_object(item).get("mimeType") == DIRECTORY:
                folders.add(child)
    if not paged.items or not paged.is_whole:
        if paged.is_whole:
            run.ledger.broken("D1", f"{uri!r:.300} shows nothing; the entries have files in it")
        return
    exchange = paged.items[-1][1]
    missing = sorted(str(child) for child in tree.children[place] - seen)
    run.ledger.expect("D1", not missing, f"{uri!r:.300} does not show {', '.join(missing):.300}", exchange)
    more = [
        str(child)
        for child in sorted(seen - tree.children[place], key=str)
        if child not in tree.children and not (child in folders and await _is_empty(run, child))
    ]
    if more:
        run.ledger.doubtful("D1", f"{uri!r:.300} shows what no entry lists: {', '.join(more):.300}", exchange)


async def _is_empty(run: Run, place: SkillUri) -> bool:
    """Whether ``place`` is a directory without files: entries list files only, so none can mention it."""
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
    """The URI of a child that is one."""
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
        return f"a child of {str(place)!r:.300} has no URI that can be read", None
    if child.parent != place:
        return f"{uri!r:.300} is no direct child of {str(place)!r:.300}", None
    if not isinstance(item.get("name"), str):
        return f"{uri!r:.300} has no 'name'", child
    is_directory = item.get("mimeType") == DIRECTORY
    if child in tree.children and not is_directory:
        return f"{uri!r:.300} is a directory and not of the type {DIRECTORY}", child
    if child in tree.sizes and is_directory:
        return f"{uri!r:.300} is a file and of the type {DIRECTORY}", child
    return "", child
