"""``skillwire load``: loads a skill like an agent: approved, fetched, verified, in its block (W1, O2)."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

from skillwire.cli.command import Arguments, Exit, flag, option, repeated, verb
from skillwire.cli.host_session import HOST_OPTIONS, NAME, find_skill, host_words, run_with_host, state_of
from skillwire.cli.printer import Printer, visible
from skillwire.cli.prompts import approve_once, ask_on_terminal, ask_through_store, can_ask, no_terminal
from skillwire.errors import FormatError, SkillwireError

if TYPE_CHECKING:
    from skillwire.host.approvals import Ask
    from skillwire.host.host import SkillHost

_AWAY = ("server-away", "connection-lost", "timed-out", "not-connected", "not-allowed", "not-mcp", "server-failed")


@verb(
    "Load a skill like an agent, and write the block for the model to stdout. A skill without approval needs an"
    " answer on the terminal, or from the place that --ask names; otherwise it is refused.",
    NAME,
    flag("--yes", help="load it this time without asking; no approval is stored"),
    option(
        "--ask",
        type=click.Choice(["terminal", "desk", "never"]),
        help="where to ask: on this terminal, at the desk (skillwire ui, skillwire approvals questions), or not at"
        " all (default: the terminal, if there is one)",
    ),
    flag("--dynamic", help="ask about a skill that cannot be verified, instead of refusing it; never stored"),
    repeated("--argument", metavar="NAME=TEXT", help="an argument for the skill (repeatable)"),
    *HOST_OPTIONS,
    examples="""\
  skillwire load refunds                 ask on the terminal if it is not approved yet
  skillwire load acme:refunds > block    load it only if it is approved
  skillwire load refunds --yes           load it this time without asking; approve and grant nothing
  skillwire load refunds --ask desk      wait for an answer from 'skillwire ui'

exit codes: 0 loaded, 1 refused, 2 usage, unknown skill, or not reachable
""",
)
def command(arguments: Arguments, printer: Printer) -> int | None:
    """Load a skill."""
    if arguments.yes and arguments.ask is not None:
        raise FormatError("argument-invalid", "--yes and --ask exclude each other", "omit one of them")
    from skillwire.host.approvals import Policy, Rule

    # V7: a skill that cannot be verified is refused, unless the user wants to be asked.
    policy = Policy([Rule("ask", kind="dynamic")] if arguments.dynamic else [])
    return run_with_host(arguments, printer, _load, ask=_ask(arguments, printer), policy=policy)


def _ask(arguments: Arguments, printer: Printer) -> Ask | None:
    if arguments.yes:
        return approve_once(printer)
    if arguments.ask == "desk":
        options = "" if arguments.state is None else f" --state {shlex.quote(str(arguments.state))}"
        return ask_through_store(printer, state_of(arguments), "skillwire load", options)
    if arguments.ask == "terminal" and not can_ask():
        raise no_terminal("ask at the desk: --ask desk")
    is_here = can_ask() and arguments.ask != "never"
    return ask_on_terminal(printer, host_words(arguments)) if is_here else None


def _given(pairs: list[str]) -> dict[str, str]:
    """P2: parse the arguments for the skill."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise FormatError("argument-invalid", f"{pair!r:.80} is not NAME=TEXT", "write --argument city=Bern")
        given[name] = text
    return given


async def _load(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.results import Refusal

    found = await find_skill(host, arguments, printer, whole=False)  # V5: nothing is read before the approval
    outcome = await host.load_skill(arguments.name, arguments=_given(arguments.argument))
    if isinstance(outcome, Refusal):
        fields = {"reference": outcome.reference, "rule": outcome.rule, "message": outcome.message}
        printer.json({"refused": {**fields, "hint": outcome.hint, "forModel": outcome.for_model}})
        hint = outcome.hint
        if outcome.missing:
            hint = "add: " + " ".join(f"--argument {shlex.quote(name)}=TEXT" for name in outcome.missing)
        if outcome.reference in ("cannot-ask", "skill-declined"):  # the command must select the same host
            hint = " ".join([hint, *map(shlex.quote, host_words(arguments))])
        printer.error(SkillwireError(outcome.reference, outcome.message, hint, rule=outcome.rule))
        if outcome.rule == "V7" and not arguments.dynamic:
            printer.talk("it cannot be verified; to be asked about it, add --dynamic")
        return Exit.USAGE if outcome.reference in _AWAY else Exit.PROBLEMS
    fields = {"name": outcome.name, "origin": outcome.origin, "uri": outcome.uri}
    printer.json({**fields, "offline": outcome.offline, "text": outcome.text})
    if sys.stdout.isatty():
        printer.data(visible(outcome.text))
    elif not arguments.json:
        sys.stdout.write(outcome.text + "\n")  # the exact text for the model
    if outcome.offline:
        printer.talk(f"read from the cache: {found.origin.label} is not reachable")
    return Exit.OK
