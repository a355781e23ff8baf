"""The acting window, cell by cell (W1–W3), and the table of it in the documents."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import pytest

from host.stage import entry_of
from rules import rule
from skillwire.host.conversation import TRANSITIONS, Event, Window, WindowState
from skillwire.host.loader import ApprovedSkill
from skillwire.skill.approval import EXECUTE
from trees import skill_md

if TYPE_CHECKING:
    from skillwire.host.origins import Origin

STATES: tuple[WindowState, ...] = get_args(WindowState)
EVENTS: tuple[Event, ...] = get_args(Event)
ENTRY = entry_of("flat", {"SKILL.md": skill_md("flat")})
SKILL = ApprovedSkill(
    cast("Origin", None), ENTRY, frozenset({EXECUTE, "Bash"})
)  # a window does not use its origin
PAGE = Path(__file__).parents[2] / "docs/explanation/security.md"
CELLS = {(event, state): then for event, row in TRANSITIONS.items() for state, then in row.items()}
BEGIN, END = "<!-- window-table -->", "<!-- /window-table -->"

# What the rules say, written down a second time and without looking at the table.
EXPECTED: dict[Event, dict[WindowState, WindowState]] = {
    "load": {"closed": "open", "quoted": "open", "open": "open", "revoked": "open"},
    "plain-read": {"closed": "closed", "quoted": "quoted", "open": "open", "revoked": "revoked"},
    "directory-read": {"closed": "closed", "quoted": "quoted", "open": "open", "revoked": "revoked"},
    "cross-read": {"closed": "quoted", "quoted": "quoted", "open": "open", "revoked": "revoked"},
    "revoke": {"closed": "closed", "quoted": "revoked", "open": "revoked", "revoked": "revoked"},
    "change": {"closed": "closed", "quoted": "revoked", "open": "revoked", "revoked": "revoked"},
    "leave": {"closed": "closed", "quoted": "closed", "open": "closed", "revoked": "closed"},
}


def window(state: WindowState) -> Window:
    return Window(SKILL, "flat", state)


def draw_table() -> str:
    """The table in Markdown, for the documentation."""
    states: tuple[WindowState, ...] = get_args(WindowState)
    events: tuple[Event, ...] = get_args(Event)
    lines = ["| event | " + " | ".join(states) + " |", "|---" * (len(states) + 1) + "|"]
    lines += [
        f"| {event} | " + " | ".join(TRANSITIONS[event][state] for state in states) + " |" for event in events
    ]
    return "\n".join(lines)


@rule("W1", "W2", "W3", "A2")
@pytest.mark.parametrize("event", EVENTS)
def test_every_cell_of_the_table_is_what_the_rules_say(event: Event) -> None:
    """Every state meets every event."""
    for state in STATES:
        assert TRANSITIONS[event][state] == EXPECTED[event][state], state
        assert window(state).after(event).state == EXPECTED[event][state], state


@rule("W1")
def test_the_table_has_every_cell_and_no_other() -> None:
    """Nothing is left to a default."""
    assert set(CELLS) == set(product(EVENTS, STATES))
    assert set(CELLS.values()) <= set(STATES)


@rule("W1", "W2")
def test_only_the_hosts_own_loading_path_opens_a_window() -> None:
    """A plain read gives no standing, and neither does anything else."""
    opening = {event for (event, state), then in CELLS.items() if state != "open" and then == "open"}
    assert opening == {"load"}


@rule("W1")
def test_only_words_that_have_left_the_context_close_a_window() -> None:
    """What was revoked or has changed is still before the model's eyes."""
    closing = {event for (event, state), then in CELLS.items() if state != "closed" and then == "closed"}
    assert closing == {"leave"}


@rule("W3")
def test_a_directory_read_changes_nothing_in_any_state() -> None:
    """Neither what is held nor what may be done."""
    for state in STATES:
        assert window(state).after("directory-read") == window(state)


@rule("V2", "A4")
def test_no_event_changes_what_is_held_or_granted() -> None:
    """The entry is the one that was loaded; a grant is a person's."""
    for event in EVENTS:
        after = window("open").after(event)
        assert (after.skill, after.name) == (SKILL, "flat")


@rule("V2", "A4", "A5")
def test_files_are_read_and_grants_count_while_the_window_is_open_only() -> None:
    """A skill that was revoked is still acted on, and may cause nothing."""
    standing = {state: (window(state).is_acting, window(state).may_read) for state in STATES}
    assert standing == {
        "closed": (False, False),
        "quoted": (True, False),
        "open": (True, True),
        "revoked": (True, False),
    }
    assert [state for state in STATES if window(state).permits(EXECUTE)] == ["quoted", "open"]
    assert [state for state in STATES if window(state).permits("Bash")] == ["quoted", "open"]
    assert not window("open").permits("Write")


@rule("W1", "W2", "W3")
def test_the_table_in_the_documents_is_the_one_that_runs() -> None:
    """People read it in docs/explanation/security.md, between two marks."""
    text = PAGE.read_text()
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == draw_table()


@rule("W1")
def test_the_drawing_has_a_row_for_each_event_and_a_column_for_each_state() -> None:
    """An event or a state that is added to the rules appears in the documents."""
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in draw_table().splitlines()]
    assert rows[0] == ["event", *STATES]
    assert set(rows[1]) == {"---"}
    assert {row[0]: dict(zip(STATES, row[1:], strict=True)) for row in rows[2:]} == EXPECTED
