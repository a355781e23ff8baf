"""``skillwire ci``: installs exactly the content of the lock into every folder, or nothing (V1, V3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb, run_async
from skillwire.cli.install_session import (
    add_agent_folder_option,
    add_lock_options,
    backups,
    chosen,
    headers_for,
    open_server,
    scope_of,
    show_backups,
    tidy_first,
)
from skillwire.cli.printer import Printer, counted, line
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.install.lock import Installed, Lock, Server
    from skillwire.install.places import InstallScope

_EXAMPLES = """\
examples:
  skillwire ci
  skillwire ci --allow-servers     you have reviewed the servers and programs that the lock names

Nothing needs an approval: the lock records what was approved. If any byte differs, nothing is written. Other files
in the folders stay. A folder in a project's lock that belongs to no known agent is used only after you named it on
this machine with --agent-dir.

exit codes: 0 all folders match the lock, 1 failed and nothing was written, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "ci",
        run,
        "install exactly the content of the lock, or fail",
        "Install the skills in skills.lock.json with exactly the recorded digests, or fail and write nothing.",
        _EXAMPLES,
    )
    parser.add_argument("--force", action="store_true", help="replace edited files; a copy is kept")
    add_agent_folder_option(parser)
    add_lock_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Install the lock."""
    return run_async(lambda: _ci(arguments, printer), printer)


async def _ci(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.installation import restore
    from skillwire.install.lock import require_lock

    scope = scope_of(arguments)
    tidy_first(scope, printer)
    lock = require_lock(scope.lock_path)
    try:
        ready = _ready(lock, scope, force=arguments.force)
    except SkillwireError as error:
        return _failed(printer, error)
    missing = [name for name, files in ready.items() if not files]
    groups = chosen(lock, missing) if missing else {}
    headers = headers_for(list(groups), arguments)
    if not await _gather(groups, ready, scope, arguments, headers, printer):
        return _failed(printer)
    try:
        outcome = restore(scope, lock, ready, backups(force=arguments.force))
    except SkillwireError as error:
        return _failed(printer, error)
    show_backups(outcome, printer)
    if arguments.json:
        printer.json({"skills": sorted(lock.skills), "wrote": list(outcome.written)})
    else:
        for label in outcome.written:
            printer.data(f"wrote {line(label)}")
        printer.talk(f"{counted(len(lock.skills), 'skill')} installed; all folders match the lock")
    return Exit.OK


def _failed(printer: Printer, error: SkillwireError | None = None) -> int:
    if error is not None:
        printer.error(error)
    printer.talk("nothing was written")
    return Exit.PROBLEMS


def _ready(lock: Lock, scope: InstallScope, *, force: bool) -> dict[str, Mapping[str, bytes]]:
    """Return the files of every skill that is missing somewhere; empty if they must be fetched."""
    from skillwire.install.installation import check_untouched
    from skillwire.install.places import installed_files, installed_states

    if not force:
        check_untouched(scope, lock)
    return {
        skill.name: installed_files(scope, skill) or {}
        for skill in lock.skills.values()
        if any(state.state != "ok" for state in installed_states(scope, skill))
    }


async def _gather(
    groups: Mapping[Server, Sequence[Installed]],
    ready: dict[str, Mapping[str, bytes]],
    scope: InstallScope,
    arguments: Arguments,
    headers: dict[str, str],
    printer: Printer,
) -> bool:
    """Fetch the skills in ``groups``. Return whether all of them match the lock."""
    failed = False
    for server, skills in groups.items():
        try:
            async with open_server(server, scope, arguments, headers, printer) as catalog:
                for skill in skills:
                    failed |= not await _fetch(catalog, skill, ready, scope, printer)
        except SkillwireError as error:
            printer.error(error)
            failed = True
    return not failed


async def _fetch(
    catalog: Catalog,
    skill: Installed,
    ready: dict[str, Mapping[str, bytes]],
    scope: InstallScope,
    printer: Printer,
) -> bool:
    from skillwire.install.installation import check_pinned, fetch, promised_digests

    try:
        entry = await catalog.get_skill(skill.uri)
        check_pinned(skill, promised_digests(entry), scope)
        fetched = await fetch(catalog, entry)
        check_pinned(skill, fetched.digests, scope)
    except SkillwireError as error:
        printer.error(error)
        return False
    ready[skill.name] = fetched.files
    return True
