"""Whatever can be decided on the command line can be decided at the desk, and the reverse (A1–A5).

Each action of the table is done both ways, each time from the same beginning, and has to come to the same.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from anyio import to_thread
from starlette.routing import Route

from desks import at_desk
from skillwire.cli import approvals, approve
from skillwire.cli.approve import BY
from skillwire.cli.main import run
from skillwire.host.approval_export import approvals_as_document
from skillwire.host.approvals import ApprovalRequest
from skillwire.host.desk import question_of
from skillwire.host.host import SkillHost
from skillwire.server.http import listen
from skillwire.skill.approval import Approval, contents_of
from skillwire.skill.review import review_entry
from skillwire.store.records import LogLine
from skillwire.store.store import Store
from skillwire.web.desk.app import DeskServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from desks import AtDesk
    from skillwire.skill import SkillEntry

pytestmark = pytest.mark.anyio
SKILL = "skill://asking/SKILL.md"


@dataclass
class Stage:
    """A desk of anna's, and her command line with the same memory and the same server."""

    at: AtDesk
    folder: Path
    server: HostileServer
    question: str = ""
    export: str = ""

    @property
    def entry(self) -> SkillEntry:
        return self.at.host.names.find("asking").entry

    async def decide(self, action: str, skill: str = "acme/asking", **fields: Any) -> None:
        assert (await self.at.decide(action, skill, **fields)).status_code == 303

    async def answer(self, **fields: str) -> None:
        place = f"/question/{self.question}"
        form = await self.at.form(f"{place}?once=yes", place)
        assert (await self.at.send(place, {**form, **fields})).status_code == 303

    async def bring(self, **fields: str) -> None:
        form = await self.at.form("/approvals", "/approvals/import")
        answer = await self.at.send("/approvals/import", {**form, **fields, "export": self.export})
        assert answer.status_code == 200
        assert await self.at.host.store.approvals()

    async def reply(self, *words: str) -> None:
        await self.type("approvals", "questions", self.question, *words)

    async def type(self, *words: str) -> None:
        """``skillwire WORDS``, by anna."""
        more, verb = ["--by", "anna", "--state", str(self.folder)], words[words[0] == "approvals"]
        if verb in ("approve", "decline", "enable"):
            more += ["--config", str(self._config())]
        if verb in ("approve", "enable") or (verb == "questions" and "--yes" in words):
            more += ["--fingerprint", stage_fingerprint(self)]
        assert await to_thread.run_sync(run, [*words, *more]) == 0

    async def type_import(self) -> None:
        path = self.folder / "export.json"
        path.write_text(self.export)
        await self.type("approvals", "import", str(path), "--note", "n", "--yes")

    def _config(self) -> Path:
        path, url = self.folder / "servers.json", f"http://127.0.0.1:{self.server.port}{self.server.path}"
        path.write_text(json.dumps({"mcpServers": {"acme": {"type": "http", "url": url}}}))
        return path

    async def outcome(self) -> dict[str, Any]:
        """What it came to: approvals, what was answered, who stands in the log for it and what is shown."""
        store = self.at.host.store
        line = (await store.lines(limit=1))[0] if not self.question else None
        return {
            "approvals": [(a.origin, a.uri, a.fingerprint, a.by, a.grants) for a in await store.approvals()],
            "answer": _without_time(await store.answer_to(self.question)) if self.question else None,
            "open": len(await store.questions(time.time())),
            "log": None if line is None else (line.origin, line.uri, line.by, line.facts.get("note")),
            "states": [(row.origin, row.uri, row.state) for row in await self.at.desk.rows.all()],
        }


def _without_time(answered: Any) -> tuple[Any, ...]:
    assert answered is not None
    return answered.yes, answered.by, answered.grants, answered.remember, answered.note, answered.recorded


# Beginnings


async def nothing(stage: Stage) -> None:
    """Nobody decided anything."""


async def approved(stage: Stage) -> None:
    await stage.at.host.approve("asking", by="anna", grants=frozenset({"Read"}))


async def declined(stage: Stage) -> None:
    await stage.at.host.decline("asking", by="bob")


async def unlisted(stage: Stage) -> None:
    """Approved, and of an origin that nobody knows now."""
    known = Approval("gone", SKILL, frozenset({(SKILL, "sha256:" + "1" * 64)}), "bob", 1.0)
    await stage.at.host.store.put_approval(known, LogLine("approved", "gone", SKILL, "bob", 1.0))


async def exported(stage: Stage) -> None:
    """Somebody elsewhere approved it."""
    given = Approval("acme", SKILL, contents_of(stage.entry), "carl", 5.0, frozenset({"Read"}))
    stage.export = json.dumps(approvals_as_document([given]))


def asked(kind: Any) -> Callable[[Stage], Awaitable[None]]:
    async def ask(stage: Stage) -> None:
        request = ApprovalRequest(kind, "acme", stage.entry, review_entry(stage.entry), target="Bash")
        question = question_of(request, "agent", seconds=600)
        await stage.at.host.store.put_question(question)
        stage.question = question.id

    return ask


# Actions


class Action(NamedTuple):
    """A beginning; what is done at the desk, where; and what is typed instead."""

    begin: Callable[[Stage], Awaitable[None]]
    route: str
    at_desk: Callable[[Stage], Awaitable[None]]
    verb: str
    typed: Callable[[Stage], Awaitable[None]]


TABLE = {
    "approve": Action(
        nothing, "/approve",
        lambda stage: stage.decide("approve", note="n"),
        "approve", lambda stage: stage.type("approve", "asking", "--note", "n"),
    ),
    "approve what was declined, with tools": Action(
        declined, "/approve",
        lambda stage: stage.decide("approve", grant=["Read", "execute"]),
        "approve", lambda stage: stage.type("approve", "asking", "--grant", "Read", "--grant", "execute"),
    ),
    "approve exactly one content": Action(
        nothing, "/approve",
        lambda stage: stage.decide("approve"),
        "approve", lambda stage: stage.type("approve", "asking", "--fingerprint", stage_fingerprint(stage)),
    ),
    "decline": Action(
        nothing, "/decline",
        lambda stage: stage.decide("decline", note="n"),
        "decline", lambda stage: stage.type("approvals", "decline", "asking", "--note", "n"),
    ),
    "enable": Action(
        declined, "/enable",
        lambda stage: stage.decide("enable", note="n"),
        "enable", lambda stage: stage.type("approvals", "enable", "asking", "--note", "n"),
    ),
    "grant one more tool": Action(
        approved, "/grants",
        lambda stage: stage.decide("grants", grant=["Read", "execute"], note="n"),
        "approve",  # on the command line, other grants are another yes
        lambda stage: stage.type("approve", "asking", "--grant", "Read", "--grant", "execute", "--note", "n"),
    ),
    "take a tool back": Action(
        approved, "/grants",
        lambda stage: stage.decide("grants", note="n"),
        "approve", lambda stage: stage.type("approve", "asking", "--note", "n"),
    ),
    "revoke": Action(
        approved, "/revoke",
        lambda stage: stage.decide("revoke", note="n"),
        "revoke", lambda stage: stage.type("approvals", "revoke", "asking", "--note", "n"),
    ),
    "revoke what nobody lists": Action(
        unlisted, "/revoke",
        lambda stage: stage.decide("revoke", "gone/asking", note="n"),
        "revoke", lambda stage: stage.type("approvals", "revoke", f"gone:{SKILL}", "--note", "n"),
    ),
    "say yes to whoever asks": Action(
        asked("load"), "/approve",
        lambda stage: stage.decide("approve", grant="execute", note="n"),
        "questions",
        lambda stage: stage.reply("--yes", "--grant", "execute", "--note", "n"),
    ),
    "say yes only once": Action(
        asked("load"), "/approve",
        lambda stage: stage.decide("approve", lasts="once", grant="execute", note="n"),
        "questions",
        lambda stage: stage.reply("--yes", "--once", "--grant=execute", "--note=n"),
    ),
    "say no to whoever asks": Action(
        asked("load"), "/decline",
        lambda stage: stage.decide("decline", note="n"),
        "questions", lambda stage: stage.reply("--no", "--note", "n"),
    ),
    "let code run from now on": Action(
        asked("execute"), "/question",
        lambda stage: stage.answer(answer="yes", note="n"),
        "questions", lambda stage: stage.reply("--yes", "--note", "n"),
    ),
    "let code run once": Action(
        asked("execute"), "/question",
        lambda stage: stage.answer(answer="yes", lasts="once"),
        "questions", lambda stage: stage.reply("--yes", "--once"),
    ),
    "let no code run": Action(
        asked("execute"), "/question",
        lambda stage: stage.answer(answer="no", note="n"),
        "questions", lambda stage: stage.reply("--no", "--note", "n"),
    ),
    "import": Action(
        exported, "/approvals/import",
        lambda stage: stage.bring(note="n"),
        "import", lambda stage: stage.type_import(),
    ),
}  # fmt: skip


def stage_fingerprint(stage: Stage) -> str:
    return Approval("", "", contents_of(stage.entry), "", 0.0).fingerprint


QUICK = {
    "approve",
    "decline",
    "enable",
    "grant one more tool",
    "revoke",
    "let code run once",
    "import",
}  # one per form


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(action, id=name, marks=[] if name in QUICK else pytest.mark.slow)
        for name, action in TABLE.items()
    ],
)
async def test_both_ways_come_to_the_same(action: Action, tmp_path: Path, asking: HostileServer) -> None:
    outcomes = list[dict[str, Any]]()
    for name, act in (("desk", action.at_desk), ("typed", action.typed)):
        async with at_desk(tmp_path / name, {"acme": asking}) as at:
            stage = Stage(at, tmp_path / name, asking)
            await action.begin(stage)
            before = await at.host.store.version()
            await act(stage)
            assert await at.host.store.version() != before
            outcomes.append(await stage.outcome())
    assert outcomes[0] == outcomes[1]


async def test_an_export_and_the_log_are_the_same_both_ways(
    state: Path, asking: HostileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    async with at_desk(state, {"acme": asking}) as at:
        stage = Stage(at, state, asking)
        await approved(stage)
        for place, words in (("/approvals.json", ["approvals", "--json"]), ("/log.jsonl", ["log", "--json"])):
            capsys.readouterr()
            assert await to_thread.run_sync(run, [*words, "--state", str(state)]) == 0
            assert json.loads(await at.get(place)) == json.loads(capsys.readouterr().out)


async def test_no_action_is_missing_in_the_table() -> None:
    """Every form of the desk, and every verb that says who decides."""
    with closing(listen("127.0.0.1", 0)) as listener:
        app: Any = DeskServer(SkillHost(Store.memory()), listener).app()
    forms = {
        route.path.partition("/{")[0]
        for route in app._app.routes
        if isinstance(route, Route) and "POST" in (route.methods or ())
    }
    forms.remove("/bulk")  # it approves each skill as "/approve" does
    assert {action.route for action in TABLE.values()} == forms
    commands = {"approve": approve.command, **approvals.command.commands}
    verbs = {name for name, command in commands.items() if BY in command.params}
    assert {action.verb for action in TABLE.values()} == verbs
