"""``skillwire questions``: what agents and gateways wait to be told, and the answer to one of them.

What is asked is shown as it is on the terminal of whoever loads a skill. Only the memory is needed: a question
about a skill of a server that nobody here knows can be answered too.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from skillwire.cli.deciding import add_decision_options, check_decision, require_fingerprint
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import (
    add_state_options,
    host_words,
    line,
    listed,
    moment,
    run_with_store,
    stamp,
    system_user,
)
from skillwire.cli.parsing import add_verb
from skillwire.cli.prompts import can_ask, confirm, meaning_of, page
from skillwire.errors import ApprovalError, FormatError, NotFoundError, OriginError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.store.contract import Question, Store

_EXAMPLES = """\
examples:
  skillwire questions                    who waits, and for what
  skillwire questions 3f2a               everything about one; the first letters of its id are enough
  skillwire questions 3f2a --yes --grant execute           shows it, then asks
  skillwire questions 3f2a --yes --fingerprint sha256:…    without a terminal: the one that was shown
  skillwire questions 3f2a --no --note 'not on this machine'

A yes to a skill is to exactly these files, and a no as well; both answer whoever else asks about them.

exit codes: 0 done, 1 whoever asked is gone, or has an answer, 2 usage, or no such question
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "questions",
        "show and answer what running agents and gateways ask",
        "Show what agents and gateways that run elsewhere wait to be told (such as skillwire load --ask desk), and"
        " answer one of them.",
        _EXAMPLES,
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="one question: show it, or answer it")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="say yes")
    answer.add_argument("--no", action="store_true", help="say no")
    parser.add_argument("--once", action="store_true", help="with --yes: only this time; it is not remembered")
    parser.add_argument(
        "--grant",
        action="append",
        default=[],
        metavar="TOOL",
        help="with --yes to a skill: also grant this tool, or 'execute' to let code run (repeatable)",
    )
    add_decision_options(parser, "answers", "with --yes: the content that was shown; needed without a terminal")
    add_state_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """List, show or answer."""
    check_decision(arguments, arguments.grant)
    is_answer = arguments.yes or arguments.no
    if is_answer and arguments.id is None:
        raise FormatError("argument-invalid", "an answer needs a question", "name one: skillwire questions")
    if (arguments.once or arguments.grant) and not arguments.yes:
        raise FormatError("argument-invalid", "--once and --grant go with --yes", "say yes, or leave them out")
    if arguments.id is None:
        return run_with_store(arguments, printer, _list)
    return run_with_store(arguments, printer, _answer if is_answer else _show)


async def _list(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted

    found = await store.questions(time.time())
    if arguments.json:
        printer.json({"questions": [_document(question) for question in found]})
        return Exit.OK
    rows = [
        (
            question.id,
            question.kind,
            line(question.origin),
            line(question.entry.uri.removesuffix("/SKILL.md")),
            line(question.target),
            line(question.by),
            moment(question.asked_at),
        )
        for question in found
    ]
    printer.table(("id", "kind", "origin", "skill", "about", "by", "since"), rows)
    printer.talk(f"{counted(len(found), 'question')} waiting" if found else "nobody waits for an answer")
    return Exit.OK


async def _show(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.host.desk import request_of

    question = _find(await store.questions(time.time()), arguments.id)
    if arguments.json:
        printer.json(_document(question))
        return Exit.OK
    printer.data(f"{line(question.by)} asks ({question.kind}): {line(question.target) or 'may it be read?'}")
    approval = await store.approval(question.origin, question.entry.uri)
    for each in page(request_of(question), approval):
        printer.data(each)
    if question.content:
        words = ["skillwire", "questions", question.id, "--yes", "--fingerprint", question.content]
        printer.talk(f"to approve exactly this: {shlex.join([*words, *host_words(arguments)])}")
    return Exit.OK


async def _answer(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.host.approvals import Answer
    from skillwire.host.desk import give_answer

    question = _find(await store.questions(time.time()), arguments.id)
    grants = frozenset[str](arguments.grant)
    if grants and question.kind != "load":
        raise FormatError("argument-invalid", "--grant goes with a yes to a skill", "leave it out")
    if arguments.yes:
        await _demand_look(store, question, arguments, printer)
    answer = Answer(
        arguments.yes,
        arguments.by,
        remember=not arguments.once,
        grants=grants,
        note=arguments.note,
        user=system_user(),
    )
    if not await give_answer(store, question, answer):
        raise ApprovalError(
            "question-gone",
            f"whoever asked {question.id} is gone, or has an answer",
            "see what is open: skillwire questions",
        )
    if arguments.json:
        printer.json({**_document(question), "yes": answer.yes, "grants": sorted(grants)})
        return Exit.OK
    printer.data(f"{'yes' if answer.yes else 'no'} to {line(question.by)}, about {line(question.entry.uri)}")
    if grants:
        printer.data(f"granted: {listed(sorted(grants))}")
    return Exit.OK


async def _demand_look(store: Store, question: Question, arguments: argparse.Namespace, printer: Printer) -> None:
    """Z4, as for ``approve``: on a terminal it is shown and asked; elsewhere its fingerprint is required."""
    from skillwire.host.desk import request_of

    words = ["skillwire", "questions", question.id, *host_words(arguments)]
    if arguments.fingerprint is not None or not can_ask():
        require_fingerprint(arguments.fingerprint, question.content, question.entry.uri, words)
    if not can_ask():
        return
    request, approval = request_of(question), await store.approval(question.origin, question.entry.uri)
    for each in page(request, approval):
        printer.talk(each)
    about = f" {line(question.target)}" if question.target else ""
    granting = f" Grant {listed(sorted(set(arguments.grant)))}?" if arguments.grant else ""
    if not await confirm(f"{meaning_of(request)}{about}{granting}", printer):
        raise ApprovalError("not-approved", "you did not approve it", "nothing was recorded", rule="Z4")


def _find(questions: Sequence[Question], beginning: str) -> Question:
    found = [question for question in questions if question.id.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(question.id for question in found[:5])
        raise OriginError("name-ambiguous", f"{beginning!r:.100} could be {candidates}", "use more of it")
    raise NotFoundError(
        "question-unknown", f"no open question is called {beginning!r:.100}", "see skillwire questions"
    )


def _document(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "kind": question.kind,
        "origin": question.origin,
        "uri": question.entry.uri,
        "target": question.target,
        "fingerprint": question.content or None,
        "by": question.by,
        "since": stamp(question.asked_at),
        "hidden": [find._asdict() for find in question.hidden],
    }
