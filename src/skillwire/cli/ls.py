"""``skillwire ls``: what is directly inside a directory of a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb
from skillwire.cli.targets import TARGET_HELP, add_target_options, run_on_targets

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog, DirectoryChild
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire ls ./skills                          every skill's root
  skillwire ls ./skills acme/billing/refunds
  skillwire ls https://skills.example.com/mcp skill://acme/billing/refunds/templates
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "ls",
        "list a directory of a skill",
        "List what is directly inside a directory of a skill; without a URI, the roots of all skills.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument(
        "uri", metavar="URI", nargs="?", help="a skill's root or a folder in it, as a URI or a path"
    )
    add_target_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """List."""
    return run_on_targets(arguments, printer, list_directory)


async def list_directory(catalog: Catalog, arguments: argparse.Namespace, printer: Printer) -> int:
    """Print what is inside, and what is missing from it."""
    from skillwire.cli.list import print_problems, problems_json
    from skillwire.cli.printer import size_of, visible
    from skillwire.cli.resolve import as_uri

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
