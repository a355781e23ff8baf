"""``skillwire verify``: everything a server claims, or everything that is installed, read and checked."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.installed import add_installed_options, is_about_installed, verify_installed
from skillwire.cli.parsing import add_verb
from skillwire.cli.targets import TARGET_HELP, add_target_options, run_on_targets

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog
    from skillwire.catalog.verification import Failure, VerifyReport
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

TARGETS = 1
_SHOWN_OF_ONE = 20  # failures with one reference
_EXAMPLES = """\
examples:
  skillwire verify https://skills.example.com/mcp
  skillwire verify --strict -- npx some-mcp-server ./skills
  skillwire verify --installed                 is what lies in agents' folders still what was written?

exit codes: 0 all claims hold, 1 some do not (with --strict: or were not made), 2 usage, or no answer
"""
_TITLES = {
    "D1": "directories show the entry's files",
    "E1": "entries are well formed",
    "E6": "skills are within every host's limits",
    "G1": "getting a skill gives its listed entry",
    "V1": "bytes have the claimed size and digest",
    "V4": "SKILL.md has the claimed fields",
}


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "verify",
        "read and check everything a server claims",
        "Read every file of every skill and check it against what the server claims, rule by rule.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", help=TARGET_HELP)
    add_installed_options(parser, "check what lies in agents' folders against skills.lock.json, and ask nobody")
    parser.add_argument("--strict", action="store_true", help="what is not promised counts as a failure too")
    add_target_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Verify."""
    if is_about_installed(arguments):
        return verify_installed(arguments, printer)
    return run_on_targets(arguments, printer, verify_and_print)


async def verify_and_print(catalog: Catalog, arguments: argparse.Namespace, printer: Printer) -> int:
    """Verify one catalog; the exit code."""
    from skillwire.catalog.verification import verify_catalog

    with printer.progress("Checking", "files") as count:
        report = await verify_catalog(catalog, on_file=count)
    if arguments.json:
        printer.json(_document(report))
    else:
        _print(report, printer, strict=arguments.strict)
    return Exit.PROBLEMS if report.lies or (arguments.strict and report.gaps) else Exit.OK


def _document(report: VerifyReport) -> dict[str, Any]:
    return {
        "skills": report.skills,
        "files": report.files,
        "bytes": report.size,
        "checked": dict(sorted(report.checked.items())),
        "failures": [_failure(failure) for failure in report.lies],
        "notPromised": [_failure(failure) for failure in report.gaps],
    }


def _failure(failure: Failure) -> dict[str, str]:
    return {key: str(value) for key, value in failure._asdict().items() if key != "is_gap"}


def _print(report: VerifyReport, printer: Printer, *, strict: bool) -> None:
    from skillwire.cli.printer import counted, size_of, visible

    failed = {
        rule: sum(1 for lie in report.lies if lie.rule == rule) for rule in {lie.rule for lie in report.lies}
    }
    rules = sorted({*report.checked, *failed})
    rows = [
        (rule, _TITLES.get(rule, ""), str(report.checked[rule] or ""), str(failed.get(rule, "")) or "ok")
        for rule in rules
    ]
    printer.table(("rule", "what", "checked", "failed"), rows)
    shown = Counter[str]()
    for failure in report.failures:
        shown[failure.reference] += 1
        if shown[failure.reference] > _SHOWN_OF_ONE:  # a server can make up as many as it likes
            continue
        kind = "not promised" if failure.is_gap else "FAILED"
        printer.data(
            f"{kind} {failure.rule} {visible(failure.uri)}: {visible(failure.message)} [{failure.reference}]"
        )
        if failure.hint:
            printer.data(f"    hint: {visible(failure.hint)}")
    for reference, count in shown.items():
        if count > _SHOWN_OF_ONE:
            printer.data(f"… and {count - _SHOWN_OF_ONE:,} more [{reference}]; --json lists all")
    printer.talk(
        f"{counted(report.skills, 'skill')}, {counted(report.files, 'file')}, {size_of(report.size)}:"
        f" {_verdict(report, strict)} (that is consistency, not trust)"
    )


def _verdict(report: VerifyReport, strict: bool) -> str:
    if not report.skills:
        return "nothing was checked; an empty listing does not prove that there are no skills"
    if report.lies:
        return f"{len(report.lies)} of the claims do not hold"
    if not report.files:
        return "no file could be checked, for nothing is promised about any"
    gaps = f"; {len(report.gaps)} things are not promised" if report.gaps else ""
    return f"every claim holds{gaps}{', which --strict counts as failures' if gaps and strict else ''}"
