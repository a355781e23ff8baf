"""``skillwire check``: finds every problem in skills on disk, with its place, its rule and a hint to fix it.

The findings are printed as text, as JSON, or as SARIF 2.1.0 for code-scanning tools.
"""

from __future__ import annotations

import json
import os
import shlex
from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from skillwire.cli.command import JSON, Arguments, Exit, TargetPlace, again, argument, flag, verb
from skillwire.cli.printer import Printer, counted, ignored_text, visible
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.text import Text

    from skillwire.catalog.check import Checker, CheckReport
    from skillwire.skill.diagnostics import Diagnostic

_COLOURS = {"error": "bold red", "warning": "yellow", "note": "dim"}
_CONTEXT = 50
_NAMED = 3  # files in the command that repairs them


@verb(
    "Check a SKILL.md, a skill or a folder of skills against the rules of the format.",
    argument(
        "paths",
        "[PATH]…",
        "a SKILL.md, the folder of a skill, an archive, or a folder of skills (default: the current folder)",
        nargs=-1,
        type=TargetPlace(),
    ),
    flag("--fix", help="repair what is safe to repair: name, quoting, allowed-tools, types of metadata values"),
    flag("--strict", help="warnings count as problems too"),
    flag("--watch", help="check again whenever files change"),
    JSON,
    flag("--sarif", help="print SARIF 2.1.0 for code-scanning tools"),
    examples="""\
  skillwire check                                       the current folder
  skillwire check ./skills/refunds/SKILL.md --strict
  skillwire check ./skills --fix
  skillwire check ./skills --sarif > skills.sarif
  skillwire check ./skills --watch

What a problem means: skillwire explain REFERENCE

exit codes: 0 clean, 1 problems (with --strict: warnings too), 2 usage
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Check once, or until interrupted."""
    from skillwire.catalog.check import Checker  # late: not needed for --help

    if arguments.json and arguments.sarif:
        raise FormatError("argument-invalid", "--json and --sarif exclude each other", "omit one of them")
    checkers = [Checker(path, processes=os.cpu_count() or 1) for path in arguments.paths or ["."]]
    if arguments.fix:
        _fix(checkers, printer)
        checkers = [Checker(path, processes=os.cpu_count() or 1) for path in arguments.paths or ["."]]
    outcome = _check_all(checkers, arguments, printer)
    if arguments.watch:
        return _check_again(checkers, arguments, printer, outcome)
    return outcome


def _fix(checkers: Sequence[Checker], printer: Printer) -> None:
    """Repair every SKILL.md in which something is safe to repair, and print what was changed."""
    from skillwire.install.transaction import replace_file

    for checker in checkers:
        for place, repaired, changes in _repairs(checker.run()):
            replace_file(place, repaired, mode=place.stat().st_mode & 0o777)
            for change in changes:
                printer.talk(f"fixed {visible(str(place))}: {visible(change)}")


def _repairs(report: CheckReport) -> Iterator[tuple[Path, bytes, list[str]]]:
    """Yield each SKILL.md that can be repaired, its repaired bytes, and what changes."""
    from skillwire.skill.repair import REPAIRABLE, repair_skill_md
    from skillwire.skill.uri import SKILL_MD

    for place in sorted({report.place(each.file) for each in report.problems if each.reference in REPAIRABLE}):
        if place.name == SKILL_MD and not place.is_symlink() and place.is_file():  # not in an archive
            repaired, changes = repair_skill_md(place.read_bytes(), place.absolute().parent.name)
            if changes:
                yield place, repaired, changes


def _check_all(checkers: list[Checker], arguments: Arguments, printer: Printer) -> int:
    with printer.progress("Checking", "skills") as count:
        reports = [checker.run(count) for checker in checkers]
    if arguments.sarif:
        print(json.dumps(_as_sarif(reports), indent=2, ensure_ascii=False), flush=True)
    else:
        printer.json(_as_json(reports))
        _print_text(reports, printer)
        if places := [str(place) for report in reports for place, *_ in _repairs(report)]:
            # pre-commit gives every file of a project: name only those that change.
            words = shlex.join(["skillwire", "check", *places, "--fix"])
            command = words if len(places) <= _NAMED else again(arguments, "--fix")
            printer.talk(f"to repair {counted(len(places), 'file')}: {visible(command)}")
    errors = sum(report.errors for report in reports)
    warnings = sum(report.warnings for report in reports)
    return Exit.PROBLEMS if errors or (arguments.strict and warnings) else Exit.OK


def _check_again(checkers: list[Checker], arguments: Arguments, printer: Printer, outcome: int) -> int:
    import anyio

    from skillwire.catalog.watch import watch_folder

    last = outcome

    async def follow(checker: Checker) -> None:
        nonlocal last
        async for paths in watch_folder(checker.root):
            if paths is None:
                printer.talk(f"watching {checker.root} (Ctrl-C stops)")
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


def _print_text(reports: Sequence[CheckReport], printer: Printer) -> None:
    """Print the problems grouped by skill, each with its line and a caret, then a summary."""
    from rich.text import Text  # late: 25 ms

    for report in reports:
        for skill, problems in groupby(sorted(report.problems, key=_skill_of), key=_skill_of):
            printer.data(Text(visible(skill or "outside of skills"), style="bold"))
            for problem in problems:
                printer.data(_problem_text(report, problem))
    for report in reports:
        if report.ignored:
            printer.data(Text(ignored_text(report.ignored), style="dim"))
    printer.data(_summary(reports))


def _as_json(reports: Sequence[CheckReport]) -> dict[str, Any]:
    """Return everything as a document. Its field names are stable."""
    return {
        "skills": sum(report.skills for report in reports),
        "errors": sum(report.errors for report in reports),
        "warnings": sum(report.warnings for report in reports),
        "notes": sum(report.notes for report in reports),
        "problems": [_problem_json(report, problem) for report in reports for problem in report.problems],
        "ignored": [str(report.place(path)) for report in reports for path in report.ignored],
    }


def _as_sarif(reports: Sequence[CheckReport]) -> dict[str, Any]:
    """Return the findings in the format of code hosts and editors."""
    from skillwire import __version__
    from skillwire.skill.diagnostics import KINDS

    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "skillwire",
                        "version": __version__,
                        "rules": [
                            {
                                "id": reference,
                                "shortDescription": {"text": kind.title},
                                "help": {"text": f"Rule {kind.rule}: {kind.title}."},
                                "defaultConfiguration": {"level": kind.severity},
                            }
                            for reference, kind in sorted(KINDS.items())
                        ],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(report, item) for report in reports for item in report.problems],
            }
        ],
    }


def _skill_of(problem: Diagnostic) -> str:
    return problem.skill or ""


def _problem_text(report: CheckReport, problem: Diagnostic) -> Text:
    from rich.text import Text

    place = ":".join(str(part) for part in (report.place(problem.file), problem.line, problem.column) if part)
    text = Text("  ")
    text.append(problem.severity, style=_COLOURS[problem.severity])
    text.append(f" {problem.reference}", style="bold")
    text.append(" (not served)  " if problem.refuses else "  ")
    text.append(visible(place), style="cyan")
    text.append(f"\n    {visible(problem.message)}")
    if problem.source is not None and problem.line is not None:
        text.append("\n" + _excerpt(problem.source, problem.line, problem.column))
    text.append("\n    hint: ", style="dim")
    text.append(visible(problem.hint))
    return text


def _excerpt(source: str, line: int, column: int | None) -> str:
    at = max((column or 1) - 1, 0)
    start = max(0, at - _CONTEXT)
    before, after = visible(source[start:at]), visible(source[at : at + _CONTEXT])
    lead = "…" if start else ""
    tail = "…" if len(source) > at + _CONTEXT else ""
    gutter = f"    {line} | "
    caret = " " * (len(gutter) - 2) + "| " + " " * len(lead + before) + "^" if column else ""
    return f"{gutter}{lead}{before}{after}{tail}" + (f"\n{caret}" if caret else "")


def _summary(reports: Sequence[CheckReport]) -> Text:
    from rich.text import Text

    skills = sum(report.skills for report in reports)
    errors = sum(report.errors for report in reports)
    warnings = sum(report.warnings for report in reports)
    if not skills and not errors:
        return Text("no skills found: a skill is a folder with a file named SKILL.md", style="yellow")
    notes = sum(report.notes for report in reports)
    words = f"{counted(skills, 'skill')} checked: "
    if not errors and not warnings:
        return Text.assemble(words, ("no problems", "green"), f", {counted(notes, 'note')}" if notes else "")
    counts = {"error": errors, "warning": warnings, "note": notes}
    parts = [counted(count, noun) for noun, count in counts.items() if count]
    return Text.assemble(words, (", ".join(parts), "bold red" if errors else "yellow"))


def _problem_json(report: CheckReport, problem: Diagnostic) -> dict[str, Any]:
    return {
        "reference": problem.reference,
        "detail": problem.detail,
        "rule": problem.rule,
        "severity": problem.severity,
        "served": not problem.refuses,
        "message": problem.message,
        "hint": problem.hint,
        "skill": problem.skill,
        "file": str(report.place(problem.file)),
        "line": problem.line,
        "column": problem.column,
    }


def _sarif_result(report: CheckReport, problem: Diagnostic) -> dict[str, Any]:
    from skillwire.skill.diagnostics import KINDS

    place: dict[str, Any] = {"artifactLocation": {"uri": quote(str(report.place(problem.file)))}}
    if problem.line is not None:
        place["region"] = {"startLine": problem.line, "startColumn": problem.column or 1}
    return {
        "ruleId": problem.reference,
        "ruleIndex": sorted(KINDS).index(problem.reference),
        "level": problem.severity,
        "message": {"text": f"{problem.message}. {problem.hint}"},
        "locations": [{"physicalLocation": place}],
    }
