"""U6, B6: the links and comments of a Markdown text as a reader sees them, with their places."""

from __future__ import annotations

from time import process_time

import pytest

from rules import rule
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.markdown import read_markdown, read_text


def targets(text: str) -> list[str]:
    return [link.target for link in read_markdown(text).links]


BY_READING = ("link-title", "link-words", "alt-text", "lost-cell", "tag-characters", "scattered-characters")


def unshown(text: str) -> list[str]:
    return [item.text for item in read_markdown(text).hidden]


@rule("U6")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("[a](b.md)", ["b.md"], id="link"),
        pytest.param("[![a](b.png)](c.md)", ["b.png", "c.md"], id="image-in-a-link"),
        pytest.param('[a](<b c.md> "title")', ["b c.md"], id="angle-brackets"),
        pytest.param("[a](b\\_c&amp;d.md)", ["b_c&d.md"], id="escapes"),
        pytest.param("[a](b%20c.md) [d](é.md)", ["b%20c.md", "é.md"], id="as-written"),
        pytest.param(
            "[a](file:///etc/passwd) [b](javascript:x) [c](data:text/html,x)",
            ["data:text/html,x", "file:///etc/passwd", "javascript:x"],
            id="schemes",
        ),
        pytest.param("<https://example.com>", ["https://example.com"], id="autolink"),
        pytest.param("[a][x] [x] ![x]\n\n[x]: b.md\n", ["b.md", "b.md", "b.md"], id="references"),
        pytest.param("> - 1. [a](b.md)\n", ["b.md"], id="nested-blocks"),
        pytest.param("# [a](b.md)\n\nx **[c](d.md)** _[e](f.md)_\n", ["b.md", "d.md", "f.md"], id="emphasis"),
        pytest.param("![a [b](c.md) ![d](e.png)](f.png)", ["c.md", "e.png", "f.png"], id="links-in-an-image"),
    ],
)
def test_links_and_images_are_found_as_they_are_written(text: str, expected: list[str]) -> None:
    """Also those that a renderer would refuse."""
    assert sorted(targets(text)) == expected


@rule("U6")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("`[a](b.md)`", id="code"),
        pytest.param("```\n[a](b.md)\n```\n", id="fence"),
        pytest.param("    [a](b.md)\n", id="indented"),
        pytest.param("\\[a](b.md)", id="escaped"),
        pytest.param("[a]: b.md", id="definition"),
        pytest.param("<pre>\n[a](b.md)\n</pre>\n", id="html"),
        pytest.param("[a]()", id="empty-target"),
        pytest.param("", id="nothing"),
    ],
)
def test_what_is_no_link_to_a_reader_is_none_here(text: str) -> None:
    """Code and HTML are not Markdown."""
    assert targets(text) == []


@rule("F7")
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_the_offset_is_where_the_target_is_written(newline: str) -> None:
    """With either line end, wherever the block stands."""
    text = "# T\n\nx\ny [a](one.md)\nz ![b](two.png)\n\n- é [c](<three.md>)\n\n> q\n> [d](four.md)\n".replace(
        "\n", newline
    )
    links = read_markdown(text).links
    assert [link.target for link in links] == ["one.md", "two.png", "three.md", "four.md"]
    assert [text[link.offset :][: len(link.target)] for link in links] == [link.target for link in links]


@rule("F7")
def test_the_offset_is_not_that_of_a_label_with_the_same_words() -> None:
    [link] = read_markdown("See [guide.md](guide.md).").links
    assert link.offset == 15


@rule("P6")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[the *guide* for `x`](a.md)", "the guide for x"),
        ("[over\ntwo lines](a.md)", "over two lines"),
        ("![a picture](a.md)", "a picture"),
        ("[see][x]\n\n[x]: a.md", "see"),
        ("[](a.md)", ""),
    ],
    ids=["emphasis", "two-lines", "image", "reference", "none"],
)
def test_the_words_of_a_link_are_what_a_reader_sees(text: str, words: str) -> None:
    """They become the title of a file."""
    assert [(link.target, link.words) for link in read_markdown(text).links] == [("a.md", words)]


@rule("F7")
def test_two_links_to_one_file_have_two_places() -> None:
    first, second = read_markdown("[a](b.md) and\n[c](b.md)").links
    assert (first.offset, second.offset) == (4, 18)


@rule("F7")
def test_a_link_written_in_other_characters_has_a_place_in_its_block() -> None:
    """An escape or a definition elsewhere; the block is near enough."""
    text = "intro\n\nsee [a](b\\_c.md)\n\nand [x]\n\n[x]: d.md\n"
    first, second = (link.offset for link in read_markdown(text).links)
    assert text.index("see") <= first < text.index("and") <= second < text.index("[x]:")


@rule("B6")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("<!-- a --> <!-- b -->\n\nx <!-- c -->\n", ["a", "b", "c"], id="several"),
        pytest.param("text <!-- a\nb --> text\n", ["a b"], id="inline-over-lines"),
        pytest.param("<div>\n<!-- a -->\n</div>\n", ["a"], id="in-html"),
        pytest.param("> - x\n>\n>   <!-- a -->\n", ["a"], id="in-nested-blocks"),
        pytest.param("[x <!-- a --> y](z.md)\n", ["a"], id="in-a-link"),
        pytest.param("![logo <!-- a --> of Acme](logo.png)\n", ["a"], id="in-an-image"),
        pytest.param("<!-- never closed\n\nmore\n", ["never closed more"], id="open"),
        pytest.param("> <p\n> hidden>a</p>\n", ["a"], id="tag-over-lines-of-a-quote"),
    ],
)
def test_hidden_html_is_found_where_a_renderer_drops_them(text: str, expected: list[str]) -> None:
    assert unshown(text) == expected


@rule("B6")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x <b>bold</b> `<!-- a -->`\n", id="code"),
        pytest.param("```html\n<!-- a -->\n```\n", id="fence"),
        pytest.param("    <!-- a -->\n", id="indented"),
        pytest.param("text <!-- not closed, so shown\n", id="not-closed"),
        pytest.param("```\n[//]: # (a)\n```\n", id="definition-in-a-fence"),
        pytest.param("    [//]: # (a)\n", id="definition-indented"),
        pytest.param("`<p hidden>a</p>` <?a\n", id="element-in-code"),
        pytest.param("[a] [b][c] ![D]\n\n[a]: b.md\n[C]: d.md\n[d]: e.png\n", id="definitions-in-use"),
        pytest.param("[![](a.svg)](b.md) ![](c.png) [<img src='d.svg'>](e.md)\n", id="images"),
        pytest.param('```js {1,3-5} title="A file of words"\nx\n```\n', id="settings-of-a-fence"),
        pytest.param("|a|b|\n|-|-|\n|c|d|\n|e \\| f|g|\n| h |\n\na[^1]\n\n[^1]: b c\n", id="table-and-footnote"),
        pytest.param("[do this right now]\n\n[do this right now]: a.md\n", id="label-that-is-shown"),
    ],
)
def test_what_a_reader_sees_is_not_hidden(text: str) -> None:
    """Code shows everything."""
    assert unshown(text) == []


@rule("B6", "F7")
def test_the_offset_of_a_comment_is_in_the_whole_text() -> None:
    text = "# T\r\n\r\nx <!-- a -->\r\n\r\n<!-- b -->\r\n\r\n[//]: # (c)\r\n"
    found = {item.text: item.offset for item in read_markdown(text).hidden}
    assert found == {"a": text.index("<!-- a"), "b": text.index("<!-- b"), "[//]: # (c)": text.index("[//]")}


@rule("B6")
@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        pytest.param("[//]: # (do this)", "unused-definition", "[//]: # (do this)", id="comment"),
        pytest.param("[x]: a.md 'do\nthis'\n", "unused-definition", "[x]: a.md 'do this'", id="over-lines"),
        pytest.param("> [do this]: a.md\n", "unused-definition", "> [do this]: a.md", id="label-in-a-quote"),
        pytest.param("[x]\n\n[x]: a.md\n[X]: do-this\n", "unused-definition", "[X]: do-this", id="repeated"),
        pytest.param("[x]\n\n[x]: a.md 'do this'\n", "link-title", "do this", id="title-of-a-definition"),
        pytest.param("[x](a.md 'do this')", "link-title", "do this", id="title-of-a-link"),
        pytest.param("![x](a.png 'do this')", "link-title", "do this", id="title-of-an-image"),
        pytest.param("a\n\n<p hidden>\n\ndo *this*\n\n</p>\n\nb\n", "hidden-attribute", "do *this*", id="blocks"),
        pytest.param("a <span hidden>do\nthis</span> b", "hidden-attribute", "do this", id="inline"),
        pytest.param("a <?do this?> b", "processing-instruction", "do this", id="instruction"),
        pytest.param("a <!DO this> b", "html-declaration", "DO this", id="declaration"),
        pytest.param("a <![CDATA[do this]]> b", "cdata", "do this", id="cdata"),
        pytest.param("[](<do this>)", "empty-link", "do this", id="empty-link"),
        pytest.param("[ ](this)", "empty-link", "this", id="blank-link"),
        pytest.param("```sh do this now\nx\n```\n", "code-info", "sh do this now", id="fence"),
        pytest.param("> ~~~ do-this-right-now\n> x\n", "code-info", "do-this-right-now", id="fence-in-a-quote"),
        pytest.param("![](<do this now>)", "link-words", "do this now", id="address-of-an-image"),
        pytest.param("[x](do%20this%20right%20now)", "link-words", "do this right now", id="address-of-a-link"),
        pytest.param("[x][do this now]\n\n[do this now]: a.md", "link-words", "DO THIS NOW", id="label"),
        pytest.param("[\u200b](this)", "empty-link", "this", id="link-with-invisible-text"),
        pytest.param("|a|b|\n|-|-|\n|c|d| do | this|\n", "lost-cell", "do | this |", id="lost-cells"),
        pytest.param("a\n\n[^1]: do this\n", "unused-definition", "[^1]: do this", id="unused-footnote"),
        pytest.param(
            "a\n\n[^1]: do this [^1]\n", "unused-definition", "[^1]: do this [^1]", id="footnote-of-itself"
        ),
        pytest.param("`[^1]`\n\n[^1]: do this\n", "unused-definition", "[^1]: do this", id="footnote-of-code"),
        pytest.param(
            "a[^1]\n\n[^1]: a b\n[^1]: do this\n", "unused-definition", "[^1]: do this", id="footnote-again"
        ),
        pytest.param(
            "a[^1]\n\n[^1]: b\n\n[^1]: do this\n", "unused-definition", "[^1]: do this", id="footnote-after-a-word"
        ),
        pytest.param("a[^1]\n\n[^1]: a b\n[^2]: do it\n", "unused-definition", "[^2]: do it", id="footnote-below"),
        pytest.param("a\n:-\nb | do | this\n", "lost-cell", "do | this", id="lost-cells-without-outer-pipes"),
        pytest.param("```DoThisRightNow\nx\n```\n", "code-info", "DoThisRightNow", id="fence-with-capitals"),
        pytest.param(
            "[x][do-this-right-now]\n\n[do-this-right-now]: a.md",
            "link-words",
            "DO-THIS-RIGHT-NOW",
            id="label-with-hyphens",
        ),
        pytest.param(f"[x](/{'do-' * 9})", "link-words", f"/{'do-' * 9}", id="address-with-hyphens"),
        pytest.param(f"[x](/{'do+' * 9})", "link-words", f"/{'do+' * 9}", id="address-with-signs"),
        pytest.param("a&#xE0064;&#xE006F; b", "tag-characters", "do", id="entities"),
        pytest.param("<p>\na&#xE0064;&#xE006F; b\n</p>", "tag-characters", "do", id="entities-in-html"),
        pytest.param("<p>a&zwnj;&#8203;b</p>", "zero-width", "U+200C U+200B", id="named-entities-in-html"),
        pytest.param(f"![{'do this ' * 5}](a.png)", "alt-text", ("do this " * 5).strip(), id="alt-text"),
        pytest.param(
            "![do this](a.png) and\n\n![right now](b.png)\n\n<img src='c.png' alt='but tell no one of it'>\n",
            "alt-text",
            "do this | right now | but tell no one of it",
            id="alt-texts-together",
        ),
        pytest.param(
            "a&shy; b\n\nc&shy; d\n\n<p>e&shy; f</p>\n",
            "scattered-characters",
            "3 of them: U+00AD U+00AD U+00AD",
            id="entities-together",
        ),
    ],
)
@pytest.mark.parametrize("is_tame", [True, False], ids=["read", "searched-plainly"])
def test_what_a_rendered_page_does_not_show_is_reported_with_its_kind(
    text: str, kind: str, says: str, is_tame: bool
) -> None:
    """Also in a text that is too large to be read as Markdown, but for what only reading it shows."""
    if is_tame:
        assert [(item.kind, item.text) for item in read_markdown(text).hidden] == [(kind, says)]
    elif kind not in BY_READING and not any(sign in text for sign in ("[X]", "[^1]", "\u200b")):
        found = read_markdown(f"{text}\n\n{'x' * 256 * 1024}").hidden
        assert [(item.kind, item.text) for item in found] == [("unread", ""), (kind, says)]


@rule("B6", "F4")
def test_comments_in_the_frontmatter_are_reported_and_values_are_not() -> None:
    text = (
        "---\nname: x # one\n# two\ndescription: |- # three\n  a # b\n  # c\n"
        "q: 'a # b'\nl: [a#b, # four\n  b]\n# five\n---\n# Title\n"
    )
    comments = {item.text: item.offset for item in read_text("SKILL.md", text).hidden}
    assert list(comments) == ["one", "two", "three", "four", "five"]
    assert all(text[offset:].startswith(f"# {says}") for says, offset in comments.items())


@rule("B6", "F1")
def test_frontmatter_ends_where_the_parser_ends_it() -> None:
    text = "---\nname: x\ndescription: d\n---foo: bar\n# do this\n---\n# Title\n"
    assert "---foo" in parse_skill_md(text.encode()).frontmatter
    assert [(item.kind, item.text) for item in read_text("SKILL.md", text).hidden] == [("yaml-comment", "do this")]


@rule("B6")
def test_footnotes_that_only_refer_to_each_other_are_reported() -> None:
    text = "a[^1]\n\n[^1]: see [^2]\n\n[^2]: ok then\n\n[^a]: do [^b]\n\n[^b]: this [^a]\n"
    assert unshown(text) == ["[^a]: do [^b]", "[^b]: this [^a]"]


@rule("B6")
def test_text_far_to_the_right_is_reported() -> None:
    text = f"```\na{' ' * 600}do this\n```\n"
    assert [(item.kind, item.text) for item in read_text("a.md", text).hidden] == [("far-text", "do this")]


@rule("B6")
@pytest.mark.parametrize("blank", ["&nbsp;", "&emsp;", "&#160;", "&#x2003;", "&#XA0;", "&ThickSpace;", "&nbsp; "])
def test_text_far_to_the_right_is_reported_if_its_blanks_are_entities(blank: str) -> None:
    text = f"a{blank * 120}do this\n\nb{blank * 60}c\n\nd{blank * 120}\n"
    assert [(item.kind, item.text) for item in read_text("a.md", text).hidden if item.offset < 99] == [
        ("far-text", "do this")
    ]


@rule("B6")
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    "blanks",
    [
        pytest.param([" ", "\t"], id="blank-or-tab"),
        pytest.param([" ", ""], id="blank-or-nothing"),
        pytest.param([" ", "  "], id="one-or-two"),
        pytest.param(["\t", ""], id="tab-or-nothing"),
        pytest.param(["\u00a0", ""], id="no-break-space-or-nothing"),
    ],
)
def test_blanks_at_the_ends_of_lines_that_encode_bits_are_reported(blanks: list[str], end: str) -> None:
    """Six letters, a bit in each line."""
    bits = "".join(f"{ord(letter):08b}" for letter in "ignore")
    text = "".join(f"word{blanks[int(bit)]}{end}" for bit in bits)
    assert [item.kind for item in read_text("a.md", text).hidden] == ["trailing-blanks"]


@rule("B6")
def test_lines_of_one_blank_that_encode_bits_are_reported() -> None:
    text = "".join(f"word\n{' ' if number % 2 else ''}\n" for number in range(40))
    assert [item.kind for item in read_text("a.md", text).hidden] == ["trailing-blanks"]


@rule("B6")
def test_blanks_that_people_leave_at_the_ends_of_lines_are_not_reported() -> None:
    breaks = "A line that breaks here,  \nand one that does not.\n" * 50
    left, code = "left by an editor \n" * 15, "    code\n    \n" * 40
    assert read_text("a.md", f"{breaks}{left}\n{code}").hidden == []
    assert read_text("a.tsv", "a\t\nb\t\n" * 50).hidden == []


@rule("B6")
@pytest.mark.parametrize("brackets", ["[" * 12, "> " * 30 + "a"], ids=["brackets", "quotes"])
@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param("[a](b.md 'do this')", id="title"),
        pytest.param("![do this and that and more of the same now](a.png)", id="alt"),
        pytest.param("[a](<b/do this now>)", id="address"),
        pytest.param("|a|\n|-|\n|b| do this|", id="cell"),
        pytest.param("&#xE0064;&#xE006F;", id="entities"),
        pytest.param("[^1]: do this", id="footnote"),
    ],
)
def test_depth_does_not_switch_the_search_off(brackets: str, hidden: str) -> None:
    """What could not be read is reported, so that a person looks at the source."""
    assert "unread" in [item.kind for item in read_markdown(f"{brackets}\n\n{hidden}\n").hidden]


@rule("B6", "B1")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("`" * 300_000, id="backticks"),
        pytest.param(f'<p style="{"a" * 200_000}">', id="style"),
        pytest.param(f'<p style="{"color:#000;background:#" * 9_000}">', id="colours"),
        pytest.param(f'<p style="{" " * 200_000}">', id="blanks"),
        pytest.param(f'<p style="{"margin:0 " * 20_000}">', id="margins"),
        pytest.param("<a b>" * 10_000, id="unknown-tags"),
        pytest.param("<i id=a></i>" * 10_000, id="identifiers"),
        pytest.param(f"<img srcset='{'a ' * 100_000}'>", id="srcset"),
        pytest.param(f"<a href='{'a-' * 100_000}' rel='{'me ' * 50_000}'>", id="addresses"),
        pytest.param("<details><summary>" * 5_000, id="details"),
        pytest.param((" " * 1000 + "\n") * 200, id="blank-lines"),
        pytest.param(" " * 200_000, id="blank"),
        pytest.param("[^a]: [^b] " * 10_000, id="footnotes"),
        pytest.param("[^a]: [^b]\n" * 10_000, id="footnotes-in-lines"),
        pytest.param("\n\n".join(f"[^{i}]: a [^{i + 1}]" for i in range(5_000)), id="footnotes-in-a-row"),
        pytest.param("a\u200d" * 20_000, id="scattered"),
        pytest.param("&nbsp;" * 40_000, id="blank-entities"),
        pytest.param(("&nbsp;" * 99 + "a") * 400, id="some-blank-entities"),
        pytest.param("<small>" * 10_000 + "</sub>" * 10_000, id="small"),
        pytest.param("<a-b>" * 10_000 + "</a-b>" * 10_000, id="unknown-tags-nested"),
        pytest.param("<sub><small>" * 5_000 + "</small>" * 10_000, id="smaller"),
        pytest.param("a \t" * 60_000, id="blanks-between"),
        pytest.param(f"---\na: {'[' * 100_000} # x\n---\n", id="nested-yaml"),
    ],
)
def test_looking_for_hidden_text_takes_time_in_proportion_to_the_text(text: str) -> None:
    """A quadratic search of these takes minutes."""
    started = process_time()
    read_text("SKILL.md", text)
    assert process_time() - started < 10


@rule("U6", "F6")
@pytest.mark.parametrize(
    ("text", "links", "hidden"),
    [
        pytest.param("a\r\rb\r\n\n\r\r[x](y.md)", ["y.md"], [], id="link"),
        pytest.param("\r\r\r\r<!-- c -->\r[x](y.md)\r\r", ["y.md"], ["c"], id="comment"),
    ],
)
def test_carriage_returns_alone_are_line_ends_too(text: str, links: list[str], hidden: list[str]) -> None:
    """CommonMark ends a line at a carriage return; no file makes the check fail."""
    assert (targets(text), unshown(text)) == (links, hidden)


@rule("U6")
def test_a_long_table_of_links_is_read_like_a_short_one() -> None:
    """Many links in one block are not deep ones; references, escapes and code keep their meaning."""
    row = "| [a](a.md) | [b][ref] | [c](<c d.md>) | [e](e\\_f.md) | `[no](gone.md)` |\n"
    expected = ["a.md", "b.md", "c d.md", "e_f.md"]
    for rows in (1, 5, 40):
        text = f"| 1 | 2 | 3 | 4 | 5 |\n|---|---|---|---|---|\n{row * rows}\n[ref]: b.md\n"
        assert targets(text) == expected * rows


@rule("U6", "B6")
@pytest.mark.parametrize(
    ("text", "links", "hidden"),
    [
        pytest.param("<!-- a\n\nplain\n\nb -->\n\nx", [], ["a plain b"], id="comment"),
        pytest.param("<!-- a\n\n- plain\n- b [x](y.md)\n", [], ["a - plain - b [x](y.md)"], id="open-comment"),
        pytest.param("<script>\n\nplain\n\n</script>\n", [], ["plain"], id="script"),
        pytest.param("```\n\nplain\n\n- a\n- [x](y.md)\n\n```\n[a](b.md)", ["b.md"], [], id="fence"),
        pytest.param("- ```\n\nplain\n\n[a](b.md)", ["b.md"], [], id="fence-in-an-item"),
        pytest.param("- plain\n- [a](b.md)\n  - plain\n\n        [c](d.md)", ["b.md"], [], id="code-in-an-item"),
        pytest.param("plain `\n2. [a](b.md) `", [], [], id="number-in-a-paragraph"),
        pytest.param("- plain\n<div>\n- a\n<b hidden>c</b>\n</div>", [], ["c"], id="items-in-html"),
        pytest.param("plain\n\n[a]: b.md\n\nplain\n\n[a]", ["b.md"], [], id="definition"),
    ],
)
def test_parts_without_markup_do_not_change_what_the_others_mean(
    text: str, links: list[str], hidden: list[str]
) -> None:
    assert (targets(text), unshown(text)) == (links, hidden)


@rule("U6", "B6")
@pytest.mark.parametrize("times", [9, 10, 20, 300])
def test_open_brackets_do_not_hide_the_link_after_them(times: int) -> None:
    """In the same paragraph, wherever the reader's bound on nesting lies."""
    for brackets in ("[", "!["):
        text = f"# Title\n\n{brackets * times} see [x](../x.md) <!-- y -->\n"
        facts = read_markdown(text)
        assert ("../x.md", text.index("../x.md")) in [link[:2] for link in facts.links]
        hidden = [(item.text, item.offset) for item in facts.hidden if item.kind != "unread"]
        assert hidden == [("y", text.index("<!--"))]


@rule("U6", "B1")
def test_a_text_too_large_to_be_read_as_markdown_is_searched_plainly() -> None:
    """What stands in code counts then, too: better one too many than one missed."""
    text = "`[a](../x.md) <!-- y -->`\n"
    large = text + "x" * (256 * 1024 - len(text))
    assert (targets(large), unshown(large)) == ([], [])
    assert (targets(f"{large}x"), unshown(f"{large}x")) == (["../x.md"], ["", "y"])


@rule("B1")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("![" * 800 + "](a)" * 800, id="images"),
        pytest.param("> " * 3000 + "[x](a)", id="quotes"),
        pytest.param("- " * 3000 + "[x](a)", id="lists"),
        pytest.param("*a **b " * 1000, id="emphasis"),
        pytest.param("<b>" * 1000, id="tags"),
        pytest.param("x <!-- " * 1000, id="comments"),
        pytest.param("[a](<b" * 1000, id="links"),
        pytest.param("\x00\x0b\u2028\ufffe" * 500, id="controls"),
    ],
)
def test_deep_or_unfinished_markup_is_read_to_the_end(text: str) -> None:
    """No recursion without a bound; the text after it is still seen."""
    facts = read_markdown(text + "\n\n\n[last](end.md)\n")
    assert facts.links[-1].target == "end.md"
