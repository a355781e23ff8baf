"""Waiting agents, and a user who answers at the desk: real processes that share one store."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from e2e.talking import PATIENCE
from rules import rule
from starting import skillwire_command
from trees import replace_file
from web.processes import WAIT, address_of, started
from web.test_desk import LIBRARY, approve, open_skill, tick, write_note

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Locator

    from web.processes import Desk

OLD, NEW = "Four weeks, renewed twice.", "One week, never renewed."


def waiting(page: Page) -> Locator:
    return page.get_by_role("region", name="Waiting for you")


def until(address: str, is_enough: Callable[[str], bool]) -> str:
    """A client of a gateway that wants a skill, again and again, until it has heard enough: what it heard last."""
    read = [*skillwire_command(), "read", address, "skill://books/library/SKILL.md"]
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done = subprocess.run(read, capture_output=True, text=True, timeout=PATIENCE)
        if is_enough(done.stdout + done.stderr):
            return done.stdout + done.stderr
    raise AssertionError(done.stdout + done.stderr)


@rule("A1", "A2", "W1")
def test_a_change_is_seen_and_read_and_the_waiting_agent_goes_on(at_desk: Page, desk: Desk) -> None:
    """The whole story."""
    open_skill(at_desk, "library")
    approve(at_desk)
    with desk.agent("library") as agent:
        out, _ = agent.communicate(timeout=PATIENCE)
    assert out.startswith('<skill name="library" origin="mcp:books"')

    rules = desk.trees["books"] / "library" / "rules.md"
    replace_file(rules, rules.read_text().replace(OLD, NEW).encode())
    at_desk.get_by_role("link", name="Overview").first.click()
    row = at_desk.locator("#results [data-row]").filter(has_text="library")
    expect(row).to_contain_text("changed")
    expect(waiting(at_desk)).to_contain_text("No open questions.")

    with desk.agent("library") as agent:
        question = waiting(at_desk).get_by_role("link", name="Allow the model to read library from books?")
        expect(question).to_be_visible()
        expect(waiting(at_desk)).to_contain_text("asked by the reply agent")
        expect(at_desk).to_have_title("(1) Review desk · skillwire")
        question.click()
        changes = at_desk.get_by_role("region", name="Changes since the approval")
        expect(changes.locator("del").first).to_be_visible()
        expect(changes).to_contain_text("rules.md")
        expect(changes.get_by_text("Four").first).to_be_visible()
        expect(changes.get_by_text("never").first).to_be_visible()
        expect(at_desk.get_by_text("the reply agent").first).to_be_visible()
        assert agent.poll() is None, "it waits"
        approve(at_desk, "shorter is fine")
        out, err = agent.communicate(timeout=PATIENCE)
    assert agent.returncode == 0
    assert out.startswith('<skill name="library" origin="mcp:books"')
    assert "the agent is done" in err
    at_desk.get_by_role("link", name="Overview").first.click()
    expect(waiting(at_desk)).to_contain_text("No open questions.")
    assert LIBRARY in desk.approvals()


def test_a_question_of_the_command_line_is_answered_with_yes(at_desk: Page, desk: Desk) -> None:
    with desk.asking("library") as loading:
        waiting(at_desk).get_by_role("link", name="Allow the model to read library from books?").click()
        expect(at_desk.get_by_text("waits for your answer")).to_be_visible()
        tick(at_desk, "Bash(lend:*)").check()
        approve(at_desk)
        out, _ = loading.popen.communicate(timeout=PATIENCE)
        assert loading.popen.returncode == 0
    assert out.startswith(b'<skill name="library"')
    assert desk.approvals() == {LIBRARY: ["Bash(lend:*)"]}


def test_a_question_of_the_command_line_is_answered_with_no(at_desk: Page, desk: Desk) -> None:
    with desk.asking("library") as loading:
        waiting(at_desk).get_by_role("link", name="Allow the model to read library from books?").click()
        write_note(at_desk, "not before Monday")
        at_desk.get_by_role("button", name="Decline").click()
        out, err = loading.popen.communicate(timeout=PATIENCE)
        assert loading.popen.returncode == 1
    assert out == b""
    assert b"was not approved" in err or b"declined" in err
    assert desk.approvals() == {}
    assert "not before Monday" in desk.run("log", "--json")


@rule("O1")
def test_a_question_about_a_skill_that_the_desk_does_not_know_is_answered_by_itself(
    at_desk: Page, desk: Desk
) -> None:
    """Whoever asks has it from an origin of their own."""
    for label, answer, code in (("elsewhere", "Decline", 1), ("abroad", "Allow", 0)):
        at_desk.goto(f"{desk.base}/")
        with desk.asking("library", label=label) as loading:
            waiting(at_desk).get_by_role("link", name=f"Allow the model to read library from {label}?").click()
            expect(at_desk.get_by_text("This desk does not know the skill")).to_be_visible()
            expect(at_desk.get_by_role("row", name="scripts/lend.py")).to_be_visible()  # from the entry alone (V5)
            at_desk.get_by_role("button", name=answer, exact=True).click()
            expect(at_desk.get_by_text("Answered. The program that asked continues.")).to_be_visible()
            loading.popen.communicate(timeout=PATIENCE)
            assert loading.popen.returncode == code


def test_the_next_question_follows_the_answer(at_desk: Page, desk: Desk) -> None:
    with desk.asking("library"), desk.asking("csv-profile"), desk.asking("library", label="elsewhere"):
        expect(waiting(at_desk).locator("[data-row]")).to_have_count(3)
        waiting(at_desk).get_by_role("link", name="Allow the model to read library from books?").click()
        approve(at_desk)
        at_desk.get_by_role("link", name="Next question").click()
        at_desk.goto(f"{desk.base}/")
        waiting(at_desk).get_by_role("link", name="library from elsewhere").click()
        at_desk.get_by_role("button", name="Decline").click()
        expect(at_desk.get_by_role("heading", level=1)).to_contain_text("csv-profile")


# Notes what the browser would show; a browser without a window shows nothing, and no page of it is ever hidden.
NOTED = """
window.noted = [];
window.Notification = class { constructor(title, options) { window.noted.push(options.body); } };
window.Notification.permission = "granted";
Object.defineProperty(document, "hidden", {get: () => Boolean(window.isAway)});
"""


def test_a_hidden_page_tells_of_a_question_with_a_notification(at_desk: Page, desk: Desk) -> None:
    at_desk.add_init_script(NOTED)
    at_desk.goto(f"{desk.base}/log")
    expect(at_desk.get_by_role("heading", level=1)).to_have_text("Log")
    at_desk.evaluate("window.isAway = true")
    with desk.asking("library"):
        expect(at_desk).to_have_title("(1) Log · skillwire")
        assert at_desk.evaluate("window.noted") == ["1 waiting for your answer"]


def test_who_stops_waiting_is_gone_from_the_desk(at_desk: Page, desk: Desk) -> None:
    with desk.asking("library"):
        expect(waiting(at_desk).get_by_role("link", name="Allow the model to read library")).to_be_visible()
    expect(waiting(at_desk)).to_contain_text("No open questions.")


def test_several_who_ask_the_same_are_one_question_and_all_go_on(at_desk: Page, desk: Desk) -> None:
    with desk.asking("library") as one, desk.agent("library") as other:
        expect(waiting(at_desk)).to_contain_text("the reply agent")
        expect(waiting(at_desk)).to_contain_text("skillwire load")
        expect(waiting(at_desk).locator("[data-row]")).to_have_count(1)
        waiting(at_desk).get_by_role("link", name="Allow the model to read library").click()
        approve(at_desk)
        one.popen.communicate(timeout=PATIENCE)
        other.communicate(timeout=PATIENCE)
        assert (one.popen.returncode, other.returncode) == (0, 0)


@rule("A1", "B6")
def test_what_a_client_of_a_gateway_wants_is_asked_live_and_served_after_the_yes(
    at_desk: Page, desk: Desk, tmp_path: Path
) -> None:
    """The gateway has its own policy and connections, and shares the desk's memory."""
    policy = tmp_path / "gateway.toml"
    policy.write_text('mode = "admit"\n')
    words = ["--config", str(desk.config), "--policy", str(policy), "--state", str(desk.state), *WAIT]
    with started("gateway", *words, "--http", "0") as gateway:
        address = f"{address_of(gateway)}/mcp"
        assert "[skill-unknown]" in until(address, lambda _: "library" in desk.run("approvals", "questions"))
        question = waiting(at_desk).get_by_role("link", name="Allow the model to read library from books?")
        expect(question).to_be_visible()
        expect(waiting(at_desk)).to_contain_text("asked by gateway, for client:")
        question.click()
        approve(at_desk, "for everybody behind the gateway")
        assert "Ask for the reader's number first." in until(address, lambda said: "[skill-unknown]" not in said)
        at_desk.get_by_role("link", name="Overview").first.click()
        expect(waiting(at_desk)).to_contain_text("No open questions.")
    assert LIBRARY in desk.approvals()
