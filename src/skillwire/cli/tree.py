"""``skillwire tree``: draws a folder of skills with its files and sizes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.printer import Printer, counted, ignored_text, size_of, visible

if TYPE_CHECKING:
    from rich.tree import Tree

    from skillwire.catalog.snapshot import SkillRecord

_EXAMPLES = """\
examples:
  skillwire tree ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "tree",
        run,
        "draw a folder of skills with sizes",
        "Draw the skills in a folder with their files and sizes, and show which would not be served.",
        _EXAMPLES,
    )
    parser.add_argument("path", metavar="PATH", help="a folder of skills, the folder of one, or an archive")


def run(arguments: Arguments, printer: Printer) -> int:
    """Draw the tree with its totals, then list the skills that would not be served."""
    from skillwire.catalog.archive import local_catalog  # late: not needed for --help

    catalog = local_catalog(arguments.path)
    with printer.progress("Reading", "skills") as count:
        catalog.load(count)
    snapshot = catalog.snapshot()
    skills = dict(snapshot.records())
    printer.data(_draw(catalog.root.name, skills))
    files = {resource.uri: resource.size or 0 for record in skills.values() for resource in record.entry.files}
    total = size_of(sum(files.values()))
    printer.data(f"{counted(len(skills), 'skill')}, {counted(len(files), 'file')}, {total}")
    if snapshot.ignored():
        printer.talk(ignored_text(snapshot.ignored()))
    refused = [problem for problem in snapshot.problems() if problem.refuses]
    for problem in refused:
        printer.talk(f"not served: {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")
    if refused:
        printer.talk(f"to see how to fix it: {shlex.join(['skillwire', 'check', arguments.path])}")
    return Exit.OK


def _draw(title: str, skills: dict[str, SkillRecord]) -> Tree:
    """Draw only folders that contain a skill: a branch is made when its first file is added."""
    from rich.text import Text
    from rich.tree import Tree

    root = Tree(Text(visible(title), style="bold"))
    branches, drawn = {"": root}, set[str]()

    def branch(path: str) -> Tree:
        if path not in branches:
            above, _, name = path.rpartition("/")
            record = skills.get(path)
            if record is None:
                label = Text(f"{visible(name)}/", style="blue")
            else:
                facts = f"  {counted(len(record.files), 'file')}, {size_of(record.entry.size)}"
                label = Text.assemble((visible(name), "bold green"), (facts, "dim"))
            branches[path] = branch(above).add(label)
        return branches[path]

    for path, record in skills.items():
        for folder in sorted(record.folders):
            branch(f"{path}/{folder}")
        for file, known in sorted(record.files.items()):
            whole = f"{path}/{file}"
            if whole not in drawn:  # the files of a nested skill are also files of the enclosing one
                drawn.add(whole)
                folder, _, name = whole.rpartition("/")
                branch(folder).add(Text.assemble(visible(name), (f"  {size_of(known.size)}", "dim")))
    return root
