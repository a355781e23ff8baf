"""``skillwire search``: finds the skills of a folder or a server that match a request."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from skillwire.cli.command import COMMAND, Arguments, Exit, argument, flag, option, verb
from skillwire.cli.printer import Printer, counted, line
from skillwire.cli.targets import TARGET, TARGET_OPTIONS, run_on_targets, target_text
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog

_DEFAULT_LIMIT = 10


@verb(
    "Find skills by name, description and text. Write words or a question.",
    TARGET,
    argument("query", "QUERY…", "words or a sentence", nargs=-1, required=True),
    option(
        "--limit",
        type=click.IntRange(min=1),
        default=_DEFAULT_LIMIT,
        metavar="N",
        help=f"the maximum number of results (default: {_DEFAULT_LIMIT})",
    ),
    flag(
        "--bodies",
        help="also read and search every SKILL.md of a server; those on this machine are always searched",
    ),
    *TARGET_OPTIONS,
    targets=1,
    within=run_on_targets,
    examples="""\
  skillwire search ./skills my customer wants their money back
  skillwire search ./skills 'pdf form' --limit 3 --json
  skillwire search https://skills.example.com/mcp refund        names and descriptions
  skillwire search my-server refund --bodies                    also every SKILL.md, verified
  skillwire search refund -- npx some-mcp-server ./skills
""",
)
async def command(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    """Search skills."""
    from skillwire.search.index import SearchIndex
    from skillwire.skill.uri import root_of

    query = " ".join(" ".join(arguments.query).split())
    if not query:
        raise FormatError("query-missing", "the query is empty", "write some words after TARGET")
    bodies = arguments.bodies or _is_here(arguments.target)
    index = SearchIndex(catalog, bodies=bodies)
    try:
        hits = await index.search(query, arguments.limit)
    finally:
        index.close()
    printer.json({"query": query, "bodies": bodies, "hits": [asdict(hit) for hit in hits]})
    rows = [(line(root_of(hit.uri).path), line(hit.description), line(hit.snippet)) for hit in hits]
    printer.table(("skill", "description", "found"), rows)
    if hits:
        printer.talk(counted(len(hits), "skill"))
    else:
        where = target_text(arguments)
        printer.talk(f"nothing found; try other words, or list all skills: skillwire list {where}")
    if not bodies:
        printer.talk("only names and descriptions were searched; --bodies also reads and searches every SKILL.md")
    return Exit.OK


def _is_here(target: str) -> bool:
    """Return whether the files of a target are on this machine: a folder, an archive, a fetched repository."""
    from skillwire.client.servers import target_kind

    return target != COMMAND and target_kind(target) in ("path", "git")
