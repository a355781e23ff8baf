"""A catalog as a tree on the terminal: folders, skills, files, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from rich.tree import Tree

from skillwire.cli.printer import Printer, counted, said_ignored, size_of, visible

if TYPE_CHECKING:
    from skillwire.catalog.records import SkillRecord
    from skillwire.catalog.snapshot import Snapshot


def print_tree(title: str, snapshot: Snapshot, printer: Printer) -> None:
    """The tree and its totals; then, for the person, what would not be served."""
    skills = dict(snapshot.records())
    printer.data(_Drawing(title, skills).root)
    files = {resource.uri: resource.size or 0 for record in skills.values() for resource in record.entry.files}
    total = size_of(sum(files.values()))
    printer.data(f"{counted(len(skills), 'skill')}, {counted(len(files), 'file')}, {total}")
    if snapshot.ignored():
        printer.talk(said_ignored(snapshot.ignored()))
    for problem in snapshot.problems():
        if problem.refuses:
            printer.talk(f"not served: {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")


class _Drawing:
    """Branches are made when something is hung on them, so that only what holds a skill is drawn."""

    def __init__(self, title: str, skills: dict[str, SkillRecord]) -> None:
        self.root = Tree(Text(visible(title), style="bold"))
        self._skills = skills
        self._branches = {"": self.root}
        self._drawn: set[str] = set()
        for path, record in skills.items():
            for folder in sorted(record.folders):
                self._branch(f"{path}/{folder}")
            for file, known in sorted(record.files.items()):
                self._leaf(f"{path}/{file}", known.size)

    def _leaf(self, path: str, size: int) -> None:
        if path not in self._drawn:  # a nested skill's files are in its own list and in the enclosing one's
            self._drawn.add(path)
            folder, _, name = path.rpartition("/")
            self._branch(folder).add(Text.assemble(visible(name), (f"  {size_of(size)}", "dim")))

    def _branch(self, path: str) -> Tree:
        if path not in self._branches:
            above, _, name = path.rpartition("/")
            self._branches[path] = self._branch(above).add(self._label(path, name))
        return self._branches[path]

    def _label(self, path: str, name: str) -> Text:
        record = self._skills.get(path)
        if record is None:
            return Text(f"{visible(name)}/", style="blue")
        facts = f"  {counted(len(record.files), 'file')}, {size_of(record.entry.size)}"
        return Text.assemble((visible(name), "bold green"), (facts, "dim"))
