"""``skillwire ls``: lists a directory of a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.printer import Printer, size_of, visible
from skillwire.cli.targets import (
    TARGET_HELP,
    add_target_options,
    as_uri,
    print_problems,
    problems_json,
    run_on_targets,
)

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog, DirectoryChild

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire ls ./skills                          the roots of all skills
  skillwire ls ./skills acme/billing/refunds
  skillwire ls https://skills.example.com/mcp skill://acme/billing/refunds/templates
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "ls",
        run,
        "list a directory of a skill",
        "List the contents of a directory of a skill; without a URI, the roots of all skills.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument(
        "uri", metavar="URI", nargs="?", help="the root of a skill or a folder in it, as a URI or a path"
    )
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """List a directory."""
    return run_on_targets(arguments, printer, list_directory)


async def list_directory(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    """Print the contents of a directory, and what is missing."""
    uri = None if arguments.uri is None else as_uri(arguments.uri.removesuffix("/"))
    children = await _roots(catalog) if uri is None else [child async for child in catalog.children(uri)]
    problems = [each for each in await catalog.problems() if each.refuses and uri in (None, each.file)]
    if arguments.json:
        printer.json({"children": [child._asdict() for child in children], "problems": problems_json(problems)})
        return Exit.PROBLEMS if problems else Exit.OK
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


async def _roots(catalog: Catalog) -> list[DirectoryChild]:
    from skillwire.catalog.contract import DirectoryChild

    return [
        DirectoryChild(entry.uri.rpartition("/")[0], entry.path, is_directory=True)
        async for entry in catalog.entries()
    ]
