"""The page of the programs that people start."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx2
import pytest

from e2e.talking import PATIENCE, Talking
from rules import rule
from skillwire.cli.exits import Exit
from skillwire.cli.main import run
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def started(*words: str, folder: Path) -> Iterator[Talking]:
    process = Talking(*words, folder=folder)
    try:
        process.wait_for_talk("listening at")
        yield process
    finally:
        process.popen.terminate()
        process.popen.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("verb", ["serve", "gateway"])
def test_the_page_is_at_the_address_that_is_said(verb: str, tmp_path: Path) -> None:
    write_tree(tmp_path / "skills", small_tree())
    extra = ["--state", str(tmp_path / "state")] if verb == "gateway" else []
    with started(verb, "skills", "--http", "0", *extra, folder=tmp_path) as process:
        said = re.search(r"in a browser, open (http://127\.0\.0\.1:\d+/)\n", process.talk)
        assert said is not None, process.talk
        answer = httpx2.get(said[1], timeout=PATIENCE)
        assert answer.status_code == 200
        path = "skills/flat" if verb == "gateway" else "flat"
        assert f'href="/skill/{path}"' in answer.text
        assert httpx2.get(f"{said[1]}skill/{path}", timeout=PATIENCE).status_code == 200


@pytest.mark.parametrize("verb", ["serve", "gateway"])
def test_no_page_turns_it_off(verb: str, tmp_path: Path) -> None:
    write_tree(tmp_path / "skills", small_tree())
    extra = ["--state", str(tmp_path / "state")] if verb == "gateway" else []
    with started(verb, "skills", "--http", "0", "--no-page", *extra, folder=tmp_path) as process:
        assert "in a browser" not in process.talk
        url = process.wait_for_talk(r"listening at (http://[^/]+)")[1]
        for address in ("/", "/skill/flat", "/static/style.css", "/search?q=x"):
            assert httpx2.get(url + address, timeout=PATIENCE).status_code == 404
        assert httpx2.get(f"{url}/healthz", timeout=PATIENCE).status_code == 200


@rule("L2", "G1")
def test_what_is_not_listed_is_on_no_page_that_does_not_name_it(tmp_path: Path) -> None:
    """Served to whoever knows its path; its problems, and what was left out of it, are not told."""
    broken = b"---\nname: Broken Name\ndescription: x\n---\n"
    tree = {
        "open/SKILL.md": skill_md("open"),
        "open/.git/config": b"",
        "broken/SKILL.md": broken,
        "Twin/twin/SKILL.md": skill_md("twin"),
        "twin/twin/SKILL.md": skill_md("twin"),
        "drafts/secret-plan/SKILL.md": skill_md("secret-plan", "x" * 2000),
        "drafts/secret-plan/.git/config": b"",
        "drafts/secret-broken/SKILL.md": broken,
        "drafts/secret-broken/.git/config": b"",
    }
    write_tree(tmp_path / "skills", tree)
    words = ("--unlisted", "drafts/*", "--unlisted", "Twin/*")
    with started("serve", "skills", "--http", "0", *words, folder=tmp_path) as process:
        url = process.wait_for_talk(r"listening at (http://[^/]+)")[1]
        assert "drafts/secret-broken" in process.talk  # the operator is told
        for address in ("/", "/left-out", "/search?q=secret", "/?under=drafts"):
            page = httpx2.get(url + address, timeout=PATIENCE).text
            assert "secret-" not in page
            assert "Twin" not in page
        left_out = httpx2.get(f"{url}/left-out", timeout=PATIENCE).text
        assert "broken/SKILL.md" in left_out
        assert "open/.git" in left_out
        assert "not listed" in httpx2.get(f"{url}/skill/drafts/secret-plan", timeout=PATIENCE).text


def test_without_http_there_is_no_page_to_turn_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(tmp_path), "--no-page"]) == Exit.USAGE
    assert "--no-page is for HTTP" in capsys.readouterr().err
