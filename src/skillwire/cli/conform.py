"""``skillwire conform``: checks a server, or observes a host, against the rules of the protocol, with evidence."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillwire import __version__
from skillwire.cli.command import (
    COMMAND,
    JSON,
    Arguments,
    Exit,
    Noun,
    Seconds,
    argument,
    command_words,
    flag,
    option,
    repeated,
    silence_libraries,
    verb,
    whole_command,
)
from skillwire.cli.consent import ask_for_servers
from skillwire.cli.printer import Printer, line
from skillwire.cli.targets import CONFIG, HEADER, parse_headers
from skillwire.client.dialects import DIALECT_NAMES
from skillwire.errors import FormatError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Collection

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
        "not checked": "not observed",
    },
}
_FINDINGS_SHOWN = 3
_MAX_LINE = 400

_SERVER_CODES = """
exit codes: 0 no rule is broken, 1 some are (with --strict: or warnings), 2 usage, or no server to check
"""
_REPORT_OPTIONS = (
    repeated("--rule", metavar="ID", help="check only this rule (repeatable)"),
    flag("--list-rules", help="print the rules and how each is checked"),
    JSON,
    option("--junit", metavar="FILE", help="write the report as JUnit XML"),
    flag("--strict", help="warnings count as failures too"),
)


@verb(
    "Send requests to a server and compare its raw responses with the rules.",
    argument("target", "[TARGET]", "a URL, a label from an mcpServers file, or a command after --", nargs=-1),
    CONFIG,
    flag("--yes", help="do not ask before using a server that a file of the project names"),
    HEADER,
    option(
        "--era",
        type=click.Choice(["both", "modern", "legacy"]),
        default="both",
        help="the protocol era (default: both)",
    ),
    option(
        "--require",
        type=click.Choice([name for name in DIALECT_NAMES if name != "fallback"]),
        help="fail if the server does not offer this dialect",
    ),
    option(
        "--timeout", type=Seconds(), default=120.0, metavar="SECONDS", help="limit for each era (default: 120)"
    ),
    *_REPORT_OPTIONS,
    targets=2,
    examples="""\
  skillwire conform server https://skills.example.com/mcp
  skillwire conform server --junit report.xml -- npx some-mcp-server ./skills
  skillwire conform server --rule R2 --rule D1 my-server
  skillwire conform server --list-rules
"""
    + _SERVER_CODES,
)
def _server(arguments: Arguments, printer: Printer) -> int:
    from skillwire.conform.rules import SERVER_RULES  # late: not needed for --help

    if arguments.list_rules:
        return _list_rules(SERVER_RULES.values(), printer)
    if not arguments.target:
        raise FormatError(
            "target-missing", "no server was given", "write: skillwire conform server -- COMMAND, or a URL"
        )
    if COMMAND not in arguments.target and len(arguments.target) > 1:
        raise FormatError("target-several", "only one server can be checked at a time", "give one TARGET")
    import anyio

    silence_libraries()
    report = anyio.run(_check, arguments, printer)
    return _write_report(report, arguments, printer)


async def _check(arguments: Arguments, printer: Printer) -> Report:
    import shlex

    from skillwire.bootstrap import TargetOptions, also_at_usual_path, server_place
    from skillwire.catalog.git_source import GitSource
    from skillwire.conform.server import check_server
    from skillwire.conform.session import ERAS, Bounds

    consent = ask_for_servers(printer, "--yes", is_given=arguments.yes)
    options = TargetOptions(arguments.config, parse_headers(arguments.header), consent=consent)
    target = command_words(whole_command(arguments)) if COMMAND in arguments.target else arguments.target[0]
    place = await server_place(target, options, Path.cwd(), Path.home())
    if isinstance(place, GitSource):
        raise FormatError(
            "target-unknown",
            "a Git repository is not a server",
            f"serve it: skillwire serve {shlex.quote(str(place))}",
        )
    with printer.progress("Checking", "requests") as count:
        check = partial(
            check_server,
            rules=tuple(arguments.rule),
            eras=ERAS if arguments.era == "both" else (arguments.era,),
            required=arguments.require,
            bounds=Bounds(seconds=arguments.timeout, call_seconds=min(15.0, arguments.timeout)),
            on_request=count,
        )
        return await also_at_usual_path(place, check)


@verb(
    "Run a host against servers that observe it.",
    argument("command", "[-- COMMAND]", "the host (default: wait for a host to connect)", nargs=-1),
    flag("--stdio", help="let the host start the servers, instead of connecting over HTTP"),
    option(
        "--timeout", type=Seconds(), default=300.0, metavar="SECONDS", help="limit of the command (default: 300)"
    ),
    *_REPORT_OPTIONS,
    targets=2,
    examples="""\
  skillwire conform host -- my-agent --mcp-config {config} "which skills are there?"
"""
    + _SERVER_CODES,
)
def _host(arguments: Arguments, printer: Printer) -> int:
    from skillwire.conform.rules import HOST_RULES  # late: not needed for --help

    if arguments.list_rules:
        return _list_rules(HOST_RULES.values(), printer)
    if arguments.command and COMMAND not in arguments.command:
        raise FormatError(
            "command-missing", "the command of a host must follow --", "write: skillwire conform host -- COMMAND"
        )
    import anyio

    silence_libraries("uvicorn")
    return _write_report(anyio.run(_watch, arguments, printer), arguments, printer)


async def _watch(arguments: Arguments, printer: Printer) -> Report:
    from skillwire.conform.host import environment, probe_host

    def print_settings(words: dict[str, str]) -> None:
        if not arguments.command:
            for name, value in environment(words).items():
                printer.talk(f"{name}={value}")
            printer.talk("connect a host to these servers; Ctrl-C stops the observation")

    return await probe_host(
        command_words(whole_command(arguments)) if arguments.command else [],
        rules=tuple(arguments.rule),
        seconds=arguments.timeout,
        stdio=arguments.stdio,
        on_serving=print_settings,
    )


command = Noun(
    "Check a server, or observe a host, and report which rules it keeps, with evidence.",
    {"server": _server, "host": _host},
    default="server",
)


def _list_rules(rules: Collection[ConformanceRule], printer: Printer) -> int:
    printer.result(
        [{"rule": rule.id, "title": rule.title, "how": rule.how} for rule in rules],
        *(f"{rule.id:<5} {rule.title}\n      {rule.how}" for rule in rules),
    )
    return Exit.OK


def _write_report(report: Report, arguments: Arguments, printer: Printer) -> int:
    """Print the report, write the requested files, and return the exit code."""
    from skillwire.conform.report import as_json, as_junit

    if arguments.junit is not None:
        _write_file(arguments.junit, as_junit(report))
    printer.json(as_json(report, __version__))
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
    for index, finding in enumerate(list(findings.values())[:_FINDINGS_SHOWN]):
        _print_finding(finding, printer, whole=index == 0)
    more = max(result.failed + result.warned for result in results) - _FINDINGS_SHOWN
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
