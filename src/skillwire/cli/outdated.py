"""``skillwire outdated``: shows which installed skills have changed at their servers. It reads no files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb, run_async
from skillwire.cli.install_session import add_lock_options, chosen, headers_for, open_server, scope_of, server_text
from skillwire.cli.printer import Printer, line
from skillwire.errors import NotFoundError, SkillwireError, VerificationError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.install.lock import Installed

_EXAMPLES = """\
examples:
  skillwire outdated
  skillwire outdated --global --json

exit codes: 0 all are current, 1 some are not, 2 usage, or a server did not respond
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "outdated",
        run,
        "show which installed skills have changed at their servers",
        "Get the entries of installed skills from the servers in skills.lock.json and compare the digests.",
        _EXAMPLES,
    )
    parser.add_argument("skills", metavar="SKILL", nargs="*", help="an installed skill (default: all)")
    add_lock_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Compare the lock with the servers."""
    return run_async(lambda: _outdated(arguments, printer), printer)


async def _outdated(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.lock import require_lock

    scope = scope_of(arguments)
    groups = chosen(require_lock(scope.lock_path), arguments.skills)
    headers = headers_for(list(groups), arguments)
    rows: list[tuple[str, str, str, str]] = []
    for server, skills in groups.items():
        try:
            async with open_server(server, scope, arguments, headers, printer) as catalog:
                found = [await _state(catalog, skill) for skill in skills]
        except SkillwireError as error:
            printer.error(error)
            found = ["unreachable"] * len(skills)
        rows += [(s.name, state, s.at, server_text(server)) for s, state in zip(skills, found, strict=True)]
    _print(rows, arguments, printer)
    states = {state for _, state, _, _ in rows}
    if "unreachable" in states:
        return Exit.USAGE
    return Exit.PROBLEMS if states - {"current"} else Exit.OK


async def _state(catalog: Catalog, skill: Installed) -> str:
    from skillwire.install.installation import promised_digests

    try:
        return "current" if promised_digests(await catalog.get_skill(skill.uri)) == skill.files else "changed"
    except NotFoundError:
        return "gone"
    except VerificationError:
        return "unverifiable"


def _print(rows: list[tuple[str, str, str, str]], arguments: Arguments, printer: Printer) -> None:
    titles = ("skill", "state", "installed", "from")
    if arguments.json:
        printer.json({"skills": [dict(zip(titles, row, strict=True)) for row in rows]})
        return
    late = [tuple(line(cell) for cell in row) for row in rows if row[1] != "current"]
    if late:
        printer.table(titles, late)
    printer.talk(f"{len(rows) - len(late)} of {len(rows)} current")
