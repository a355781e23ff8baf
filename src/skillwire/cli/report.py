"""A check's findings: as text for people, as JSON, and as SARIF 2.1.0 for code-scanning tools."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rich.text import Text

from skillwire import __version__
from skillwire.cli.printer import Printer, counted, said_ignored, visible
from skillwire.skill.diagnostics import KINDS, Diagnostic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillwire.catalog.check import CheckReport

_COLOURS = {"error": "bold red", "warning": "yellow"}
_CONTEXT = 50


def print_text(reports: Sequence[CheckReport], printer: Printer) -> None:
    """Problems grouped by skill, each with its line and a caret, then a summary."""
    for report in reports:
        for skill, problems in groupby(sorted(report.problems, key=_skill), key=_skill):
            printer.data(Text(visible(skill or "outside any skill"), style="bold"))
            for problem in problems:
                printer.data(_problem(report, problem))
    for report in reports:
        if report.ignored:
            printer.data(Text(said_ignored(report.ignored), style="dim"))
    printer.data(_summary(reports))


def as_json(reports: Iterable[CheckReport]) -> dict[str, Any]:
    """Everything, for programs. Field names are stable."""
    reports = list(reports)
    return {
        "skills": sum(report.skills for report in reports),
        "errors": sum(report.errors for report in reports),
        "warnings": sum(report.warnings for report in reports),
        "problems": [_problem_json(report, problem) for report in reports for problem in report.problems],
        "ignored": [str(report.place(path)) for report in reports for path in report.ignored],
    }


def as_sarif(reports: Iterable[CheckReport]) -> dict[str, Any]:
    """The findings in the format that code hosts and editors read."""
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "skillwire",
                        "version": __version__,
                        "rules": [_sarif_rule(reference) for reference in sorted(KINDS)],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(report, item) for report in reports for item in report.problems],
            }
        ],
    }


def _skill(problem: Diagnostic) -> str:
    return problem.skill or ""


def _problem(report: CheckReport, problem: Diagnostic) -> Text:
    place = ":".join(str(part) for part in (report.place(problem.file), problem.line, problem.column) if part)
    text = Text("  ")
    text.append(problem.severity, style=_COLOURS[problem.severity])
    text.append(f" {problem.reference}", style="bold")
    text.append(f" ({problem.rule}" + (", not served" if problem.refuses else "") + ")  ")
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
    skills = sum(report.skills for report in reports)
    errors = sum(report.errors for report in reports)
    warnings = sum(report.warnings for report in reports)
    if not skills and not errors:
        return Text("no skills found: a skill is a folder with a file named SKILL.md", style="yellow")
    words = f"{counted(skills, 'skill')} checked: "
    if not errors and not warnings:
        return Text.assemble(words, ("no problems", "green"))
    parts = [counted(count, noun) for count, noun in ((errors, "error"), (warnings, "warning")) if count]
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


def _sarif_rule(reference: str) -> dict[str, Any]:
    kind = KINDS[reference]
    return {
        "id": reference,
        "shortDescription": {"text": kind.title},
        "help": {"text": f"Rule {kind.rule}: {kind.title}."},
        "defaultConfiguration": {"level": kind.severity},
    }


def _sarif_result(report: CheckReport, problem: Diagnostic) -> dict[str, Any]:
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
