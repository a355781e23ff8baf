"""``skillwire diff``: shows the differences between two catalogs, or between two versions of one."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, TargetPlace, argument, verb
from skillwire.cli.printer import Printer, visible
from skillwire.cli.targets import TARGET_OPTIONS, run_on_targets

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.text import Text

    from skillwire.catalog.contract import Catalog
    from skillwire.catalog.diff import SkillDifference

_MARKS = {"new": ("+", "green"), "gone": ("-", "red"), "changed": ("~", "yellow")}


@verb(
    "Compare two places by the paths of skills: show new, removed and changed skills, and a diff of them.",
    argument("old", "OLD", "a TARGET as for 'list', or a listing saved with list --json", type=TargetPlace()),
    argument("new", "NEW", "like OLD", type=TargetPlace()),
    *TARGET_OPTIONS,
    targets=2,
    within=partial(run_on_targets, names=("old", "new")),
    examples="""\
  skillwire diff ./skills https://skills.example.com/mcp
  skillwire diff ./skills -- npx some-mcp-server
  skillwire list my-server --json > before.json; …; skillwire diff before.json my-server

exit codes: 0 no differences, 1 differences, 2 usage, or no response
""",
)
async def command(
    old: Catalog,
    new: Catalog,
    arguments: Arguments,  # noqa: ARG001 - the form of a verb
    printer: Printer,
) -> int:
    """Compare two catalogs."""
    from skillwire.catalog.diff import differences

    found: list[SkillDifference] = []
    with printer.progress("Comparing", "skills") as count:
        async for difference in differences(old, new):
            found.append(difference)
            count(len(found))
    printer.json({"skills": [difference.to_json() for difference in found]})
    for difference in found:
        print_difference(difference, printer.data)
    kinds = Counter(difference.kind for difference in found)
    printer.talk(", ".join(f"{kinds[kind]} {kind}" for kind in _MARKS if kinds[kind]) or "no differences")
    return Exit.PROBLEMS if found else Exit.OK


def print_difference(difference: SkillDifference, show: Callable[[Text], None]) -> None:
    """Print one skill: its new, removed and changed files, and a diff of their lines."""
    from rich.text import Text

    mark, colour = _MARKS[difference.kind]
    show(Text(f"{mark} {visible(difference.path)}", style=f"bold {colour}"))
    for file in difference.files:
        mark, colour = _MARKS[file.kind]
        note = f"  ({file.note})" if file.note else ""
        show(Text(f"  {mark} {visible(file.path)}{note}", style=colour))
        for line in file.lines:
            style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
            show(Text(f"      {visible(line)}", style=style))
