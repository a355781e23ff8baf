"""``skillwire add``: installs skills for agents: verified, shown before they are written, recorded in a lock.

``--to DIR`` only copies a skill into a folder. ``--locked`` installs exactly the content of the lock (V1, V3).
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import (
    COMMAND,
    FILE,
    Arguments,
    Exit,
    TargetPlace,
    again,
    argument,
    flag,
    option,
    run_async,
    verb,
)
from skillwire.cli.consent import allow, server_record
from skillwire.cli.host_session import BY
from skillwire.cli.install_session import (
    AGENT,
    AGENT_DIR,
    SCOPE,
    backups,
    prefix_errors,
    recover_first,
    require_approval,
    require_review,
    scope_of,
    show_backups,
    show_outcome,
    show_skill,
    signature,
    visit_installed,
)
from skillwire.cli.printer import Printer, counted, line, listed, shortened, size_of, visible
from skillwire.cli.prompts import can_ask, choose
from skillwire.cli.targets import TARGET_OPTIONS, print_problems, resolve_skill, run_on_targets, target_text
from skillwire.errors import FormatError, NotFoundError, SkillwireError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.install.lock import Installed, Lock, Mode, Server
    from skillwire.install.places import InstallScope
    from skillwire.skill import SkillEntry

_LONGEST = 80


@verb(
    "Show everything about a skill, ask, and write it into the folders of the agents that you name."
    " skills.lock.json records its source and the digest of every file.",
    argument(
        "target", "TARGET", "where the skill is: see 'skillwire list --help'", type=TargetPlace(), required=False
    ),
    argument("skills", "[SKILL]…", "a name, a path or a URI (default: choose from a list)", nargs=-1),
    flag("--all", "is_all", help="all skills of TARGET"),
    AGENT,
    AGENT_DIR,
    SCOPE,
    option(
        "--copy/--link",
        "is_copy",
        default=True,
        help="write the files to the folder of each agent (the default), or one copy to .agents/skills, and links",
    ),
    option("--to", type=FILE, metavar="DIR", help="only copy the skills to DIR, without a lock"),
    flag("--locked", help="install exactly the content of skills.lock.json, or nothing; it takes no TARGET"),
    flag(
        "--force", help="with --to and --locked: replace existing files; a copy of edited installed files is kept"
    ),
    flag("--allow-servers", help="with --locked: use the programs and servers that the project's lock names"),
    BY,
    *TARGET_OPTIONS,
    targets=1,
    examples="""\
  skillwire add https://skills.example.com/mcp refunds --agent claude-code
  skillwire add acme/skills@v1 --agent claude-code                     choose from a Git repository
  skillwire add my-server refunds release --agent codex --agent cursor --global
  skillwire add refunds --agent claude-code --link -- npx some-mcp-server
  skillwire add ./skills refunds --agent-dir ./tools/skills --yes     in a script
  skillwire add https://skills.example.com/mcp refunds --to ./skills  make ./skills/refunds
  skillwire add --locked                                              in CI

Every file is read, verified and shown before the question, and exactly these bytes are written. An agent trusts
everything in its own folder. --locked needs no approval: the lock records what was approved. If any byte differs,
nothing is written. A folder in a project's lock that belongs to no known agent is used only after you named it on
this machine with --agent-dir.

exit codes: 0 all were added, 1 something was refused or skipped, 2 usage, or no response
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Add skills."""
    from skillwire.install.agents import find_agent

    if arguments.locked:
        if arguments.target is not None or arguments.skills:
            raise FormatError(
                "argument-invalid", "--locked installs the whole lock, and takes no TARGET", "omit the TARGET"
            )
        return run_async(lambda: _add_locked(arguments, printer))
    if arguments.target is None:
        raise FormatError(
            "target-missing", "no TARGET was given", "write: skillwire add ./skills NAME --agent AGENT"
        )
    if not arguments.skills and not arguments.is_all and not can_ask():
        raise FormatError(
            "skill-missing",
            "no skill was named",
            f"see the names: skillwire list {target_text(arguments)}; or add all: {again(arguments, '--all')}",
        )
    if arguments.to is not None:
        return run_on_targets(arguments, printer, _copy)
    for agent in arguments.agent:
        find_agent(agent)
    if not arguments.agent and not arguments.agent_dir and not can_ask():
        hint = f"name it, for example: {again(arguments, '--agent', 'claude-code')}"
        raise FormatError("agent-missing", "no agent was given", hint)
    words = [target_text(arguments), *map(shlex.quote, arguments.skills[:1])]
    if arguments.target == COMMAND:
        words.reverse()  # a command is the end of a line
    require_review(arguments, " ".join(["skillwire", "read" if arguments.skills else "list", *words]))
    server = _server(arguments, scope_of(arguments))  # fails before any question if it cannot be recorded
    with prefix_errors(server):
        return run_on_targets(arguments, printer, _add)


async def _wanted(catalog: Catalog, arguments: Arguments, printer: Printer) -> list[str]:
    """Return the skills to add: those that were named, all, or those that the user chooses."""
    if arguments.skills:
        return list(dict.fromkeys(arguments.skills))
    entries = [entry async for entry in catalog.entries()]
    print_problems((each for each in await catalog.problems() if each.refuses), printer)
    if not entries:
        raise NotFoundError(
            "skills-missing",
            f"no skills in {target_text(arguments)}",
            "a skill is a folder with a file named SKILL.md",
        )
    if arguments.is_all:
        printer.talk(f"{counted(len(entries), 'skill')}: {listed(entry.path for entry in entries)}")
        return [entry.uri for entry in entries]
    printer.talk(f"{counted(len(entries), 'skill')} in {target_text(arguments)}:")
    offered = {entry.uri: f"{entry.path}: {shortened(entry.description, _LONGEST)}" for entry in entries}
    found = await choose("Which skills? Numbers: ", offered, printer, names=False)
    if not found:
        raise FormatError("skill-missing", "no skill was chosen", "name one after the TARGET, or add --all")
    return found


async def _copy(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    """Copy skills into a folder, each verified, completely or not at all."""
    from skillwire.catalog.export import export_skill

    copied: list[dict[str, Any]] = []
    for text in await _wanted(catalog, arguments, printer):
        entry = await resolve_skill(catalog, text, place=target_text(arguments))
        with printer.progress("Reading", "files") as count:
            written = await export_skill(catalog, entry, arguments.to, replace=arguments.force, on_file=count)
        folder, files, size = str(written.folder), list(written.files), written.size
        copied.append({"uri": entry.uri, "folder": folder, "files": files, "size": size})
        printer.talk(
            f"wrote {visible(folder)}: {counted(len(files), 'file')}, {size_of(size)}, verified against"
            f" {visible(entry.uri)} (this proves consistency, not trust)"
        )
    printer.json({"copied": copied})
    return Exit.OK


async def _add(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    scope = scope_of(arguments)
    server, agents = _server(arguments, scope), await _agents(arguments, scope, printer)
    wanted = await _wanted(catalog, arguments, printer)
    recover_first(scope, printer, agents)
    added: list[dict[str, Any]] = []
    refused: list[dict[str, str]] = []
    for text in wanted:
        try:
            added.append(await _add_one(catalog, text, (scope, server, agents), arguments, printer))
        except SkillwireError as error:
            printer.error(error)
            refused.append({"skill": text, "reference": error.reference, "message": error.message})
    printer.json({"added": added, "refused": refused})
    return Exit.PROBLEMS if refused else Exit.OK


async def _add_one(
    catalog: Catalog,
    text: str,
    destination: tuple[InstallScope, Server, dict[str, Mode]],
    arguments: Arguments,
    printer: Printer,
) -> dict[str, Any]:
    from skillwire.install.installation import add, check_add, fetch, promised_digests
    from skillwire.install.lock import Lock, read_lock
    from skillwire.install.servers import needs_consent

    scope, server, agents = destination
    entry = await resolve_skill(catalog, text, place=target_text(arguments))
    promised_digests(entry)
    lock = read_lock(scope.lock_path) or Lock()
    check_add(lock, scope, server, entry, agents, signature(arguments))
    if _is_installed(lock, scope, entry, agents):
        printer.talk(f"{line(text)} is already installed with this content")
        return {"uri": entry.uri, "wrote": []}
    with printer.progress("Reading", "files") as count:
        fetched = await fetch(catalog, entry, on_file=count)
    show_skill(fetched, server, printer, with_source=not arguments.yes)  # with --yes, the user has read it
    labels = [place.label for place in scope.layout(agents).places]
    question = f"Install it into {listed(labels)}, for {listed(agents)}?"
    await require_approval(question, arguments, printer)
    outcome = add(scope, fetched, server, agents, signature(arguments))
    foreign = needs_consent(server, scope)
    if foreign is not None:
        allow(server_record(*foreign))  # the user chose this server, so update does not ask about it again
    show_outcome(outcome, fetched.name, printer)
    return {"uri": entry.uri, "wrote": [f"{label}/{fetched.name}" for label in outcome.written]}


def _is_installed(lock: Lock, scope: InstallScope, entry: SkillEntry, agents: dict[str, Mode]) -> bool:
    from skillwire.install.installation import promised_digests
    from skillwire.install.places import installed_states

    known = lock.skills.get(entry.folder_name)
    return (
        known is not None
        and known.files == promised_digests(entry)
        and agents.keys() <= known.agents.keys()
        and all(state.state == "ok" for state in installed_states(scope, known))
    )


def _server(arguments: Arguments, scope: InstallScope) -> Server:
    from skillwire.install.servers import describe_server

    return describe_server(
        arguments.commands[0] if arguments.target == COMMAND else arguments.target,
        scope,
        config=arguments.config,
        dialect=arguments.dialect,
        era=None if arguments.era == "auto" else arguments.era,
    )


async def _agents(arguments: Arguments, scope: InstallScope, printer: Printer) -> dict[str, Mode]:
    """Return the agents that were named, or that the user chooses; never others."""
    keys = [*arguments.agent, *(scope.key_of(folder) for folder in arguments.agent_dir)]
    if not keys:
        from skillwire.install.agents import AGENTS, present_agents

        agents = list(present_agents(scope.project, scope.home, os.environ))
        if not agents:  # a new project in a new account: all that are known
            agents = list(AGENTS.values())
        offered = {agent.id: f"{agent.title}: {_place_text(agent.id, scope)}" for agent in agents}
        keys = await choose("For which agents? Numbers: ", offered, printer)
        if not keys:
            raise FormatError(
                "agent-missing", "no agent was chosen", "name one: --agent claude-code, or --agent-dir FOLDER"
            )
    return dict.fromkeys(keys, "copy" if arguments.is_copy else "link")


def _place_text(agent: str, scope: InstallScope) -> str:
    try:
        return scope.place_of(agent).label
    except SkillwireError as error:
        return f"not usable: {line(error.message)}"


async def _add_locked(arguments: Arguments, printer: Printer) -> int:
    """Install exactly the content of the lock into every folder, or nothing."""
    from skillwire.install.installation import check_pinned, check_untouched, fetch, promised_digests, restore
    from skillwire.install.lock import require_lock
    from skillwire.install.places import installed_files, installed_states

    scope = scope_of(arguments)
    recover_first(scope, printer)
    lock = require_lock(scope.lock_path)
    try:
        if not arguments.force:
            check_untouched(scope, lock)
        ready: dict[str, Mapping[str, bytes]] = {  # missing somewhere; {} if no folder has all files
            skill.name: installed_files(scope, skill) or {}
            for skill in lock.skills.values()
            if any(state.state != "ok" for state in installed_states(scope, skill))
        }
    except SkillwireError as error:
        return _nothing_written([error], printer)

    async def fetch_pinned(catalog: Catalog, skill: Installed) -> None:
        entry = await catalog.get_skill(skill.uri)
        check_pinned(skill, promised_digests(entry), scope)
        fetched = await fetch(catalog, entry)
        check_pinned(skill, fetched.digests, scope)
        ready[skill.name] = fetched.files

    missing, errors = [lock.skills[name] for name, files in ready.items() if not files], list[SkillwireError]()
    await visit_installed(missing, fetch_pinned, scope, arguments, printer, on_error=errors.append, at_commit=True)
    if errors:
        return _nothing_written(errors, printer)
    try:
        outcome = restore(scope, lock, ready, backups(force=arguments.force))
    except SkillwireError as error:
        return _nothing_written([error], printer)
    show_backups(outcome, printer)
    printer.result(
        {"skills": sorted(lock.skills), "wrote": list(outcome.written)},
        *(f"wrote {line(label)}" for label in outcome.written),
    )
    printer.talk(f"{counted(len(lock.skills), 'skill')} installed; all folders match the lock")
    return Exit.OK


def _nothing_written(errors: Sequence[SkillwireError], printer: Printer) -> int:
    for error in errors[1:]:
        printer.error(error)
    printer.failure(errors[0])
    printer.talk("nothing was written")
    return Exit.PROBLEMS
