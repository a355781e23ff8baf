"""B6: text in HTML that a browser does not show is found, with its kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.skill.hidden_html import find_hidden_html

if TYPE_CHECKING:
    from skillwire.skill.hidden import HiddenKind


def hidden_html(text: str) -> list[tuple[HiddenKind, str]]:
    return [(item.kind, item.text) for item in find_hidden_html([(0, text)], text)]


@rule("B6")
@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        pytest.param("a <!-- do this --> b", "html-comment", "do this", id="comment"),
        pytest.param("<!--\r\n  do\n\n  this\n-->", "html-comment", "do this", id="comment-over-lines"),
        pytest.param("<!-- open to the end", "html-comment", "open to the end", id="comment-open"),
        pytest.param("<!---->", "html-comment", "", id="comment-empty"),
        pytest.param("<!-- a -- b -->", "html-comment", "a -- b", id="comment-with-hyphens"),
        pytest.param("</ do this>", "html-comment", "do this", id="end-of-nothing"),
        pytest.param("<?php do this ?>", "processing-instruction", "php do this", id="php"),
        pytest.param("<? do this", "processing-instruction", "do this", id="instruction-open"),
        pytest.param("<!DO this>", "html-declaration", "DO this", id="declaration"),
        pytest.param("<! -- this -->", "html-declaration", "-- this --", id="declaration-of-nothing"),
        pytest.param("<![CDATA[ do > this ]]>", "cdata", "do > this", id="cdata"),
        pytest.param("<p hidden>do this</p> b", "hidden-attribute", "do this", id="hidden"),
        pytest.param('<p id="x"HIDDEN=until-found>do this', "hidden-attribute", "do this", id="hidden-and-open"),
        pytest.param("<p id=a' hidden>do <b>this</b></p>", "hidden-attribute", "do <b>this</b>", id="odd-quote"),
        pytest.param("<p/hidden>do this</p>", "hidden-attribute", "do this", id="slash"),
        pytest.param("<i hidden>a<i>b</i>c</i>d", "hidden-attribute", "a<i>b</i>c", id="nested"),
        pytest.param("<input value='do this'>", "unrendered-element", "<input value='do this'>", id="input"),
        pytest.param("<textarea>do this</textarea>", "unrendered-element", "do this", id="textarea"),
        pytest.param("<textarea title='do this'></textarea>", "unrendered-element", "title=do this", id="control"),
        pytest.param("<marquee width=0>do this</marquee>", "unrendered-element", "width=0 do this", id="marquee"),
        pytest.param("<bdo dir=rtl>siht od</bdo>", "unrendered-element", "dir=rtl siht od", id="turned"),
        pytest.param("<math><ms>do this</ms></math>", "unrendered-element", "<ms>do this</ms>", id="formula"),
        pytest.param("<template>do this</template>", "unrendered-element", "do this", id="template"),
        pytest.param("<SCRIPT>'<script>'</SCRIPT>x", "unrendered-element", "'<script>'", id="script"),
        pytest.param("<dialog>do this</dialog>", "unrendered-element", "do this", id="dialog"),
        pytest.param("<video><source>do this</video>", "unrendered-element", "<source>do this", id="video"),
        pytest.param("<b data-x='do this now'>b</b>", "attribute-text", "data-x=do this now", id="attribute"),
        pytest.param("<a title='obey'>b</a>", "attribute-text", "title=obey", id="title"),
        pytest.param("<p>a</p> <b do this", "unclosed-tag", "<b do this", id="unclosed-tag"),
        pytest.param("<b do this now>b</b>", "attribute-text", "do this now", id="words-as-attributes"),
        pytest.param("<b>b</b do this>", "attribute-text", "do this", id="words-in-a-closing-tag"),
        pytest.param("<b class=a class='do it'>b</b>", "attribute-text", "class=do it", id="attribute-twice"),
        pytest.param(
            "<b class='do this right now'>b</b>", "attribute-text", "class=do this right now", id="class"
        ),
        pytest.param("<li value='do this now'>b</li>", "attribute-text", "value=do this now", id="value"),
        pytest.param(
            f"<img alt='{'do this ' * 5}'>", "alt-text", "do this do this do this do this do this", id="alt"
        ),
        pytest.param(
            "<img alt='do this'> x <img alt='right now and'>\n\ny <img alt='tell no one of it'>",
            "alt-text",
            "do this | right now and | tell no one of it",
            id="several-alts",
        ),
        pytest.param("a <please do this now> b", "tag-words", "please do this now", id="words-of-an-unknown-tag"),
        pytest.param("<do> <this>\n<right><now>", "tag-words", "do this right now", id="unknown-tags-in-a-row"),
        pytest.param("<do>x<this>y<now>", "tag-words", "do this now", id="unknown-tags-between-letters"),
        pytest.param(
            "Please <do>x</do> run all <this></this> of it <now/>.", "tag-words", "do this now", id="empty-tags"
        ),
        pytest.param(
            "".join(f"<do-{letter}{letter}>run it</do-{letter}{letter}>" for letter in "abcdefghi"),
            "tag-words",
            " ".join(f"do-{letter}{letter}" for letter in "abcdefghi"),
            id="words-in-many-tags",
        ),
        pytest.param("<details><summary>a</summary>do this</details>", "closed-element", "do this", id="details"),
        pytest.param(
            "<details><div><summary>do</summary></div></details>",
            "closed-element",
            "<div><summary>do</summary></div>",
            id="details-with-a-summary-inside",
        ),
        pytest.param(
            "<details><summary hidden>do</summary></details>",
            "closed-element",
            "<summary hidden>do</summary>",
            id="details-with-a-hidden-summary",
        ),
        pytest.param(
            "<details open name=a>do</details>", "closed-element", "do", id="details-of-which-one-is-open"
        ),
        pytest.param("<select><option>do this</select>", "unrendered-element", "<option>do this", id="select"),
        pytest.param("<p popover>do this</p>", "hidden-attribute", "do this", id="popover"),
        pytest.param("<p class='a sr-only'>do this</p>", "hidden-class", "do this", id="screen-readers"),
        pytest.param("<p class=hidden>do this</p>", "hidden-class", "do this", id="class-hidden"),
        pytest.param(
            "<p class=visually-hidden>do this</p>", "hidden-class", "do this", id="class-visually-hidden"
        ),
        pytest.param("<font color=white>do this</font>", "hidden-style", "do this", id="white-font"),
        pytest.param("<svg><text>do</text></svg>", "unrendered-element", "<text>do</text>", id="drawing"),
        pytest.param("<svg><g id='do'/></svg>", "unrendered-element", "<g id='do'/>", id="drawing-without-text"),
        pytest.param("<font color=fff>do this</font>", "hidden-style", "do this", id="white-without-a-sign"),
        pytest.param(
            "<b data-a='do this' aria-label='right now'>b</b>",
            "attribute-text",
            "data-a=do this aria-label=right now",
            id="words-in-several-attributes",
        ),
        pytest.param("<svg></svg do this>", "attribute-text", "do this", id="words-at-the-end-of-a-drawing"),
        pytest.param("<b data-x=do-this>b</b>", "attribute-text", "data-x=do-this", id="data"),
        pytest.param("<a id=do-this-right-now></a>", "attribute-text", "id=do-this-right-now", id="long-id"),
        pytest.param("<a name=DoThisRightNow></a>", "attribute-text", "name=DoThisRightNow", id="long-name"),
        pytest.param("<b lang=do-this-now>b</b>", "attribute-text", "lang=do-this-now", id="language"),
        pytest.param("<p align=do-this>b</p>", "attribute-text", "align=do-this", id="align"),
        pytest.param("<b onclick=do_this>b</b>", "attribute-text", "onclick=do_this", id="event"),
        pytest.param("<td abbr='do this'>b</td>", "attribute-text", "abbr=do this", id="abbr"),
        pytest.param("<b title=' '>b</b>", "attribute-text", "title", id="blank-title"),
        pytest.param("<i id=a></i>" * 6, "attribute-text", "a a a a a a", id="identifiers-in-a-row"),
        pytest.param("<a href=do></a>" * 6, "attribute-text", "do do do do do do", id="addresses-in-a-row"),
        pytest.param("<a href='/a-b/" + "do-" * 9 + "'>b</a>", "link-words", "/a-b/" + "do-" * 9, id="address"),
        pytest.param("<img src='data:text/plain,do'>", "link-words", "data:text/plain,do", id="address-of-data"),
        pytest.param("<img srcset='a.png 2x, do this now'>", "link-words", "a.png 2x, do this now", id="srcset"),
        pytest.param("<p class='h-0 a'>do this</p>", "hidden-class", "do this", id="class-without-height"),
        pytest.param("<i style='left:0'></i>", "hidden-style", "<i style='left:0'>", id="style-that-may-cover"),
    ],
)
def test_what_a_browser_does_not_show_is_reported_with_its_kind(text: str, kind: str, says: str) -> None:
    assert hidden_html(text) == [(kind, says)]


@rule("B6")
@pytest.mark.parametrize(
    "tags",
    [
        ["small"] * 3,
        ["sub", "sup", "small"],
        ["h6", "small"],
        ["font size=1", "sub"],
        ["p style='font-size:70%'", "span style='font-size:70%'"],
        ["p style='font-size:0.8em'", "b", "span style='font-size: 0.7EM'"],
        ["p style='font-size:10px'", "i", "sub"],
        ["span style='font-size:smaller'"] * 3,
    ],
    ids=" ".join,
)
def test_text_that_elements_together_make_too_small_is_reported(tags: list[str]) -> None:
    opening = "".join(f"<{tag}>" for tag in tags)
    closing = "".join(f"</{tag.split()[0]}>" for tag in reversed(tags))
    assert hidden_html(f"a {opening}do this{closing} b") == [("hidden-style", "do this")]


@rule("B6")
@pytest.mark.parametrize(
    "style",
    [  # whatever is not known to be harmless
        "display:none",
        "text-align:left; DISPLAY : None !important;",
        "dis/* */play:n\\6f ne",
        "display&colon;none",
        "display:table-column",
        "visibility:hidden",
        "opacity:.9",
        "color:red",
        "color:lavender",
        "background:#000",
        "background-image:linear-gradient(#000,#000)",
        "font-size:1px",
        "font-size:.01em",
        "font-size-adjust:0",
        "font-family:'Adobe Blank'",
        "font-family:do-this-now",
        "font:0/0 a",
        "height:0",
        "height:5px",
        "width:1%",
        "max-width:calc(1px)",
        "overflow:hidden",
        "contain:strict",
        "content:url(x.png)",
        "position:absolute",
        "left:-99px",
        "margin-top:-30px",
        "margin: 0 999px",
        "text-indent:-100em",
        "clip-path:inset(50%)",
        "transform:scale(0)",
        "rotate:1 0 0 90deg",
        "filter:invert(1)",
        "mix-blend-mode:screen",
        "line-height:.2",
        "-webkit-text-stroke:9px white",
        "width:var(--a)",
        "--a:b",
        "do-this:1",
        "do this",
    ],
)
def test_an_element_that_its_style_hides_is_reported(style: str) -> None:
    assert hidden_html(f'<p style="{style}">do this</p>') == [("hidden-style", "do this")]


@rule("B6")
@pytest.mark.parametrize(
    "text",
    [
        "a <- b --> c",
        "2 < 3, a<3, <3, <>",
        '<p align="center"><img src="a.png" alt="a long description" width="100"></p>',
        '<div class="a b c d" id="x">text</div>',
        "<details open><summary>More</summary>text</details> <details><summary>All</summary></details>",
        '<div class="flex items-center justify-between p-4"><a href="x" rel="noopener noreferrer">x</a>',
        "<instructions>\n<step>text</step>\n</instructions> <metadata>text</metadata> <skill-name>",
        '<p style="text-align: center; margin: 0 auto; padding:4px; border: 1px solid #ccc; width:50%">text</p>',
        '<p style="font-weight:bold; font-family: Arial, sans-serif; font-size:12px; white-space:pre;">text</p>',
        '<img src="a.png" alt="logo" width="30%" style="max-width: 100%; height: auto;">',
        '<a href="https://a.example/b/actions"><img alt="Build" src="https://img.example/badge/a-b.svg"></a>' * 9,
        '<picture><source media="(prefers-color-scheme: dark)" srcset="a.png 1x, b.png 2x"></picture>',
        '<a id="usage"></a> <a name="getting-started"></a> <h2 align="center">text</h2>',
        '<table border="1"><tr><th colspan=2 align=left>a<td valign="top" nowrap>b</table><ol start="3" type="a">',
        "<kbd>Ctrl</kbd>+<kbd>C</kbd> x<sub>2</sub> <br/> <hr> <font size=2>text</font>",
        "<div hidden></div><template>\n</template>",
        "write to <name> of <your project>",
        "<sup><sub>text</sub></sup> <small>a<small>b</small></small> <small>c</small> <h6>d</h6>",
        "<p style='font-size:10px'>a</p><p style='font-size:12px'><span style='font-size:90%'>b</span></p>",
        "<example>text</example> <rules>some text</rules> <output-format>text</output-format> <T> <K, V>",
        "<img alt='logo'>" * 20,
        '<output>text</output> <label for="a">text</label> <bdi lang="ar" dir="rtl">text</bdi>',
    ],
)
def test_what_a_browser_shows_is_not_reported(text: str) -> None:
    assert hidden_html(text) == []


@rule("B6")
def test_every_piece_of_hidden_html_is_reported() -> None:
    text = "<!-- a -->\n<!-- b --><p hidden>c</p><p>d</p><?e?><p hidden>f <!-- g --></p>"
    assert sorted(says for _, says in hidden_html(text)) == ["a", "b", "c", "e", "f <!-- g -->", "g"]
