"""``skillwire add``: installs a skill for agents: verified, shown before it is written, recorded in a lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import COMMAND, Arguments, Exit, Verbs, add_verb
from skillwire.cli.consent import allow, server_record
from skillwire.cli.install_session import (
    add_agent_options,
    add_scope_options,
    add_signing_option,
    check_signing,
    naming,
    require_approval,
    scope_of,
    show_outcome,
    show_skill,
    signature,
    tidy_first,
)
from skillwire.cli.printer import Printer, line, listed
from skillwire.cli.prompts import can_ask, choose
from skillwire.cli.targets import SKILL_HELP, TARGET_HELP, add_target_options, run_on_targets
from skillwire.errors import FormatError, SkillwireError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.install.lock import Mode, Server
    from skillwire.install.places import InstallScope
    from skillwire.skill import SkillEntry

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire add https://skills.example.com/mcp refunds --agent claude-code
  skillwire add my-server refunds release --agent codex --agent cursor --global
  skillwire add refunds --agent claude-code --link -- npx some-mcp-server
  skillwire add ./skills refunds --agent-dir ./tools/skills --yes     in a script

Every file is read, verified and shown before the question, and exactly these bytes are written. An agent trusts
everything in its own folder.

exit codes: 0 all were added, 1 something was refused or skipped, 2 usage, or no response
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "add",
        run,
        "install a skill for an agent, verified",
        "Show everything about a skill, ask, and write it into the folders of the agents that you name."
        " skills.lock.json records its source and the digest of every file.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("skills", metavar="SKILL", nargs="+", help=SKILL_HELP)
    add_agent_options(parser)
    add_scope_options(parser)
    modes = parser.add_mutually_exclusive_group()
    for mode, words in (
        ("copy", "write the files into the folder of each agent (the default)"),
        ("link", "write one copy into .agents/skills, and a link to it into the folder of each agent"),
    ):
        modes.add_argument(f"--{mode}", action="store_const", const=mode, dest="mode", help=words)
    parser.set_defaults(mode="copy")
    add_signing_option(parser)
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Add skills."""
    from skillwire.install.agents import find_agent

    check_signing(arguments)
    for agent in arguments.agent:
        find_agent(agent)
    if not arguments.agent and not arguments.agent_dir and not can_ask():
        raise FormatError("agent-missing", "no agent was given", "name one: --agent claude-code")
    server = _server(arguments, scope_of(arguments))  # fails before any question if it cannot be recorded
    with naming(server):
        return run_on_targets(arguments, printer, _add)


async def _add(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    scope = scope_of(arguments)
    server, agents = _server(arguments, scope), await _agents(arguments, scope, printer)
    tidy_first(scope, printer, agents)
    added: list[dict[str, Any]] = []
    refused: list[dict[str, str]] = []
    for text in dict.fromkeys(arguments.skills):
        try:
            added.append(await _add_one(catalog, text, (scope, server, agents), arguments, printer))
        except SkillwireError as error:
            printer.error(error)
            refused.append({"skill": text, "reference": error.reference, "message": error.message})
    if arguments.json:
        printer.json({"added": added, "refused": refused})
    return Exit.PROBLEMS if refused else Exit.OK


async def _add_one(
    catalog: Catalog,
    text: str,
    destination: tuple[InstallScope, Server, dict[str, Mode]],
    arguments: Arguments,
    printer: Printer,
) -> dict[str, Any]:
    from skillwire.catalog.names import find_skill  # late: it imports anyio
    from skillwire.install.installation import add, check_add, fetch, promised_digests
    from skillwire.install.lock import Lock, read_lock
    from skillwire.install.servers import needs_consent

    scope, server, agents = destination
    entry = await find_skill(catalog, text)
    promised_digests(entry)
    lock = read_lock(scope.lock_path) or Lock()
    check_add(lock, scope, server, entry, agents, signature(arguments))
    if _is_installed(lock, scope, entry, agents):
        printer.talk(f"{line(text)} is already installed with this content")
        return {"uri": entry.uri, "wrote": []}
    with printer.progress("Reading", "files") as count:
        fetched = await fetch(catalog, entry, on_file=count)
    show_skill(fetched, server, printer)
    labels = [place.label for place in scope.layout(agents).places]
    question = f"Install it into {listed(labels)}, for {listed(agents)}?"
    await require_approval(question, arguments, printer)
    outcome = add(scope, fetched, server, agents, signature(arguments))
    foreign = needs_consent(server, scope)
    if foreign is not None:
        allow(server_record(*foreign))  # the user chose this server, so update does not ask about it again
    if not arguments.json:
        show_outcome(outcome, fetched.name, printer)
    return {"uri": entry.uri, "wrote": [f"{label}/{fetched.name}" for label in outcome.written]}


def _is_installed(lock: Any, scope: InstallScope, entry: SkillEntry, agents: dict[str, Mode]) -> bool:
    from skillwire.install.installation import promised_digests
    from skillwire.install.places import installed_states

    known = lock.skills.get(entry.path.rpartition("/")[2])
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
    keys = [*arguments.agent, *(scope.key_of(folder) for folder in arguments.agent_dir)]
    mode: Mode = arguments.mode
    return dict.fromkeys(keys or await _ask_for_agents(scope, printer), mode)


async def _ask_for_agents(scope: InstallScope, printer: Printer) -> list[str]:
    """Offer the agents on this machine. None is used without being chosen."""
    from skillwire.install.agents import present_agents

    agents = present_agents(scope.project, scope.home, os.environ)
    offered = {agent.id: f"{agent.title}: {_place_text(agent.id, scope)}" for agent in agents}
    found = await choose("For which agents? Numbers: ", offered, printer)
    if not found:
        raise FormatError(
            "agent-missing", "no agent was chosen", "name one: --agent claude-code, or --agent-dir FOLDER"
        )
    return found


def _place_text(agent: str, scope: InstallScope) -> str:
    try:
        return scope.place_of(agent).label
    except SkillwireError as error:
        return f"not usable: {line(error.message)}"
