"""``skillwire approvals questions``: shows and answers the questions of running agents and gateways.

A question looks the same as on the terminal of the program that asks. Answering needs only the store, and no
connection to the server of the skill.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from skillwire.cli.approve import FINGERPRINT, GRANT, NOTE, require_decision
from skillwire.cli.command import Arguments, argument, flag, verb
from skillwire.cli.host_session import BY, STORE_OPTIONS, host_command, run_with_store, system_user
from skillwire.cli.printer import Printer, counted, line, listed, moment, utc_text
from skillwire.cli.prompts import page, question_text
from skillwire.errors import ApprovalError, FormatError, NotFoundError, OriginError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.text import Text

    from skillwire.store.records import Question
    from skillwire.store.store import Store


@verb(
    "Show the open questions of running agents and gateways (such as 'skillwire load --ask desk'), and answer"
    " one of them.",
    argument("id", "[ID]", "the question to show or answer", required=False),
    flag("--yes", help="approve"),
    flag("--no", help="decline"),
    flag("--once", help="with --yes: approve only this time, and store nothing"),
    GRANT,
    BY,
    NOTE,
    FINGERPRINT,
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
def questions(arguments: Arguments, printer: Printer) -> int | None:
    """List, show or answer questions."""
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


async def _list(store: Store, _arguments: Arguments, printer: Printer) -> None:
    found = await store.questions(time.time())
    printer.json({"questions": [_document(question) for question in found]})
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


async def _show(store: Store, arguments: Arguments, printer: Printer) -> None:
    from skillwire.host.desk import request_of

    question = _find_question(await store.questions(time.time()), arguments)
    printer.json(_document(question))
    printer.data(f"{line(question.by)} asks ({question.kind}): {line(question.target) or 'permission to read it'}")
    approval = await store.approval(question.origin, question.entry.uri)
    for each in page(request_of(question), approval):
        printer.data(each)
    if question.content:
        words = ["approvals", "questions", question.id, "--yes", "--fingerprint", question.content]
        printer.talk(f"to approve exactly this: {shlex.join(host_command(arguments, *words))}")


async def _answer(store: Store, arguments: Arguments, printer: Printer) -> None:
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
    done = "approved" if answer.yes else "declined"
    printer.result(
        {**_document(question), "yes": answer.yes, "grants": sorted(grants)},
        f"{done} for {line(question.by)}: {line(question.entry.uri)}",
        *([f"granted: {listed(sorted(grants))}"] if grants else []),
    )


async def _require_review(store: Store, question: Question, arguments: Arguments, printer: Printer) -> None:
    """Z4, as for ``approve``: on a terminal, show the page and ask; otherwise require the fingerprint."""
    from skillwire.host.desk import request_of

    request = request_of(question)

    async def review() -> Iterable[Text]:
        return page(request, await store.approval(question.origin, question.entry.uri))

    about = f" {line(question.target)}" if question.target else ""
    granting = f" Grant {listed(sorted(set(arguments.grant)))}?" if arguments.grant else ""
    await require_decision(
        review,
        f"{question_text(request)}{about}{granting}",
        arguments,
        printer,
        content=question.content,
        uri=question.entry.uri,
        command=host_command(arguments, "approvals", "questions", question.id),
    )


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
    return f"list the questions: {shlex.join(host_command(arguments, 'approvals', 'questions'))}"


def _document(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "kind": question.kind,
        "origin": question.origin,
        "uri": question.entry.uri,
        "target": question.target,
        "fingerprint": question.content or None,
        "by": question.by,
        "since": utc_text(question.asked_at),
        "hidden": [find._asdict() for find in question.hidden],
    }
