"""``skillwire revoke``: take an approval back, with all that was granted. Needs no server (A2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.deciding import add_decision_options, check_decision
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import add_state_options, line, listed, run_with_store, system_user
from skillwire.cli.parsing import add_verb
from skillwire.errors import NotFoundError, OriginError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

_EXAMPLES = """\
examples:
  skillwire revoke refunds
  skillwire revoke acme:billing/refunds --by anna --note 'asks for too much'
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "revoke",
        "take an approval back",
        "Take an approval and its grants back. No server is asked: it works for one that is away, too.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help="a name, origin:name, origin:path, a URI or origin:URI")
    add_decision_options(parser, "takes it back")
    add_state_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Revoke."""
    check_decision(arguments)
    return run_with_store(arguments, printer, _revoke)


async def _revoke(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.host.approvals import ASKED_TO, Approvals, Policy, cannot_ask

    found = _find(await store.approvals(), arguments.name)
    approvals = Approvals(store, Policy(), cannot_ask)
    await approvals.revoke(
        found.origin, found.uri, by=arguments.by, why=ASKED_TO, note=arguments.note, user=system_user()
    )
    if arguments.json:
        printer.json({"origin": found.origin, "uri": found.uri, "fingerprint": found.fingerprint})
    else:
        printer.data(f"revoked {line(found.uri)} from {line(found.origin)}")
        if found.grants:
            printer.data(f"with what was granted: {listed(sorted(found.grants))}")
    return Exit.OK


def _find(approvals: Sequence[Approval], name: str) -> Approval:
    found = [approval for approval in approvals if name in _names(approval)]
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(f"{approval.origin}:{approval.uri}" for approval in found)
        raise OriginError(
            "name-ambiguous", f"{name!r:.100} could be {candidates:.500}", "use one of these", rule="N1"
        )
    raise NotFoundError(
        "approval-unknown", f"no approved skill is called {name!r:.100}", "see skillwire approvals"
    )


def _names(approval: Approval) -> set[str]:
    """Whatever a host would call the skill; its name is the last part of its path (U3)."""
    from skillwire.skill.uri import parse_uri, skill_root

    path, label = skill_root(parse_uri(approval.uri)).path, approval.origin
    name = path.rpartition("/")[2]
    return {name, f"{label}:{name}", f"{label}:{path}", approval.uri, f"{label}:{approval.uri}"}
