"""A template never misses a URI that some server would read by it (M3)."""

from __future__ import annotations

from rules import rule
from skillwire.wire.templates import canonical_uri, is_template, matches_template

MATCHING = [
    ("orders://{order}", "orders://7"),
    ("orders://{order}", "orders://"),
    ("orders://{order}", "orders://a%2Fb"),  # decoded, it has a slash; as it stands, it has none
    ("orders://{order}", "orders://7?x=1"),
    ("orders://{order}", "orders://7#part"),
    ("orders://{order}", "ORDERS://7"),
    ("orders://{order}/lines", "orders://7/lines"),
    ("orders://{order}/{line}", "orders://7/8"),
    ("orders://{a}-{b}", "orders://1-2-3"),
    ("orders://{path*}", "orders://a/b/c"),
    ("orders://{+path}", "orders://a/b/c"),
    ("orders://x{/more*}", "orders://x/a/b"),
    ("orders://{id}{?year,month}", "orders://7?year=2026"),
    ("orders://{id}{?year}", "orders://7"),
    ("orders://über/{x}", "orders://%C3%BCber/7"),
    ("orders://%C3%BCber/{x}", "orders://über/7"),
]
OTHER = [
    ("orders://{order}", "orders://7/lines"),
    ("orders://{order}", "rules://7"),
    ("orders://{order}/lines", "orders://7"),
    ("orders://{a}-{b}", "orders://12"),
    ("orders://x{/more*}", "orders://y/a"),
]


def test_a_uri_of_a_template_is_known_in_every_spelling() -> None:
    assert [pair for pair in MATCHING if not matches_template(*pair)] == []
    assert all(is_template(template) for template, _ in MATCHING)


def test_another_uri_is_not() -> None:
    assert [pair for pair in OTHER if matches_template(*pair)] == []


def test_what_has_no_variables_is_no_template() -> None:
    assert not is_template("orders://7")
    assert not is_template("orders://}{")


def test_one_spelling_stands_for_those_that_servers_take_for_the_same() -> None:
    assert canonical_uri("HTTP://Example.com") == canonical_uri("http://example.com/")
    assert canonical_uri("rules://refunds") == "rules://refunds"
    assert canonical_uri("no uri") == "no uri"


@rule("B1")
def test_a_long_text_that_nearly_matches_takes_no_longer_than_it_is_long() -> None:
    """Linear, whatever a stranger sends."""
    assert not matches_template("a://{b}-{c}-{d}-{e}-{f}.{g}", "a://" + "-" * 500_000)
