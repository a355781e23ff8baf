"""``skillwire ci``: exactly what the lock says, in every folder it names, or nothing: for pipelines (V1, V3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import line, run_async
from skillwire.cli.installation import (
    add_folder_option,
    add_lock_options,
    backups,
    chosen,
    headers_for,
    open_server,
    scope_of,
    stamp,
    tidy_first,
)
from skillwire.cli.parsing import add_verb
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.install.lock import Installed, Lock, Server
    from skillwire.install.places import Scope

_EXAMPLES = """\
examples:
  skillwire ci
  skillwire ci --allow-servers     you have looked at the servers and programs that the lock names

Nobody is asked to approve anything: the lock says what was approved. Other bytes are a failure, and then nothing
is written. What lies in a folder and is not in the lock stays. A folder in a project's lock that is not that of a
known agent is used once you have named it on this machine with --agent-dir.

exit codes: 0 everything lies there as the lock says, 1 it could not, and nothing was written, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "ci",
        "install exactly what the lock says, or fail",
        "Install the skills in skills.lock.json with exactly the digests it has, or fail and write nothing.",
        _EXAMPLES,
    )
    parser.add_argument("--force", action="store_true", help="replace what was edited by hand; a copy is kept")
    add_folder_option(parser)
    add_lock_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Install."""
    return run_async(lambda: _ci(arguments, printer), printer)


async def _ci(arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.install.installation import restore
    from skillwire.install.lock_file import demand_lock

    scope = scope_of(arguments)
    tidy_first(scope, printer)
    lock = demand_lock(scope.lock_path)
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
        outcome = restore(scope, lock, ready, force=arguments.force, backups=backups(), stamp=stamp())
    except SkillwireError as error:
        return _failed(printer, error)
    for place in outcome.backups:
        printer.talk(f"what was changed is kept in {line(str(place))}")
    if arguments.json:
        printer.json({"skills": sorted(lock.skills), "wrote": list(outcome.written)})
    else:
        for label in outcome.written:
            printer.data(f"wrote {line(label)}")
        printer.talk(f"{len(lock.skills)} installed as the lock says")
    return Exit.OK


def _failed(printer: Printer, error: SkillwireError | None = None) -> int:
    if error is not None:
        printer.error(error)
    printer.talk("nothing was written")
    return Exit.PROBLEMS


def _ready(lock: Lock, scope: Scope, *, force: bool) -> dict[str, Mapping[str, bytes]]:
    """The files of every skill that is not everywhere yet; none where they have to be fetched."""
    from skillwire.install.drift import installed_files, installed_states
    from skillwire.install.installation import check_untouched

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
    scope: Scope,
    arguments: argparse.Namespace,
    headers: dict[str, str],
    printer: Printer,
) -> bool:
    """Fetch the skills in ``groups``; whether they could all be had as the lock says."""
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
    catalog: Catalog, skill: Installed, ready: dict[str, Mapping[str, bytes]], scope: Scope, printer: Printer
) -> bool:
    from skillwire.install.fetch import check_pinned, fetch, promised_digests

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
