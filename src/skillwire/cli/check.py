"""``skillwire check``: every problem in skills on disk, with its place, its rule and a hint that mends it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.check import Checker, CheckReport
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

_EXAMPLES = """\
examples:
  skillwire check ./skills
  skillwire check ./skills/refunds/SKILL.md --strict
  skillwire check ./skills --format sarif > skills.sarif
  skillwire check ./skills --watch

exit codes: 0 clean, 1 problems (with --strict: warnings too), 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "check",
        "find every problem in skills on disk",
        "Check a SKILL.md, a skill or a tree of skills against the rules of the format.",
        _EXAMPLES,
    )
    parser.add_argument(
        "paths", metavar="PATH", nargs="+", help="a SKILL.md, a skill's folder, an archive or a tree"
    )
    parser.add_argument("--format", choices=("text", "json", "sarif"), default="text", help="default: text")
    parser.add_argument("--strict", action="store_true", help="warnings count as problems too")
    parser.add_argument("--watch", action="store_true", help="stay, and check again when files change")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Check once, or until interrupted."""
    from skillwire.catalog.check import Checker  # late: only once the words are understood

    checkers = [Checker(path) for path in arguments.paths]
    outcome = _check_all(checkers, arguments, printer)
    if arguments.watch:
        return _check_again(checkers, arguments, printer, outcome)
    return outcome


def _check_all(checkers: list[Checker], arguments: argparse.Namespace, printer: Printer) -> int:
    with printer.progress("Checking", "skills") as count:
        reports = [checker.run(count) for checker in checkers]
    _print(reports, arguments.format, printer)
    errors = sum(report.errors for report in reports)
    warnings = sum(report.warnings for report in reports)
    return Exit.PROBLEMS if errors or (arguments.strict and warnings) else Exit.OK


def _print(reports: list[CheckReport], form: str, printer: Printer) -> None:
    from skillwire.cli import report

    if form == "json":
        printer.json(report.as_json(reports))
    elif form == "sarif":
        printer.json(report.as_sarif(reports))
    else:
        report.print_text(reports, printer)


def _check_again(checkers: list[Checker], arguments: argparse.Namespace, printer: Printer, outcome: int) -> int:
    import anyio

    from skillwire.catalog.watch import watch_folder

    last = outcome

    async def follow(checker: Checker) -> None:
        nonlocal last
        async for paths in watch_folder(checker.root):
            if paths is None:
                printer.talk(f"watching {checker.root} (Ctrl-C ends)")
                continue
            last = _check_all(checkers, arguments, printer)

    async def follow_all() -> None:
        async with anyio.create_task_group() as group:
            for checker in checkers:
                group.start_soon(follow, checker)

    try:
        anyio.run(follow_all)
    except KeyboardInterrupt:
        return last
    except ExceptionGroup as group:
        raise group.exceptions[0] from None
    return last
