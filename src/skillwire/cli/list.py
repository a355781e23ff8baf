"""``skillwire list``: the skills of a folder or a server, or those that are installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.installed import add_installed_options, is_about_installed, list_installed
from skillwire.cli.parsing import add_verb
from skillwire.cli.targets import TARGET_HELP, add_target_options, run_on_targets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.skill import Diagnostic, SkillEntry

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire list ./skills
  skillwire list https://skills.example.com/mcp --header 'Authorization: Bearer …'
  skillwire list my-server                       a label from .mcp.json, Claude Desktop, Cursor or VS Code
  skillwire list -- npx some-mcp-server ./skills
  skillwire list --installed --global
  skillwire list ./skills --json > before.json   to compare later: skillwire diff before.json ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "list",
        "list the skills of a folder or a server",
        "List the skills of a folder or a server: name, size, and what they are for.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", help=TARGET_HELP)
    add_installed_options(parser, "list what skills.lock.json says is installed, and ask nobody")
    add_target_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """List."""
    if is_about_installed(arguments):
        return list_installed(arguments, printer)
    return run_on_targets(arguments, printer, _list)


async def _list(catalog: Catalog, arguments: argparse.Namespace, printer: Printer) -> int:
    entries: list[SkillEntry] = []
    with printer.progress("Listing", "skills") as count:
        async for entry in catalog.entries():
            entries.append(entry)
            count(len(entries))
    problems = [problem for problem in await catalog.problems() if problem.refuses]
    if arguments.json:
        printer.json(_document(entries, problems))
    else:
        _print(entries, problems, printer)
    return Exit.PROBLEMS if problems else Exit.OK


def _document(entries: list[SkillEntry], problems: list[Diagnostic]) -> dict[str, Any]:
    from skillwire.catalog.listing import entry_to_document

    return {
        "skills": [entry_to_document(entry) for entry in entries],
        "problems": problems_json(problems),
    }


def problems_json(problems: Iterable[Diagnostic]) -> list[dict[str, str]]:
    """Problems of a listing, for programs."""
    return [
        {"uri": p.file, "rule": p.rule, "reference": p.reference, "message": p.message, "hint": p.hint}
        for p in problems
    ]


def print_problems(problems: Iterable[Diagnostic], printer: Printer) -> None:
    """What a listing does not have, and why."""
    from skillwire.cli.hosting import line

    for problem in problems:
        where, what = line(problem.file)[:300], line(problem.message)
        printer.talk(f"missing: {where}: {what} [{problem.reference}, {problem.rule}]")


def _print(entries: list[SkillEntry], problems: list[Diagnostic], printer: Printer) -> None:
    from skillwire.cli.printer import counted, size_of, visible

    rows = [
        (
            visible(entry.path),
            _files(entry),
            size_of(entry.size) if entry.size else "",
            _first_line(entry.description),
        )
        for entry in entries
    ]
    printer.table(("skill", "files", "size", "what for"), rows)
    print_problems(problems, printer)
    gaps = sorted({gap for entry in entries for gap in entry.gaps if not entry.is_dynamic})
    if gaps:
        printer.talk(f"not promised by the server: {', '.join(gaps)}")
    printer.talk(counted(len(entries), "skill"))


def _files(entry: SkillEntry) -> str:
    if entry.is_dynamic:
        return "dynamic"
    return str(len(entry.files)) if entry.is_complete else f"{len(entry.files)}+"


def _first_line(text: str) -> str:
    from skillwire.cli.printer import visible

    return visible(" ".join(text.split()))
