"""``skillwire update``: updates installed skills after the user has seen the changes (A2, V3).

``--check`` only compares the digests in the lock with the entries of the servers. It reads no files. Of a version
of a registry it asks by its own URI whether it was yanked.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from skillwire.cli.command import Arguments, Exit, again, argument, flag, run_async, verb
from skillwire.cli.diff import print_difference
from skillwire.cli.host_session import BY
from skillwire.cli.install_session import (
    FORCE,
    LOCK_OPTIONS,
    backups,
    recover_first,
    require_answer,
    require_approval,
    scope_of,
    server_text,
    show_outcome,
    show_skill,
    signature,
    visit_installed,
)
from skillwire.cli.printer import Printer, counted, cut_line, line, listed
from skillwire.cli.prompts import withdrawn
from skillwire.errors import NotFoundError, SkillwireError, VerificationError
from skillwire.skill.version_status import UNVERSIONED, VersionStatus, version_status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.install.installation import Fetched
    from skillwire.install.lock import Installed, Lock
    from skillwire.install.places import InstallScope
    from skillwire.skill import SkillEntry

_LONGEST = 300


@verb(
    "Get the current content of installed skills from the servers in skills.lock.json, show the changes, ask, and"
    " replace them in one step.",
    argument("skills", "[SKILL]…", "an installed skill (default: all)", nargs=-1),
    flag("--check", help="only show which skills have changed at their servers"),
    FORCE,
    flag("--yes", help="do not ask; the changes are still shown"),
    BY,
    *LOCK_OPTIONS,
    examples="""\
  skillwire update --check         show what has changed
  skillwire update                 update everything, with one question for each skill
  skillwire update refunds
  skillwire update refunds --force replace edited files; a copy is kept

exit codes: 0 everything is up to date, 1 something was refused or skipped (with --check: or has changed), 2 usage
(with --check: or a server did not respond)
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Update skills."""
    if arguments.check:
        return run_async(lambda: _check(arguments, printer))
    return run_async(lambda: _update(arguments, printer))


async def _check(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.installation import promised_digests
    from skillwire.install.lock import require_lock

    newest: dict[str, dict[str, str]] = {}  # the commits of each skill that comes from a repository
    versions: dict[str, _Versions] = {}

    async def state_of(catalog: Catalog, skill: Installed) -> str:
        if catalog.commit is not None:
            newest[skill.name] = {"commit": skill.commit or "", "newest": catalog.commit}
        entry = None
        try:
            entry = await catalog.get_skill(skill.uri)
            state = "current" if promised_digests(entry) == skill.files else "changed"
        except NotFoundError:
            state = "gone"
        except VerificationError:
            state = "unverifiable"
        versions[skill.name] = found = await _versions(catalog, skill, entry, state)
        return "yanked" if found.installed.yanked else state

    scope = scope_of(arguments)
    skills = _named_skills(require_lock(scope.lock_path), arguments.skills)
    found = await visit_installed(skills, state_of, scope, arguments, printer, on_error=printer.error)
    rows = list[dict[str, str]]()
    for skill in skills:
        state = found[skill.name]
        row = {
            "skill": skill.name,
            "state": "unreachable" if isinstance(state, SkillwireError) else state,
            "installed": skill.at,
            "from": server_text(skill.server),
        }
        rows.append({**row, **newest.get(skill.name, {}), **versions.get(skill.name, _Versions()).to_json()})
    printer.json({"skills": rows})
    late = [row for row in rows if row["state"] != "current"]
    if late:
        titles = ("skill", "state", "installed", "from")
        printer.table(titles, [(*(line(row[key]) for key in titles[:3]), _source(row)) for row in late])
    for name, each in versions.items():
        for words in each.lines():
            printer.talk(f"{line(name)}: {words}")
    printer.talk(f"{len(rows) - len(late)} of {counted(len(rows), 'skill')} up to date")
    states = {row["state"] for row in rows}
    if "changed" in states or any(each.is_replaced for each in versions.values()):
        printer.talk(f"see the changes, and decide: {scope.command('update')}")
    if "unreachable" in states:
        return Exit.USAGE
    return Exit.PROBLEMS if states - {"current"} else Exit.OK


class _Versions(NamedTuple):
    """The installed version of a skill, and the one that its URI has now, as a registry states them."""

    installed: VersionStatus = UNVERSIONED
    now: VersionStatus = UNVERSIONED

    @property
    def is_replaced(self) -> bool:
        """Whether ``update`` gets another version."""
        return bool(self.now.number) and self.now.number != self.installed.number

    def to_json(self) -> dict[str, str]:
        """What is stated, as JSON."""
        stated = {
            "version": self.installed.number,
            "current": self.now.number,
            "yanked": self.installed.yanked,
            "deprecated": self.now.deprecated or self.installed.deprecated,
            "instead": self.now.instead or self.installed.instead,
        }
        return {key: value for key, value in stated.items() if value}

    def lines(self) -> Iterator[str]:
        """Tell what has changed, and what was withdrawn."""
        before, after = (cut_line(each.number, _LONGEST) for each in self)
        if self.installed.yanked:
            if self.is_replaced:
                then = f"the current version is {after}"
            else:
                then = "exactly this version was installed" if after else "no version replaces it"
            yield f"version {before} was yanked: {cut_line(self.installed.yanked, _LONGEST)}; {then}"
        elif before and self.is_replaced:
            yield f"version {before} is installed, and {after} is the current one"
        skill = self.now if self.now.deprecated else self.installed
        yield from withdrawn(skill._replace(yanked=""))


async def _versions(catalog: Catalog, skill: Installed, entry: SkillEntry | None, state: str) -> _Versions:
    """Ask the registry about the installed version, which is not the one that the skill's URI has any more."""
    from skillwire.install.installation import promised_digests

    now = UNVERSIONED if entry is None else version_status(entry)
    if state == "current":
        return _Versions(now, now)
    installed = VersionStatus(skill.version.number)
    if skill.version.uri:
        with suppress(NotFoundError, VerificationError):
            exact = await catalog.get_skill(skill.version.uri)
            if promised_digests(exact) == skill.files:  # else it is about other content
                installed = version_status(exact)._replace(number=skill.version.number)
    return _Versions(installed, now)


def _source(row: dict[str, str]) -> str:
    """Return the place of a server, and of a repository also the installed and the newest commit."""
    commits = f" ({row['commit'][:7]} → {row['newest'][:7]})" if "newest" in row else ""
    return line(row["from"]) + commits


async def _update(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.lock import require_lock

    scope = scope_of(arguments)
    recover_first(scope, printer)

    async def visit(catalog: Catalog, skill: Installed) -> str:
        return await _update_one(catalog, skill, scope, arguments, printer)

    skills = _named_skills(require_lock(scope.lock_path), arguments.skills)
    found = await visit_installed(skills, visit, scope, arguments, printer, on_error=printer.error)
    refused = {
        name: {"state": "refused", "reference": state.reference}
        for name, state in found.items()
        if isinstance(state, SkillwireError)
    }
    printer.json(
        {"skills": [{"skill": name, **refused.get(name, {"state": state})} for name, state in found.items()]}
    )
    return Exit.PROBLEMS if refused else Exit.OK


def _named_skills(lock: Lock, names: Sequence[str]) -> list[Installed]:
    """Return the installed skills with these names, or all."""
    from skillwire.install.installation import require_skill

    return [require_skill(lock, name) for name in dict.fromkeys(names or sorted(lock.skills))]


async def _update_one(
    catalog: Catalog, skill: Installed, scope: InstallScope, arguments: Arguments, printer: Printer
) -> str:
    from skillwire.install.installation import fetch, promised_digests, record_place, recorded_version, update

    entry = await _current_entry(catalog, skill, scope)
    if promised_digests(entry) == skill.files and _is_unchanged(skill, scope, force=arguments.force):
        commit, version = catalog.commit or skill.commit, recorded_version(entry)
        if (commit, version) != (skill.commit, skill.version):
            record_place(scope, skill, commit, version)
        printer.talk(f"{line(skill.name)} is up to date")
        for words in withdrawn(version_status(entry)):
            printer.talk(f"{line(skill.name)}: {words}")
        return "current"
    with printer.progress("Reading", "files") as count:
        fetched = await fetch(catalog, entry, on_file=count)
    show_skill(fetched, skill.server, printer, with_source=False)
    _show_difference(skill, fetched, scope, printer)
    require_answer(arguments, f"review the changes above; then: {again(arguments, '--yes')}", rule="A1")
    await require_approval(f"Replace {line(skill.name)} for {listed(skill.agents)}?", arguments, printer)
    outcome = update(scope, skill, fetched, signature(arguments), backups(force=arguments.force))
    show_outcome(outcome, skill.name, printer)
    return "updated"


async def _current_entry(catalog: Catalog, skill: Installed, scope: InstallScope) -> SkillEntry:
    try:
        return await catalog.get_skill(skill.uri)
    except NotFoundError as error:
        where = server_text(skill.server)
        raise NotFoundError(
            "skill-gone",
            f"{skill.name!r:.100} is not served any more: {where!r:.200} has no {skill.uri!r:.200}",
            f"nothing was changed; to remove it: {scope.command('remove', skill.name)}",
        ) from error


def _is_unchanged(skill: Installed, scope: InstallScope, *, force: bool) -> bool:
    """Return whether every folder matches the lock; raise ``VerificationError`` if not, unless forced."""
    from skillwire.install.places import installed_states

    drifted = [state for state in installed_states(scope, skill) if state.state != "ok"]
    for state in drifted:
        if not force:
            raise VerificationError(
                "skill-drifted",
                f"{skill.name!r:.100} in {state.place.label!r:.200} does not match the lock: {state.details[0]}",
                f"restore missing files: {scope.command('add', '--locked')}; or replace edited files and keep a"
                f" copy: {scope.command('update', skill.name, '--force')}",
                rule="V1",
            )
    return not drifted


def _show_difference(skill: Installed, fetched: Fetched, scope: InstallScope, printer: Printer) -> None:
    from skillwire.catalog.diff import SkillDifference, content_differences
    from skillwire.install.places import installed_files

    old = installed_files(scope, skill)
    if old is None:
        printer.talk("the changes cannot be shown: no folder matches the lock")
        return
    files = tuple(content_differences(old, fetched.files))
    print_difference(SkillDifference(fetched.entry.path, "changed", files), printer.talk)
