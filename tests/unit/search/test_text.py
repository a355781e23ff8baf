"""A short piece of the text that was found."""

from __future__ import annotations

from skillwire.search.text import MAX_SNIPPET, make_snippet

LONG = "word " * 500


def test_a_piece_shows_the_words_in_their_company() -> None:
    text = f"{LONG}the refund.\n{LONG}Give   the customer\n\ttheir money back. {LONG}"
    piece = make_snippet([("customer",), ("money",), ("refund",)], "", text)
    assert "Give the customer their money back." in piece
    assert piece.startswith("…word")
    assert piece.endswith("word…")
    assert len(piece) <= MAX_SNIPPET


def test_of_two_texts_the_one_with_more_words_is_shown() -> None:
    assert make_snippet([("pdf",), ("form",)], "A form in a pdf.", "About forms.") == "A form in a pdf."
    assert make_snippet([("form",)], "A form.", "About forms.") == "About forms."


def test_a_word_counts_in_its_other_forms_but_not_inside_others() -> None:
    assert make_snippet([("refunded",)], "x", "Refunds.") == "Refunds."
    assert make_snippet([("form",)], "x", "Perform.") == "x"
    assert make_snippet([("退款",)], "x", "申请退款。") == "申请退款。"


def test_without_any_word_it_is_the_beginning_of_the_description() -> None:
    assert make_snippet([], "What it is for.", "Body.") == "What it is for."
    piece = make_snippet([("absent",)], "x" * 1000, "")
    assert piece == "x" * (MAX_SNIPPET - 1) + "…"
