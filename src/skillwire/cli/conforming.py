"""What both kinds of conformance run have in common: options, the table, the failures last, files for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire import __version__
from skillwire.cli.exits import Exit
from skillwire.cli.targets import command_words
from skillwire.errors import UpstreamError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from skillwire.cli.printer import Printer
    from skillwire.conform.report import ConformanceRule, Finding, Report, Result

_WORDS = {
    "server": {
        "pass": "ok",
        "fail": "FAILED",
        "warning": "warning",
        "not offered": "not offered",
        "not checked": "not checked",
    },
    "host": {
        "pass": "kept",
        "fail": "BROKEN",
        "warning": "warning",
        "not offered": "-",
        "not checked": "not seen",
    },
}
_SHOWN_OF_ONE = 3
_MAX_LINE = 400


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """The options that say what is looked at, and what becomes of the report."""
    add = parser.add_argument
    add("--rule", action="append", default=[], metavar="ID", help="only this rule (may be given several times)")
    add("--list-rules", action="store_true", help="print the rules, and how each is looked at")
    add("--json", metavar="FILE", help="write the report as JSON; - is stdout, instead of text")
    add("--junit", metavar="FILE", help="write the report as JUnit's XML")
    add("--strict", action="store_true", help="warnings count as failures too")


def after_dashes(arguments: argparse.Namespace) -> list[str]:
    """The whole command after the first ``--``, others in it included."""
    first, *others = arguments.commands
    return command_words([*first, *(word for rest in others for word in ("--", *rest))])


def list_rules(rules: Iterable[ConformanceRule], arguments: argparse.Namespace, printer: Printer) -> int:
    """``--list-rules``."""
    if arguments.json == "-":
        printer.json([{"rule": rule.id, "title": rule.title, "how": rule.how} for rule in rules])
    else:
        for rule in rules:
            printer.data(f"{rule.id:<5} {rule.title}\n      {rule.how}")
    return Exit.OK


def write_report(report: Report, arguments: argparse.Namespace, printer: Printer) -> int:
    """Print the report, write the files that were asked for, and say how it went."""
    from skillwire.conform.report import as_json, as_junit

    if arguments.junit is not None:
        _write(arguments.junit, as_junit(report))
    if arguments.json == "-":
        printer.json(as_json(report, __version__))
    else:
        if arguments.json is not None:
            _write(arguments.json, json.dumps(as_json(report, __version__), indent=2, ensure_ascii=False) + "\n")
        _print(report, printer, strict=arguments.strict)
    return Exit.PROBLEMS if report.has_failed(strict=arguments.strict) else Exit.OK


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UpstreamError(
            "file-unwritable", f"{Path(path).name!r} cannot be written: {error.strerror}", "name another file"
        ) from error


def _print(report: Report, printer: Printer, *, strict: bool) -> None:
    spoken = [section for section in report.sections if section.spoken]
    words = _WORDS[report.kind]
    rows: list[tuple[str, ...]] = []
    for results in zip(*(section.results for section in spoken), strict=True):
        rule = results[0].rule
        rows.append((rule.id, *(words[result.verdict] for result in results), rule.title))
    printer.table(("rule", *(section.name for section in spoken), "what"), rows)
    for section in report.sections:
        if section.note:
            printer.talk(f"{section.name}: {_line(section.note)}")
    for wanted in ("warning", "fail"):  # what matters most stands last
        for results in zip(*(section.results for section in spoken), strict=True):
            found = [index for index, result in enumerate(results) if result.verdict == wanted]
            if found:
                where = " and ".join(spoken[index].name for index in found)
                _print_result([results[index] for index in found], f"{words[wanted]} ({where})", printer)
    for result in spoken[0].results if report.kind == "host" else ():
        if result.verdict == "not checked":
            printer.talk(f"{result.rule.id} was not seen: see it by {result.reason.partition('See it by ')[2]}")
    for note in report.notes:
        printer.talk(_line(note))
    printer.talk(_summary(report, strict=strict))


def _print_result(results: list[Result], heading: str, printer: Printer) -> None:
    """A rule that came out the same in one era or more; what is the same is said once."""
    rule = results[0].rule
    printer.data(f"\n{rule.id} {heading}: {rule.title}")
    findings: dict[str, Finding] = {}
    for result in results:
        for finding in result.findings:
            findings.setdefault(finding.message, finding)
    for index, finding in enumerate(list(findings.values())[:_SHOWN_OF_ONE]):
        _print_finding(finding, printer, whole=index == 0)
    more = max(result.failed + result.warned for result in results) - _SHOWN_OF_ONE
    if more > 0:
        printer.data(f"  … and {more:,} more like this")
    printer.data(f"  to do: {rule.fix}")


def _print_finding(finding: Finding, printer: Printer, *, whole: bool) -> None:
    printer.data(f"  {_line(finding.message)}")
    if whole and finding.part is not None:
        printer.data(f"    meant:   {_json(finding.part)}")
    if whole and finding.evidence is not None:
        printer.data(f"    request: {_json(_without_envelope(finding.evidence['request']))}")
        printer.data(f"    answer:  {_json(finding.evidence['answer'])}")


def _without_envelope(request: dict[str, Any]) -> dict[str, Any]:
    """The request without what stands in each of them."""
    params = {key: value for key, value in request.get("params", {}).items() if key != "_meta"}
    return {**request, "params": params} if params else {key: request[key] for key in request if key != "params"}


def _json(value: Any) -> str:
    text = _line(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}…"


def _line(text: str) -> str:
    from skillwire.cli.printer import visible

    return visible(text).replace("\n", " ")


def _summary(report: Report, *, strict: bool) -> str:
    from skillwire.conform.report import Verdict

    words = _WORDS[report.kind]
    counts = [f"{report.count(verdict)} {words[verdict].lower()}" for verdict in Verdict if report.count(verdict)]
    verdict = "broken" if report.has_failed(strict=strict) else "nothing broken"
    return f"{_line(report.target)}: {', '.join(counts)}: {verdict}"
