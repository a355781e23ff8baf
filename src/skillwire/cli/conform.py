"""``skillwire conform``: checks a server, or observes a host, against the rules of the protocol, with evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire import __version__
from skillwire.cli.command import (
    COMMAND,
    Arguments,
    Exit,
    Parser,
    Verbs,
    add_verb,
    command_words,
    silence_libraries,
    whole_command,
)
from skillwire.cli.consent import ask_for_servers
from skillwire.cli.printer import Printer, line
from skillwire.cli.targets import parse_headers
from skillwire.errors import FormatError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.conform.report import ConformanceRule, Finding, Report, Result

TARGETS = 2  # a command after -- comes last
_EXAMPLES = """\
examples:
  skillwire conform server https://skills.example.com/mcp
  skillwire conform server --junit report.xml -- npx some-mcp-server ./skills
  skillwire conform server --rule R2 --rule D1 my-server
  skillwire conform host -- my-agent --mcp-config {config} "which skills are there?"
  skillwire conform server --list-rules

exit codes: 0 no rule is broken, 1 some are (with --strict: or warnings), 2 usage, or no server to check
"""
_OFFERED = ("extension", "index", "sep-2076", "native")
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
        "not checked": "not observed",
    },
}
_SHOWN_OF_ONE = 3
_MAX_LINE = 400


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "conform",
        run,
        "check a server or a host against the rules of the protocol",
        "Check a server, or observe a host, and report which rules it keeps, with evidence.",
        _EXAMPLES,
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    _add_server(kinds)
    _add_host(kinds)


def run(arguments: Arguments, printer: Printer) -> int:
    """Check a server, or observe a host."""
    return (_run_server if arguments.kind == "server" else _run_host)(arguments, printer)


def _add_server(kinds: Verbs) -> None:
    parser = kinds.add_parser(
        "server", help="send requests to a server and compare its raw responses with the rules"
    )
    add = parser.add_argument
    add(
        "target", metavar="TARGET", nargs="*", help="a URL, a label from an mcpServers file, or a command after --"
    )
    add("--config", type=Path, metavar="FILE", help="the mcpServers file with the label (default: search for it)")
    add("--yes", action="store_true", help="do not ask before using a server that a file of the project names")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent with every request to a URL")
    add("--era", choices=("both", "modern", "legacy"), default="both", help="the protocol era (default: both)")
    add("--require", choices=_OFFERED, help="fail if the server does not offer this dialect")
    add("--seconds", type=float, default=120.0, metavar="N", help="time limit for each era (default: 120)")
    _add_report_options(parser)


def _run_server(arguments: Arguments, printer: Printer) -> int:
    from skillwire.conform.rules import SERVER_RULES  # late: not needed for --help

    if arguments.list_rules:
        return _list_rules(SERVER_RULES.values(), arguments, printer)
    if not arguments.target:
        raise FormatError("target-missing", "no server was given", "add a URL, a label, or -- COMMAND")
    if COMMAND not in arguments.target and len(arguments.target) > 1:
        raise FormatError("target-several", "only one server can be checked at a time", "give one TARGET")
    if not arguments.seconds > 0:
        raise FormatError("seconds-invalid", "--seconds must be positive", "write: --seconds 120")
    import anyio

    silence_libraries()
    report = anyio.run(_check, arguments, printer)
    return _write_report(report, arguments, printer)


async def _check(arguments: Arguments, printer: Printer) -> Report:
    from skillwire.bootstrap import TargetOptions, server_place
    from skillwire.conform.server import check_server
    from skillwire.conform.session import ERAS, Bounds

    consent = ask_for_servers(printer, "--yes", is_given=arguments.yes)
    options = TargetOptions(arguments.config, parse_headers(arguments.header), consent=consent)
    target = command_words(whole_command(arguments)) if COMMAND in arguments.target else arguments.target[0]
    place = await server_place(target, options, Path.cwd(), Path.home())
    eras = ERAS if arguments.era == "both" else (arguments.era,)

    with printer.progress("Checking", "requests") as count:
        return await check_server(
            place,
            rules=tuple(arguments.rule),
            eras=eras,
            required=arguments.require,
            bounds=Bounds(seconds=arguments.seconds, call_seconds=min(15.0, arguments.seconds)),
            on_request=count,
        )


def _add_host(kinds: Verbs) -> None:
    parser = kinds.add_parser("host", help="run a host against servers that observe it")
    add = parser.add_argument
    add("command", metavar="-- COMMAND", nargs="*", help="the host (default: wait for a host to connect)")
    add("--stdio", action="store_true", help="let the host start the servers, instead of connecting over HTTP")
    add("--seconds", type=float, default=300.0, metavar="N", help="time limit of the command (default: 300)")
    _add_report_options(parser)


def _run_host(arguments: Arguments, printer: Printer) -> int:
    from skillwire.conform.rules import HOST_RULES  # late: not needed for --help

    if arguments.list_rules:
        return _list_rules(HOST_RULES.values(), arguments, printer)
    if arguments.command and COMMAND not in arguments.command:
        raise FormatError(
            "command-missing", "the command of a host must follow --", "write: skillwire conform host -- COMMAND"
        )
    if not arguments.seconds > 0:
        raise FormatError("seconds-invalid", "--seconds must be positive", "write: --seconds 300")
    import anyio

    silence_libraries("uvicorn")
    return _write_report(anyio.run(_watch, arguments, printer), arguments, printer)


async def _watch(arguments: Arguments, printer: Printer) -> Report:
    from skillwire.conform.host import environment, probe_host

    def print_settings(words: dict[str, str]) -> None:
        if not arguments.command:
            for name, value in environment(words).items():
                printer.talk(f"{name}={value}")
            printer.talk("connect a host to these servers; Ctrl-C ends the observation")

    return await probe_host(
        command_words(whole_command(arguments)) if arguments.command else [],
        rules=tuple(arguments.rule),
        seconds=arguments.seconds,
        stdio=arguments.stdio,
        on_serving=print_settings,
    )


def _add_report_options(parser: Parser) -> None:
    add = parser.add_argument
    add("--rule", action="append", default=[], metavar="ID", help="check only this rule (repeatable)")
    add("--list-rules", action="store_true", help="print the rules and how each is checked")
    add("--json", metavar="FILE", help="write the report as JSON; - prints it instead of text")
    add("--junit", metavar="FILE", help="write the report as JUnit XML")
    add("--strict", action="store_true", help="warnings count as failures too")


def _list_rules(rules: Iterable[ConformanceRule], arguments: Arguments, printer: Printer) -> int:
    if arguments.json == "-":
        printer.json([{"rule": rule.id, "title": rule.title, "how": rule.how} for rule in rules])
    else:
        for rule in rules:
            printer.data(f"{rule.id:<5} {rule.title}\n      {rule.how}")
    return Exit.OK


def _write_report(report: Report, arguments: Arguments, printer: Printer) -> int:
    """Print the report, write the requested files, and return the exit code."""
    from skillwire.conform.report import as_json, as_junit

    if arguments.junit is not None:
        _write_file(arguments.junit, as_junit(report))
    if arguments.json == "-":
        printer.json(as_json(report, __version__))
    else:
        if arguments.json is not None:
            _write_file(
                arguments.json, json.dumps(as_json(report, __version__), indent=2, ensure_ascii=False) + "\n"
            )
        _print(report, printer, strict=arguments.strict)
    return Exit.PROBLEMS if report.has_failed(strict=arguments.strict) else Exit.OK


def _write_file(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise UpstreamError(
            "file-unwritable", f"{Path(path).name!r} cannot be written: {error.strerror}", "choose another file"
        ) from error


def _print(report: Report, printer: Printer, *, strict: bool) -> None:
    spoken = [section for section in report.sections if section.spoken]
    words = _WORDS[report.kind]
    rows: list[tuple[str, ...]] = []
    for results in zip(*(section.results for section in spoken), strict=True):
        rule = results[0].rule
        rows.append((rule.id, *(words[result.verdict] for result in results), rule.title))
    printer.table(("rule", *(section.name for section in spoken), "requirement"), rows)
    for section in report.sections:
        if section.note:
            printer.talk(f"{section.name}: {line(section.note)}")
    for wanted in ("warning", "fail"):  # the most important come last
        for results in zip(*(section.results for section in spoken), strict=True):
            found = [index for index, result in enumerate(results) if result.verdict == wanted]
            if found:
                where = " and ".join(spoken[index].name for index in found)
                _print_result([results[index] for index in found], f"{words[wanted]} ({where})", printer)
    for result in spoken[0].results if report.kind == "host" else ():
        if result.verdict == "not checked":
            printer.talk(
                f"{result.rule.id} was not observed: see it by {result.reason.partition('See it by ')[2]}"
            )
    for note in report.notes:
        printer.talk(line(note))
    printer.talk(_summary(report, strict=strict))


def _print_result(results: list[Result], heading: str, printer: Printer) -> None:
    """Print a rule with the same verdict in one or more eras; print equal findings once."""
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
    printer.data(f"  fix: {rule.fix}")


def _print_finding(finding: Finding, printer: Printer, *, whole: bool) -> None:
    printer.data(f"  {line(finding.message)}")
    if whole and finding.part is not None:
        printer.data(f"    about:    {_as_json(finding.part)}")
    if whole and finding.evidence is not None:
        printer.data(f"    request:  {_as_json(_without_envelope(finding.evidence['request']))}")
        printer.data(f"    response: {_as_json(finding.evidence['answer'])}")


def _without_envelope(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request without the envelope that all requests have."""
    params = {key: value for key, value in request.get("params", {}).items() if key != "_meta"}
    return {**request, "params": params} if params else {key: request[key] for key in request if key != "params"}


def _as_json(value: Any) -> str:
    text = line(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _MAX_LINE else f"{text[:_MAX_LINE]}…"


def _summary(report: Report, *, strict: bool) -> str:
    from skillwire.conform.report import Verdict

    words = _WORDS[report.kind]
    counts = [f"{report.count(verdict)} {words[verdict].lower()}" for verdict in Verdict if report.count(verdict)]
    verdict = "broken" if report.has_failed(strict=strict) else "nothing broken"
    return f"{line(report.target)}: {', '.join(counts)}: {verdict}"
