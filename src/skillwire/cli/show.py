"""``skillwire show``: shows all claims about one skill and what is in its files, or lists a folder in it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, verb
from skillwire.cli.printer import Printer, counted, listed, size_of, visible
from skillwire.cli.prompts import withdrawn
from skillwire.cli.targets import (
    SKILL,
    TARGET,
    TARGET_OPTIONS,
    as_uri,
    print_problems,
    problems_json,
    resolve_skill,
    run_on_targets,
    target_text,
    uri_by_name,
)
from skillwire.errors import FormatError, NotFoundError, ProtocolError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Risk


@verb(
    "Show one skill: fields, files, digests, and what its files contain (scripts, tools, outside domains, hidden"
    " text, tokens). For a folder in a skill, list its contents.",
    TARGET,
    SKILL,
    *TARGET_OPTIONS,
    targets=1,
    within=run_on_targets,
    examples="""\
  skillwire show ./skills refunds
  skillwire show ./skills refunds/templates                               a folder in a skill
  skillwire show https://skills.example.com/mcp skill://acme/billing/refunds/SKILL.md
  skillwire show refunds -- npx some-mcp-server ./skills
""",
)
async def command(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    """Show a skill, or a folder in one."""
    from skillwire.catalog.examination import review_skill
    from skillwire.catalog.listing import entry_to_document

    try:
        entry = await resolve_skill(catalog, arguments.skill, place=target_text(arguments))
    except (NotFoundError, ProtocolError):
        if "/" not in arguments.skill:
            raise
        for uri in (as_uri(arguments.skill.removesuffix("/")), await uri_by_name(catalog, arguments.skill)):
            with suppress(NotFoundError, FormatError, ProtocolError):
                if uri is not None:
                    return await list_directory(catalog, uri, printer)
        raise  # it is not a folder either: the first error is the better one
    risk = (await review_skill(catalog, entry)).risk
    printer.json({**entry_to_document(entry), "risk": risk.to_json()})
    _print(entry, risk, printer)
    return Exit.OK


async def list_directory(catalog: Catalog, uri: str, printer: Printer) -> int:
    """Print the contents of a folder of a skill, and the problems of listing it."""
    children = [child async for child in catalog.children(uri)]
    problems = [each for each in await catalog.problems() if each.refuses and each.file == uri]
    printer.json({"children": [child._asdict() for child in children], "problems": problems_json(problems)})
    rows = [
        (
            visible(child.name) + ("/" if child.is_directory else ""),
            "" if child.size is None else size_of(child.size),
        )
        for child in children
    ]
    printer.table(("name", "size"), rows)
    print_problems(problems, printer)
    return Exit.PROBLEMS if problems else Exit.OK


def _print(entry: SkillEntry, risk: Risk, printer: Printer) -> None:
    import json

    from skillwire.skill.version_status import version_status

    printer.data(f"uri: {visible(entry.uri)}")
    status = version_status(entry)
    if status.number:
        printer.data(f"version: {visible(status.number)}")
    for each in withdrawn(status):
        printer.data(each)
    for key, value in entry.frontmatter.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        printer.data(f"{visible(key)}: {visible(' '.join(text.split()))}")
    found = {"scripts": risk.scripts, "outside domains": risk.domains, "HIDDEN TEXT": tuple(map(str, risk.hidden))}
    for title, items in found.items():
        if items:
            printer.data(f"{title}: {len(items)}: {listed(items)}")
    if risk.unread:
        printer.data(f"not searched: {counted(risk.unread, 'file')}")
    tokens = risk.tokens
    everything = "" if tokens.everything is None else f", ~{tokens.everything} with all files"
    loaded = "" if tokens.loaded is None else f", ~{tokens.loaded} to load"
    printer.data(f"tokens: ~{tokens.listed} to list{loaded}{everything}")
    if entry.gaps:
        printer.data(f"not stated: {', '.join(sorted(entry.gaps))}")
    if entry.is_dynamic:
        printer.data("files: generated on every read; they cannot be verified")
        return
    more = "" if entry.is_complete else ", possibly more"
    printer.data(f"files: {counted(len(entry.files), 'file')}{more}, {size_of(entry.size)}")
    rows = [
        (
            visible(file.path or file.uri),
            "" if file.size is None else size_of(file.size),
            printer.digest(file.digest or ""),
        )
        for file in entry.files
    ]
    printer.table(("file", "size", "digest"), rows)
