"""``skillwire tree``: what a folder of skills holds, drawn, with sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

_EXAMPLES = """\
examples:
  skillwire tree ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "tree",
        "draw a folder of skills with sizes",
        "Draw the skills in a folder, their files and sizes, and what would not be served.",
        _EXAMPLES,
    )
    parser.add_argument("path", metavar="PATH", help="a folder of skills, the folder of one, or an archive")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Draw the tree."""
    from skillwire.catalog.archive import local_catalog  # late: only once the words are understood
    from skillwire.cli import drawing

    catalog = local_catalog(arguments.path)
    with printer.progress("Reading", "skills") as count:
        catalog.load(count)
    drawing.print_tree(catalog.root.name, catalog.snapshot(), printer)
    if any(problem.refuses for problem in catalog.snapshot().problems()):
        printer.talk(f"run 'skillwire check {arguments.path}' to see how to mend it")
    return Exit.OK
