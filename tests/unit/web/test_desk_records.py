"""The log at the desk: filters, and exports without formulas for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from desks import at_desk, words
from skillwire.store.records import LogLine

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from desks import AtDesk

pytestmark = pytest.mark.anyio
FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", '=HYPERLINK("http://evil.example")']


async def fill(at: AtDesk) -> None:
    for number in range(3):
        await at.host.store.log(LogLine("loaded", "acme", f"skill://s{number}/SKILL.md", "model", 10.0 + number))
    await at.host.store.log(LogLine("refused", "other", "skill://s1/SKILL.md", "Host", 20.0, {"reference": "x-y"}))
    facts = {"note": "why <b>not</b>", "kind": "load"}
    await at.host.store.log(LogLine("denied", "acme", "skill://s1/SKILL.md", "anna", 21.0, facts))


FILTERS = {
    "": 5, "?origin=acme": 4, "?skill=S1": 3, "?what=loaded": 3, "?by=ann": 1, "?by=host": 1,
    "?origin=acme&skill=s1&what=denied&by=anna": 1, "?before=3": 2, "?what=nothing": 0,
    "?before=" + "9" * 5000: 5, "?before=x": 5,
}  # fmt: skip


async def test_lines_are_filtered_on_the_page_and_in_the_files(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        await fill(at)
        for query, count in FILTERS.items():
            assert (await at.get(f"/log{query}")).count("<tr data-row>") == count, query
            assert len((await at.get(f"/log.jsonl{query}")).splitlines()) == count, query
            assert len(list(csv.reader(io.StringIO(await at.get(f"/log.csv{query}"))))) == count + 1, query


async def test_a_line_shows_who_and_why(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        await fill(at)
        page = await at.get("/log")
        assert "why &lt;b&gt;not&lt;/b&gt;" in page
        assert "reference x-y" in words(page)
        assert 'href="/skill/acme/s1"' in page


async def test_every_line_about_a_content_has_its_fingerprint_and_leads_to_the_differences(
    state: Path, server: HostileServer
) -> None:
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve")
        [approval] = await at.host.store.approvals()
        await at.decide("grants", grant="execute")
        assert not (await at.host.load("flat")).is_error
        await at.decide("revoke")
        page = await at.get("/log")
        lines = [line.what for line in await at.host.store.lines(limit=9)]
        assert lines == ["revoked", "loaded", "granted", "approved"]
        assert page.count(f'title="{approval.fingerprint}"') == 4
        diff = f"/history/acme/flat?to={quote(approval.fingerprint, safe='')}"
        assert page.count(f'href="{diff}"') == 4
        assert "nothing" in words(await at.get(diff))  # the first content is compared with nothing


async def test_an_empty_log_is_marked_as_empty(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        assert 'class="empty"' in await at.get("/log")
        assert '<a href="/log">' in (await at.get("/log?by=nobody")).partition('class="empty"')[2]


async def test_older_lines_are_a_page_away(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        for number in range(101):
            await at.host.store.log(
                LogLine("loaded", "acme", f"skill://s{number}/SKILL.md", "model", float(number))
            )
        page = await at.get("/log?what=loaded")
        assert page.count("<tr data-row>") == 100
        assert 'href="/log?what=loaded&amp;before=2"' in page
        older = await at.get("/log?what=loaded&before=2")
        assert older.count("<tr data-row>") == 1
        assert "before=" not in older


async def test_no_cell_is_a_formula(state: Path, server: HostileServer) -> None:
    """Whoever names a skill, an origin or themselves does not write into the reader's spreadsheet."""
    async with at_desk(state, {"acme": server}) as at:
        for text in FORMULAS:
            await at.host.store.log(LogLine("denied", text, text, text, 1.0, {"note": text, text: text}))
        answer = await at.browser.get("/log.csv")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"].startswith("attachment")
        [_, *rows] = csv.reader(io.StringIO(answer.text, newline=""))
        for row, text in zip(rows, reversed(FORMULAS), strict=True):
            assert [row[place] for place in (3, 4, 5, 6)] == [f"'{text}"] * 4
            assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝")) for cell in row)


async def test_json_lines_are_those_of_the_command_line(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        await at.host.store.log(LogLine("loaded", "acme", "skill://é", "model", 1.5, {"a": "\ud800"}))
        text = await at.get("/log.jsonl")
        assert text.isascii()
        assert json.loads(text) == {
            "number": 1, "at": "1970-01-01T00:00:01.500Z", "what": "loaded", "origin": "acme",
            "uri": "skill://é", "by": "model", "facts": {"a": "\ud800"},
        }  # fmt: skip
        assert "1970" in await at.get("/log.csv")
        await at.get("/log")


async def test_a_file_has_every_line_however_many_there_are(
    state: Path, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Piece by piece, with none twice; on whatever page the person was."""
    monkeypatch.setattr("skillwire.store.store.LOG_PAGE", 7)
    async with at_desk(state, {"acme": server}) as at:
        for number in range(20):
            what = "loaded" if number % 2 else "read"
            await at.host.store.log(LogLine(what, "acme", f"skill://s{number}/SKILL.md", "model", 1.0))
        page = await at.get("/log?by=model&before=5")
        for kind in ("csv", "jsonl"):
            assert f'href="/log.{kind}?by=model"' in page
            found = re.findall(r"skill://s(\d+)/", await at.get(f"/log.{kind}?by=model"))
            assert found == [str(number) for number in reversed(range(20))]
            assert len(re.findall("skill://", await at.get(f"/log.{kind}?what=read"))) == 10


async def test_a_line_is_found_behind_more_lines_than_are_read_at_once(
    state: Path, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillwire.web.desk.records.PAGE_LINES", 5)
    async with at_desk(state, {"acme": server}) as at:
        await at.host.store.log(LogLine("denied", "acme", "skill://first/SKILL.md", "anna", 1.0))
        for _ in range(10):
            await at.host.store.log(LogLine("read", "acme", "skill://s/SKILL.md", "model", 2.0))
        asked: list[int] = []
        lines = at.host.store.lines

        async def counted(**filters: Any) -> Sequence[LogLine]:
            found = await lines(**filters)
            asked.append(len(found))
            return found

        at.host.store.lines = counted  # type: ignore[method-assign, assignment]
        assert (await at.get("/log?by=anna")).count("<tr data-row>") == 1
        assert asked == [1]  # the others were not read for it
