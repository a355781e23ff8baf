"""The catalog page of the real commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from e2e.talking import PATIENCE, Talking
from skillwire.cli.command import Exit
from skillwire.cli.main import run
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

VERBS = pytest.mark.parametrize("verb", ["serve", "gateway"])


def started(verb: str, *words: str, folder: Path) -> Talking:
    write_tree(folder / "skills", small_tree())
    extra = ["--state", str(folder / "state")] if verb == "gateway" else []
    return Talking(verb, "skills", "--http", "0", *extra, *words, folder=folder)


@pytest.mark.slow
@VERBS
def test_the_page_is_at_the_address_that_is_said(verb: str, tmp_path: Path) -> None:
    with started(verb, folder=tmp_path) as process:
        address = process.wait_for_talk(r"(http://127\.0\.0\.1:\d+/)\n")[1]
        answer = httpx2.get(address, timeout=PATIENCE)
        assert answer.status_code == 200
        path = "skills/flat" if verb == "gateway" else "flat"
        assert f'href="/skill/{path}"' in answer.text
        assert httpx2.get(f"{address}skill/{path}", timeout=PATIENCE).status_code == 200


@pytest.mark.slow
@VERBS
def test_no_page_turns_it_off(verb: str, tmp_path: Path) -> None:
    with started(verb, "--no-page", folder=tmp_path) as process:
        address = process.wait_for_talk(r"(http://127\.0\.0\.1:\d+)/mcp")[1]
        for path in ("/", "/skill/flat", "/static/style.css", "/search?q=x"):
            assert httpx2.get(address + path, timeout=PATIENCE).status_code == 404
        assert httpx2.get(f"{address}/healthz", timeout=PATIENCE).status_code == 200


@pytest.mark.slow
def test_what_is_not_to_be_listed_is_on_no_page_but_its_own(tmp_path: Path) -> None:
    """The globs of ``--unlisted`` reach the page; `test_page.py` has the rest."""
    broken = {"secret/SKILL.md": b"---\nname: Broken Name\n---\n"}
    write_tree(tmp_path / "skills", broken)
    with started("serve", "--unlisted", "flat", "--unlisted", "secret", folder=tmp_path) as process:
        address = process.wait_for_talk(r"(http://127\.0\.0\.1:\d+/)\n")[1]
        for path in ("", "problems"):
            text = httpx2.get(address + path, timeout=PATIENCE).text
            assert "/skill/flat" not in text
            assert "secret" not in text
        assert httpx2.get(f"{address}skill/flat", timeout=PATIENCE).status_code == 200


def test_without_http_there_is_no_page_to_turn_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(tmp_path), "--no-page"]) == Exit.USAGE
    assert "--no-page" in capsys.readouterr().err
