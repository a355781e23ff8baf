"""The page that a person sees before saying yes."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from rules import rule
from skillwire.catalog.diff import changed_lines
from skillwire.cli.printer import Printer
from skillwire.cli.prompts import page
from skillwire.host.approvals import ApprovalRequest
from skillwire.skill.approval import Approval, ContentChange, contents_of
from skillwire.skill.entry import SkillEntry, build_entry
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.skill.review import review_entry, with_text

DIGEST = "sha256:" + "a" * 64


def entry(*paths: str, **fields: Any) -> SkillEntry:
    files = [(path, DIGEST, 10) for path in ("SKILL.md", *paths)]
    return build_entry("acme/refunds", {"name": "refunds", "description": "Pays back.", **fields}, files)


def request(about: SkillEntry, **changes: Any) -> ApprovalRequest:
    return replace(ApprovalRequest("load", "acme", about, review_entry(about)), **changes)


def shown(
    asked: ApprovalRequest, approval: Approval | None = None, *, colour: bool = False, **options: Any
) -> str:
    stream = StringIO()
    console = Console(file=stream, force_terminal=colour, width=200, color_system="standard" if colour else None)
    printer = Printer(console, console)
    for each in page(asked, approval, **options):
        printer.data(each)
    return stream.getvalue()


@rule("V6")
def test_a_harmless_skill_has_a_short_page() -> None:
    text = shown(request(entry()))
    titles = [line for line in text.splitlines() if not line.startswith(" ")]
    assert len(titles) == 3
    assert {"refunds", "acme"} <= set(titles[0].split())
    assert "10 B" in titles[1]
    assert "not that they are safe" in titles[2]
    assert "unapproved" in text


@rule("A4")
def test_what_widens_is_listed_one_by_one() -> None:
    fields = {"allowed-tools": "Read Bash(git add:*)", "hooks": {"start": "rm\n-rf"}}
    text = shown(request(entry(**fields)))
    assert "  tool Read\n  tool Bash(git add:*)\n" in text
    assert '  hooks: {"start": "rm\\n-rf"}\n' in text
    assert '  allowed-tools: {"all": true}\n' in shown(request(entry(**{"allowed-tools": {"all": True}})))


@rule("B6")
def test_nothing_in_a_skill_acts_on_the_terminal_or_forges_a_line() -> None:
    nasty = "\x1b[2J\n  forged\u202e"
    text = shown(request(entry(description=nasty, hooks=nasty), target=nasty))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "forged" in text
    assert not any(line.strip().startswith("forged") for line in text.splitlines())


def test_markup_is_not_read() -> None:
    assert "[bold red]hi[/] :smile:" in shown(request(entry(description="[bold red]hi[/] :smile:")), colour=True)


@rule("B6")
def test_a_flood_of_files_leaves_the_warnings_on_the_screen() -> None:
    """In a question; the page of its own shows all."""
    flood = entry(*(f"file-{number}.md" for number in range(100)), description="x" * 10_000)
    asked = request(
        flood,
        reviewed=replace(review_entry(flood), hidden=(HiddenFind(HiddenKind.COMMENT, "SKILL.md:1", "psst"),)),
    )
    text = shown(asked, at_most=5)
    assert len(text.splitlines()) < 20
    assert " 96 " in text
    assert "9,000" in text
    title, find = text.splitlines()[-3:-1]
    assert "HIDDEN TEXT" in title
    assert find.startswith("  SKILL.md:1: ")
    assert find.endswith(": psst")
    assert len(shown(asked).splitlines()) > 100


@rule("B6")
def test_external_links_are_shown_whole_and_decoded() -> None:
    address = f"https://a.example/%69gnore/{'all/' * 500}rules"
    review = with_text(review_entry(entry()), "notes.md", f"[x]({address}) [y](file:///etc/passwd)\n")
    text = shown(request(entry(), reviewed=review)).replace("\n  … ", "")
    assert f"  {address}  decoded: {address.replace('%69', 'i')}  notes.md:1\n" in text
    assert "file:///etc/passwd  notes.md:1\n" in text


@rule("B6")
def test_the_source_is_shown_as_it_is_written() -> None:
    """Nothing is rendered, and what is not seen is spelled out."""
    source = f"---\nname: refunds\n---\n<p hidden>a</p>\r\nb\u200bc\x1b\u2028d\n[x](y 'z')\n\n{'e' * 2500}f\n"
    lines = shown(request(entry(), reviewed=replace(review_entry(entry()), text=source))).splitlines()
    rows = [row.removeprefix("  | ") for row in lines if row.startswith("  |")]
    written = ["---", "name: refunds", "---", "<p hidden>a</p>", "b<U+200B>c<U+001B><U+2028>d", "[x](y 'z')", ""]
    assert rows[: len(written)] == written
    assert "".join(rows[len(written) :]) == f"{'e' * 2500}f"


@rule("B6", "B1")
@pytest.mark.parametrize(("count", "more"), [(2000, []), (3500, ["1,500"])], ids=["all", "too-many"])
def test_a_long_source_is_bounded_and_says_so(count: int, more: list[str]) -> None:
    text = "".join(f"line {number}\n" for number in range(count))
    lines = shown(request(entry(), reviewed=replace(review_entry(entry()), text=text))).splitlines()
    assert [row for row in lines if row.startswith("  | ")][-1] == "  | line 1999"
    assert [word for row in lines if "--file SKILL.md" in row for word in row.split() if word[0].isdigit()] == more


@rule("A2")
def test_a_difference_is_coloured_by_what_it_is() -> None:
    change = ContentChange(("skill://acme/refunds/new.md",), (), ("skill://acme/refunds/SKILL.md",))
    text = shown(request(entry(), change=change, diff=("@@ -1 +1 @@", "-old", "+new\x1b")), colour=True)
    assert "changed" in text
    for piece in ("\x1b[32m  + new.md", "\x1b[31m  | -old", "\x1b[32m  | +new<U+001B>", "\x1b[36m  | @@ -1 +1 @@"):
        assert piece in text


@rule("A1", "A4")
def test_an_approval_is_told_with_who_and_what_was_granted() -> None:
    about = entry()
    approval = Approval("acme", about.uri, contents_of(about), "ada\n", 0.0, frozenset({"execute"}))
    text = shown(request(about), approval)
    assert "approved by ada" in text
    assert "execute" in text
    other = replace(approval, contents=frozenset({(about.uri, "sha256:" + "b" * 64)}))
    assert "changed" in shown(request(about), other)


@rule("V7")
def test_a_skill_that_cannot_be_verified_is_marked_at_the_end() -> None:
    about = build_entry("acme/refunds", {"name": "refunds", "description": "Pays back."}, "dynamic")
    lines = shown(request(about)).splitlines()
    assert "NOTHING CAN BE VERIFIED" in lines[-3]
    assert not any("fingerprint" in line for line in lines)


@rule("B1")
def test_only_what_can_be_compared_quickly_is() -> None:
    """A server chooses the lines, and how many."""
    many = b"line\n" * 5000
    for old, new in ((many, many + b"x\n"), (b"\xff", b"text")):
        [line] = changed_lines("a.md", old, new)
        assert line.startswith("~ a.md: ")
    assert len(list(changed_lines("a.md", b"a\n" * 1000, b"b\n" * 1000))) == 402
