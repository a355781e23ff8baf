"""Rare words lead, common ones follow, and no stage ranks more than it should."""

from __future__ import annotations

from skillwire.search.fts5 import ROWS, Counted, Stage, plan_search

MANY = 100 * ROWS


def plan(total: int, **counts: int) -> list[Stage]:
    return list(plan_search([Counted(word, skills) for word, skills in counts.items()], total))


def test_in_a_small_catalog_all_words_lead() -> None:
    assert plan(ROWS, a=ROWS, b=ROWS, c=1) == [Stage(("(c OR a OR b)",), is_small=True)]


def test_what_is_nowhere_is_not_looked_for() -> None:
    assert plan(MANY, a=0) == []
    assert plan(MANY, a=0, b=1) == [Stage(("(b)",), is_small=True)]


def test_a_common_word_adds_to_what_rare_ones_find() -> None:
    first, *others = plan(MANY, common=2 * ROWS, rare=ROWS - 1, rarer=1)
    assert first == Stage(("(rarer OR rare) AND (common)", "(rarer OR rare)"), is_small=True)
    assert [stage.expressions for stage in others] == [
        ("name : (common)",),
        ("{name description} : (common)",),
        ("(common)",),
    ]


def test_a_word_of_every_third_skill_says_nothing_beside_a_rare_one() -> None:
    assert plan(MANY, everywhere=MANY // 3, rare=1)[0] == Stage(("(rare)",), is_small=True)


def test_where_all_are_common_company_comes_first() -> None:
    stages = plan(MANY, a=MANY // 2, b=MANY // 3, c=MANY // 4)
    assert [stage.expressions[0] for stage in stages] == [
        "{name description} : (c AND (b OR a))",
        "(c AND (b OR a))",
        "name : (c OR b OR a)",
        "{name description} : (c OR b OR a)",
        "(c OR b OR a)",
    ]
    assert not any(stage.is_small for stage in stages)


def test_of_many_common_words_a_few_are_looked_for() -> None:
    stages = plan(MANY, **{f"w{number}": MANY // 10 + number for number in range(32)})
    assert stages[-1].expressions == ("(w0 OR w1 OR w2)",)
