"""``skillwire approvals questions``: shows and answers the questions of running agents and gateways.

A question looks the same as on the terminal of the program that asks. Only the store is needed, so a question
about a skill of an unknown server can be answered too.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import Arguments, Exit, argument, flag, option, repeated, verb
from skillwire.cli.decisions import BY, NOTE, check_decision, require_fingerprint
from skillwire.cli.host_session import STORE_OPTIONS, host_words, run_with_store, system_user
from skillwire.cli.printer import Printer, counted, line, listed, moment, stamp
from skillwire.cli.prompts import can_ask, confirm, meaning_of, page
from skillwire.errors import ApprovalError, FormatError, NotFoundError, OriginError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.store.contract import Question, Store


@verb(
    "Show the open questions of running agents and gateways (such as 'skillwire load --ask desk'), and answer"
    " one of them.",
    argument("id", "[ID]", "the question to show or answer", required=False),
    flag("--yes", help="approve"),
    flag("--no", help="decline"),
    flag("--once", help="with --yes: approve only this time, and store nothing"),
    repeated(
        "--grant",
        metavar="TOOL",
        help="with --yes for a skill: also grant this tool, or 'execute' to let code run (repeatable)",
    ),
    BY,
    NOTE,
    option(
        "--fingerprint",
        metavar="SHA256",
        help="with --yes: the content that was shown; required without a terminal",
    ),
    *STORE_OPTIONS,
    examples="""\
  skillwire approvals questions                    list the open questions
  skillwire approvals questions 3f2a               show one; the first letters of its id are enough
  skillwire approvals questions 3f2a --yes --grant execute           show it, then ask
  skillwire approvals questions 3f2a --yes --fingerprint sha256:…    without a terminal: the one that was shown
  skillwire approvals questions 3f2a --no --note 'not on this machine'

An answer about a skill covers exactly its current files, and also answers other programs that ask about them.

exit codes: 0 done, 1 the program has ended or has an answer, 2 usage, or unknown question
""",
)
def questions(arguments: Arguments, printer: Printer) -> int:
    """List, show or answer questions."""
    check_decision(arguments, arguments.grant)
    if arguments.yes and arguments.no:
        raise FormatError("argument-invalid", "--yes and --no exclude each other", "omit one of them")
    is_answer = arguments.yes or arguments.no
    if is_answer and arguments.id is None:
        raise FormatError("argument-invalid", "--yes and --no need a question ID", _list_hint(arguments))
    if (arguments.once or arguments.grant) and not arguments.yes:
        raise FormatError("argument-invalid", "--once and --grant need --yes", "add --yes, or omit them")
    if arguments.id is None:
        return run_with_store(arguments, printer, _list)
    return run_with_store(arguments, printer, _answer if is_answer else _show)


async def _list(store: Store, arguments: Arguments, printer: Printer) -> int:
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
    printer.talk(f"{counted(len(found), 'question')} waiting" if found else "no open questions")
    return Exit.OK


async def _show(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.desk import request_of

    question = _find_question(await store.questions(time.time()), arguments)
    if arguments.json:
        printer.json(_document(question))
        return Exit.OK
    printer.data(f"{line(question.by)} asks ({question.kind}): {line(question.target) or 'permission to read it'}")
    approval = await store.approval(question.origin, question.entry.uri)
    for each in page(request_of(question), approval):
        printer.data(each)
    if question.content:
        words = ["skillwire", "approvals", "questions", question.id, "--yes", "--fingerprint", question.content]
        printer.talk(f"to approve exactly this: {shlex.join([*words, *host_words(arguments)])}")
    return Exit.OK


async def _answer(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approvals import Answer
    from skillwire.host.desk import give_answer

    question = _find_question(await store.questions(time.time()), arguments)
    grants = frozenset[str](arguments.grant)
    if grants and question.kind != "load":
        raise FormatError("argument-invalid", "--grant is only for questions about loading a skill", "omit it")
    if arguments.yes:
        await _require_review(store, question, arguments, printer)
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
            f"the program that asked {question.id} has ended or has an answer",
            _list_hint(arguments),
        )
    if arguments.json:
        printer.json({**_document(question), "yes": answer.yes, "grants": sorted(grants)})
        return Exit.OK
    printer.data(f"{'approved' if answer.yes else 'declined'} for {line(question.by)}: {line(question.entry.uri)}")
    if grants:
        printer.data(f"granted: {listed(sorted(grants))}")
    return Exit.OK


async def _require_review(store: Store, question: Question, arguments: Arguments, printer: Printer) -> None:
    """Z4, as for ``approve``: on a terminal, show the page and ask; otherwise require the fingerprint."""
    from skillwire.host.desk import request_of

    words = ["skillwire", "approvals", "questions", question.id, *host_words(arguments)]
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
        raise ApprovalError("not-approved", "not confirmed", "nothing was recorded", rule="Z4")


def _find_question(questions: Sequence[Question], arguments: Arguments) -> Question:
    beginning = arguments.id
    found = [question for question in questions if question.id.startswith(beginning)]
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(question.id for question in found[:5])
        raise OriginError("name-ambiguous", f"{beginning!r:.100} could be {candidates}", "write more of the id")
    raise NotFoundError(
        "question-unknown", f"no open question has the id {beginning!r:.100}", _list_hint(arguments)
    )


def _list_hint(arguments: Arguments) -> str:
    return f"list the questions: {shlex.join(['skillwire', 'approvals', 'questions', *host_words(arguments)])}"


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
