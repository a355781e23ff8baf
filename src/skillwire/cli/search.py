"""``skillwire search``: which skills of a folder or a server fit a request."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb
from skillwire.cli.targets import TARGET_HELP, add_target_options, run_on_targets
from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.search.index import Hit

TARGETS = 1
_DEFAULT_LIMIT = 10
_EXAMPLES = """\
examples:
  skillwire search ./skills my customer wants their money back
  skillwire search ./skills 'pdf form' --limit 3 --json
  skillwire search https://skills.example.com/mcp refund        names and descriptions
  skillwire search my-server refund --bodies                    every SKILL.md too, verified
  skillwire search refund -- npx some-mcp-server ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "search",
        "find the skills that fit a request",
        "Find skills by what they are called, are for, and say. Write as you would ask a person.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("query", metavar="QUERY", nargs="+", help="words, or a whole sentence")
    parser.add_argument(
        "--limit", type=int, default=_DEFAULT_LIMIT, metavar="N", help="how many at most (default: %(default)s)"
    )
    parser.add_argument(
        "--bodies",
        action="store_true",
        help="read every SKILL.md of a server, and search it; a folder's always is",
    )
    add_target_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Search."""
    arguments.query = " ".join(" ".join(arguments.query).split())
    if not arguments.query:
        raise FormatError("query-missing", "there is nothing to search for", "write some words after TARGET")
    if arguments.limit < 1:
        raise FormatError("limit-invalid", f"--limit {arguments.limit} is no number of skills", "write 1 or more")
    return run_on_targets(arguments, printer, _search)


async def _search(catalog: Catalog, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.catalog.directory import DirectoryCatalog
    from skillwire.search.index import SearchIndex

    bodies = arguments.bodies or isinstance(catalog, DirectoryCatalog)
    index = SearchIndex(catalog, bodies=bodies)
    try:
        hits = await index.search(arguments.query, arguments.limit)
    finally:
        index.close()
    if arguments.json:
        printer.json(_document(arguments.query, hits, bodies=bodies))
    else:
        _print(hits, printer)
    _talk(hits, printer, bodies=bodies)
    return Exit.OK


def _document(query: str, hits: list[Hit], *, bodies: bool) -> dict[str, Any]:
    return {"query": query, "bodies": bodies, "hits": [asdict(hit) for hit in hits]}


def _print(hits: list[Hit], printer: Printer) -> None:
    from skillwire.skill.uri import parse_uri, skill_root

    rows = [
        (_line(skill_root(parse_uri(hit.uri)).path), _line(hit.description), _line(hit.snippet)) for hit in hits
    ]
    printer.table(("skill", "what for", "found"), rows)


def _talk(hits: list[Hit], printer: Printer, *, bodies: bool) -> None:
    from skillwire.cli.printer import counted

    if hits:
        printer.talk(counted(len(hits), "skill"))
    else:
        printer.talk("nothing was found; try other words, or look at all of them: skillwire list TARGET")
    if not bodies:
        printer.talk(
            "names and descriptions were searched; --bodies reads every SKILL.md, verified, and searches it"
        )


def _line(text: str) -> str:
    from skillwire.cli.printer import visible

    return visible(" ".join(text.split()))
