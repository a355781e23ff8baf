"""``skillwire load``: a skill as an agent would load it: approved, fetched, verified, in its block (W1, O2)."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import NAME_HELP, add_host_options, find_skill, host_words, run_with_host, state_of
from skillwire.cli.parsing import add_verb
from skillwire.cli.prompts import ask_elsewhere, ask_on_terminal, can_ask, say_yes
from skillwire.errors import FormatError, SkillwireError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.host.approvals import Ask, Policy
    from skillwire.host.host import Host
    from skillwire.host.results import LoadedSkill, Refusal

_EXAMPLES = """\
examples:
  skillwire load refunds                 asks on a terminal, if it is not approved yet
  skillwire load acme:refunds > block    loads what was approved before; refuses anything else
  skillwire load refunds --yes           loads it this time without asking; approves and grants nothing
  skillwire load refunds --ask desk      waits until somebody answers: skillwire ui, skillwire questions

exit codes: 0 loaded, 1 refused, 2 usage, unknown, or not to be reached
"""
_AWAY = ("origin-away", "connection-lost", "timed-out", "not-connected", "not-allowed", "not-mcp", "server-failed")


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "load",
        "load a skill as an agent would",
        "Load a skill as an agent would, and write the block that the model would get to stdout. What was not"
        " approved before is asked about on a terminal, or where --ask says, and refused without one.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--yes", action="store_true", help="load it this time without asking; nothing is approved")
    who.add_argument(
        "--ask",
        choices=("terminal", "desk", "nobody"),
        help="who is asked: whoever is here, whoever looks at the questions elsewhere, or nobody"
        " (default: the terminal, if there is one)",
    )
    parser.add_argument(
        "--dynamic",
        action="store_true",
        help="do not decline a skill about which nothing can be verified, but ask; never remembered",
    )
    parser.add_argument(
        "--argument",
        action="append",
        default=[],
        metavar="NAME=TEXT",
        help="for a skill that needs arguments; may be given several times",
    )
    add_host_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Load."""
    return run_with_host(
        arguments, printer, _load, ask=_ask(arguments, printer), policy=_policy(dynamic=arguments.dynamic)
    )


def _ask(arguments: argparse.Namespace, printer: Printer) -> Ask | None:
    if arguments.yes:
        return say_yes(printer)
    if arguments.ask == "desk":
        options = "" if arguments.state is None else f" --state {shlex.quote(str(arguments.state))}"
        return ask_elsewhere(printer, state_of(arguments), "skillwire load", options)
    if arguments.ask == "terminal" and not can_ask():
        raise FormatError("no-terminal", "there is no terminal to ask on", "ask elsewhere: --ask desk")
    is_here = can_ask() and arguments.ask != "nobody"
    return ask_on_terminal(printer, host_words(arguments)) if is_here else None


def _policy(*, dynamic: bool) -> Policy:
    """V7: what cannot be verified is declined, unless the person chose to be asked about it."""
    from skillwire.host.approvals import Policy, Rule

    return Policy([Rule("ask", kind="dynamic")] if dynamic else [])


def _given(pairs: list[str]) -> dict[str, str]:
    """P2: the arguments for the skill."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise FormatError("argument-invalid", f"{pair!r:.80} is not NAME=TEXT", "write --argument city=Bern")
        given[name] = text
    return given


async def _load(host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.host.results import Refusal

    found = await find_skill(host, arguments.name, printer, whole=False)  # V5: nothing is read before the yes
    outcome = await host.load_skill(arguments.name, arguments=_given(arguments.argument))
    if isinstance(outcome, Refusal):
        if arguments.json:
            printer.json({"refused": _refusal(outcome)})
        hint = outcome.hint
        if outcome.missing:
            hint = "give each: " + " ".join(f"--argument {shlex.quote(name)}=TEXT" for name in outcome.missing)
        if outcome.reference in ("cannot-ask", "skill-declined"):  # the command has to find the same skill
            hint = " ".join([hint, *map(shlex.quote, host_words(arguments))])
        printer.error(SkillwireError(outcome.reference, outcome.message, hint, rule=outcome.rule))
        if outcome.rule == "V7" and not arguments.dynamic:
            printer.talk("nothing about it can be verified; to be asked about it all the same: --dynamic")
        return Exit.USAGE if outcome.reference in _AWAY else Exit.PROBLEMS
    if arguments.json:
        printer.json(_document(outcome))
    else:
        _write(outcome.text, printer)
    if outcome.offline:
        printer.talk(f"read from the cache: {found.origin.label} cannot be reached now")
    return Exit.OK


def _refusal(refusal: Refusal) -> dict[str, Any]:
    return {
        "reference": refusal.reference,
        "rule": refusal.rule,
        "message": refusal.message,
        "hint": refusal.hint,
        "forModel": refusal.for_model,
    }


def _document(skill: LoadedSkill) -> dict[str, Any]:
    return {
        "name": skill.name,
        "origin": skill.origin,
        "uri": skill.uri,
        "offline": skill.offline,
        "text": skill.text,
    }


def _write(text: str, printer: Printer) -> None:
    """In a pipe the very words for the model; on a terminal with what would act on it spelled out."""
    from skillwire.cli.printer import visible

    if sys.stdout.isatty():
        printer.data(visible(text))
    else:
        sys.stdout.write(text + "\n")
