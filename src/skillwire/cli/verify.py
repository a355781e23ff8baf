"""``skillwire verify``: reads and checks everything that a server claims, or everything that is installed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import Arguments, Exit, flag, verb
from skillwire.cli.install_session import SCOPE, is_about_installed, scope_of
from skillwire.cli.printer import Printer, counted, line, size_of, visible
from skillwire.cli.targets import OPTIONAL_TARGET, TARGET_OPTIONS, run_on_targets
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.catalog.verification import Failure, VerifyReport
    from skillwire.install.lock import Installed
    from skillwire.install.places import InstallScope

_FAILURES_SHOWN = 20  # of one reference
_TITLES = {
    "D1": "directories list the files of the entry",
    "E1": "entries are well formed",
    "E6": "skills are within the limits of every host",
    "G1": "getting a skill returns its listed entry",
    "V1": "files have the claimed size and digest",
    "V4": "SKILL.md has the claimed fields",
}


@verb(
    "Read every file of every skill and check it against the claims of the server.",
    OPTIONAL_TARGET,
    flag(
        "--installed", help="check the folders of agents against skills.lock.json, without connecting to servers"
    ),
    SCOPE,
    flag("--strict", help="missing claims count as failures too"),
    *TARGET_OPTIONS,
    targets=1,
    examples="""\
  skillwire verify https://skills.example.com/mcp
  skillwire verify --strict -- npx some-mcp-server ./skills
  skillwire verify --installed                 check the folders of agents against the lock

exit codes: 0 all claims hold, 1 some do not (with --strict: or are missing), 2 usage, or no response
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Verify a target, or the installed skills."""
    if is_about_installed(arguments):
        return _verify_installed(arguments, printer)
    return run_on_targets(arguments, printer, verify_and_print)


async def verify_and_print(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    """Verify one catalog, print the report, and return the exit code."""
    from skillwire.catalog.verification import verify_catalog

    with printer.progress("Checking", "files") as count:
        report = await verify_catalog(catalog, on_file=count)
    printer.json(_document(report))
    _print(report, printer, strict=arguments.strict)
    return Exit.PROBLEMS if report.false_claims or (arguments.strict and report.gaps) else Exit.OK


def _document(report: VerifyReport) -> dict[str, Any]:
    return {
        "skills": report.skills,
        "files": report.files,
        "bytes": report.size,
        "checked": dict(sorted(report.checked.items())),
        "failures": [_failure(failure) for failure in report.false_claims],
        "notPromised": [_failure(failure) for failure in report.gaps],
    }


def _failure(failure: Failure) -> dict[str, str]:
    return {key: str(value) for key, value in failure._asdict().items() if key != "is_gap"}


def _print(report: VerifyReport, printer: Printer, *, strict: bool) -> None:
    failed = Counter(claim.rule for claim in report.false_claims)
    rules = sorted({*report.checked, *failed})
    rows = [
        (_TITLES.get(rule, rule), str(report.checked[rule] or ""), str(failed.get(rule, "")) or "ok")
        for rule in rules
    ]
    printer.table(("requirement", "checked", "failed"), rows)
    shown = Counter[str]()
    for failure in report.failures:
        shown[failure.reference] += 1
        if shown[failure.reference] > _FAILURES_SHOWN:  # a server can cause any number of them
            continue
        kind = "not stated" if failure.is_gap else "FAILED"
        printer.data(f"{kind} {visible(failure.uri)}: {visible(failure.message)} [{failure.reference}]")
        if failure.hint:
            printer.data(f"    hint: {visible(failure.hint)}")
    for reference, count in shown.items():
        if count > _FAILURES_SHOWN:
            printer.data(f"… and {count - _FAILURES_SHOWN:,} more [{reference}]; --json lists all")
    printer.talk(
        f"{counted(report.skills, 'skill')}, {counted(report.files, 'file')}, {size_of(report.size)}:"
        f" {_verdict(report, strict)} (this proves consistency, not trust)"
    )


def _verdict(report: VerifyReport, strict: bool) -> str:
    if not report.skills:
        return "nothing was checked; an empty listing does not prove that the server has no skills"
    if report.false_claims:
        return f"{counted(len(report.false_claims), 'claim')} failed"
    if not report.files:
        return "no file could be checked, because the server states no digests or sizes"
    gaps = f"; {counted(len(report.gaps), 'claim')} missing" if report.gaps else ""
    return f"every claim holds{gaps}{', which --strict counts as failures' if gaps and strict else ''}"


def _verify_installed(arguments: Arguments, printer: Printer) -> int:
    """Compare every folder of every installed skill with the lock."""
    from skillwire.install.lock import require_lock

    scope = scope_of(arguments)
    lock = require_lock(scope.lock_path)
    found = [each for name in sorted(lock.skills) for each in _folder_states(scope, lock.skills[name])]
    wrong = [each for each in found if each["state"] != "ok"]
    printer.json({"folders": found})
    for each in wrong:
        printer.data(f"{each['state'].upper()} {line(each['folder'])}/{line(each['skill'])}")
        for detail in each["details"]:
            printer.data(f"    {line(detail)}")
    verdict = f"{len(wrong)} do not match the lock" if wrong else "all match the lock"
    where = f"{counted(len(lock.skills), 'skill')} in {counted(len(found), 'folder')}"
    printer.talk(f"{where}: {verdict} (this proves consistency, not trust)")
    return Exit.PROBLEMS if wrong else Exit.OK


def _folder_states(scope: InstallScope, skill: Installed) -> list[dict[str, Any]]:
    """Return the state of a skill in each of its folders. An unreadable folder does not hide the others."""
    from skillwire.install.places import installed_states

    try:
        found = installed_states(scope, skill)
    except SkillwireError as error:
        details = [error.message, error.hint]
        return [{"skill": skill.name, "folder": "?", "state": "unknown", "details": details}]
    return [
        {"skill": skill.name, "folder": each.place.label, "state": each.state, "details": list(each.details)}
        for each in found
    ]
