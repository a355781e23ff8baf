"""``skillwire search``: finds the skills of a folder or a server that match a request."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.printer import Printer, counted, line
from skillwire.cli.targets import TARGET_HELP, add_target_options, run_on_targets
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog

TARGETS = 1
_DEFAULT_LIMIT = 10
_EXAMPLES = """\
examples:
  skillwire search ./skills my customer wants their money back
  skillwire search ./skills 'pdf form' --limit 3 --json
  skillwire search https://skills.example.com/mcp refund        names and descriptions
  skillwire search my-server refund --bodies                    also every SKILL.md, verified
  skillwire search refund -- npx some-mcp-server ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "search",
        run,
        "find skills that match a request",
        "Find skills by name, description and text. Write words or a question.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("query", metavar="QUERY", nargs="+", help="words or a sentence")
    parser.add_argument(
        "--limit",
        type=int,
        default=_DEFAULT_LIMIT,
        metavar="N",
        help="the maximum number of results (default: %(default)s)",
    )
    parser.add_argument(
        "--bodies",
        action="store_true",
        help="also read and search every SKILL.md of a server; those of a folder are always searched",
    )
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Search skills."""
    arguments.query = " ".join(" ".join(arguments.query).split())
    if not arguments.query:
        raise FormatError("query-missing", "the query is empty", "write some words after TARGET")
    if arguments.limit < 1:
        raise FormatError("limit-invalid", f"--limit {arguments.limit} is less than 1", "write: --limit 10")
    return run_on_targets(arguments, printer, _search)


async def _search(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    from skillwire.catalog.directory import DirectoryCatalog
    from skillwire.search.index import SearchIndex
    from skillwire.skill.uri import parse_uri, skill_root

    bodies = arguments.bodies or isinstance(catalog, DirectoryCatalog)
    index = SearchIndex(catalog, bodies=bodies)
    try:
        hits = await index.search(arguments.query, arguments.limit)
    finally:
        index.close()
    if arguments.json:
        printer.json({"query": arguments.query, "bodies": bodies, "hits": [asdict(hit) for hit in hits]})
    else:
        rows = [
            (line(skill_root(parse_uri(hit.uri)).path), line(hit.description), line(hit.snippet)) for hit in hits
        ]
        printer.table(("skill", "description", "found"), rows)
    if hits:
        printer.talk(counted(len(hits), "skill"))
    else:
        printer.talk("nothing found; try other words, or list all skills: skillwire list TARGET")
    if not bodies:
        printer.talk("only names and descriptions were searched; --bodies also reads and searches every SKILL.md")
    return Exit.OK
