"""Words of queries and names, and snippets. No query is syntax."""

from __future__ import annotations

from skillwire.limits import Limits
from skillwire.search.text import MAX_SNIPPET, SEAM, Query, make_snippet, name_key, parse_query, quoted, seamed

LONG = "word " * 500


def words(text: str) -> list[str]:
    return [term[0] for term in parse_query(text).terms]


WORDS = {
    "my customer wants their money back, how do I do that?": ["customer", "money", "back"],
    "fill-in a PDF form": ["fill", "pdf", "form"],
    "refund refund REFUND": ["refund"],
    'NEAR("a" b*) -c:d ^e {x}': ["near", "b", "c", "e", "x"],
    "how do I do that": ["how", "do", "i", "that"],
    "": [],
    "?!… — “” \x00 🎉 \ud800": [],
    "客户要退款": ["客户", "户要", "要退", "退款"],
    "退 PDF退款": ["退", "pdf", "退款"],
    "नमस्ते दुनिया": ["नमस्ते", "दुनिया"],
    "ＰＤＦ": ["pdf"],
}


def test_words_that_say_something_are_kept() -> None:
    assert {text: words(text) for text in WORDS} == WORDS


def test_a_word_with_humps_may_also_stand_apart() -> None:
    assert parse_query("GitHub pdfForm OutOfMemory").terms == (
        ("github", "git hub"),
        ("pdfform", "pdf form"),
        ("outofmemory",),  # its parts are words that say nothing
    )


def test_a_last_word_may_be_unfinished() -> None:
    unfinished = {
        "fill a pdf fo": True,
        "fill a pdf ": False,
        "fill a pdf?": False,
        "how to": True,
        "refund the": False,
    }
    assert {text: parse_query(text).unfinished for text in unfinished} == unfinished


def test_of_a_long_request_the_beginning_counts() -> None:
    limits = Limits(max_query_length=20, max_query_words=2)
    assert parse_query("alpha beta gamma delta", limits).terms == (("alpha",), ("beta",))
    assert parse_query("x" * 1_000_000, limits).terms == (("x" * 20,),)


def test_nothing_typed_is_no_query() -> None:
    assert not parse_query("...")
    assert Query() == Query("", (), unfinished=False)


def test_whatever_is_quoted_is_a_string() -> None:
    assert quoted(('a"b',)) == '"a""b"'
    assert quoted(("github", "git hub")) == '("github" OR "git hub")'


def test_spellings_of_a_name_have_one_key() -> None:
    names = ["pdf-form-filling", "PdfFormFilling", "PDF form_filling", "pdfFormFilling"]
    assert {name_key(name) for name in names} == {"pdf form filling"}


def test_an_indexed_text_can_still_be_read() -> None:
    assert seamed("a\x00b\ud800c\nd") == "a b c d"
    assert seamed("退款 ok") == f"退{SEAM}款{SEAM} ok"


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
