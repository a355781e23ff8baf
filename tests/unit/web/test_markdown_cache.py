"""A large text is rendered once for each digest, and a text with too much markup is not rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.limits import KIB
from skillwire.web import markdown as module
from skillwire.web.markdown import markdown

if TYPE_CHECKING:
    from collections.abc import Callable

LARGE = "# Title\n\nSee [notes](notes.md) and ![map](map.png).\n\n" + "Words and more words.\n\n" * 1000


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were rendered."""
    texts: list[str] = []
    render = module._rendered

    def counted(text: str, *rest: Callable[[str], str | None] | None, with_hidden: bool) -> object:
        texts.append(text)
        return render(text, *rest, with_hidden=with_hidden)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_rendered", counted)
    monkeypatch.setattr(module, "_render_cache", module._RenderCache())
    return texts


def to(place: str) -> Callable[[str], str | None]:
    return lambda target: f"{place}/{target}"


@rule("Z6")
def test_a_large_text_is_rendered_once(rendered: list[str]) -> None:
    first = markdown(LARGE, link=to("/a"), image=to("/raw"))
    assert markdown(LARGE, link=to("/a"), image=to("/raw")) == first
    assert len(rendered) == 1


@pytest.mark.parametrize(
    ("link", "image"),
    [
        pytest.param(to("/b"), to("/raw"), id="other links"),
        pytest.param(to("/a"), to("/other"), id="other images"),
        pytest.param(to("/a"), None, id="no images"),
    ],
)
def test_a_text_whose_links_lead_elsewhere_is_rendered_again(
    rendered: list[str], link: Callable[[str], str | None], image: Callable[[str], str | None] | None
) -> None:
    first = markdown(LARGE, link=to("/a"), image=to("/raw"))
    assert markdown(LARGE, link=link, image=image) != first
    assert markdown(LARGE, link=to("/a"), image=to("/raw")) == first
    assert len(rendered) >= 2


@pytest.mark.slow
def test_rendered_texts_take_a_bounded_amount_of_memory(
    rendered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_CACHED", 200 * KIB)
    for number in range(8):
        markdown(f"{LARGE}{number}", link=to("/a"))
    assert len(rendered) == 8
    assert 0 < module._render_cache.size <= 200 * KIB


@rule("Z6")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param("- a\n", id="list", marks=pytest.mark.slow),
        pytest.param("- - - - a\n", id="nested list"),
        pytest.param("1. a\n", id="ordered list"),
        pytest.param("*a* ", id="emphasis"),
        pytest.param("|a|b|\n", id="table", marks=pytest.mark.slow),
        pytest.param("[a](b) ", id="links"),
        pytest.param("a\n\n", id="paragraphs", marks=pytest.mark.slow),
    ],
)
def test_a_text_with_too_much_markup_is_shown_as_it_is_written(rendered: list[str], line: str) -> None:
    page = markdown(line * (255 * KIB // len(line)), link=to("/a"))
    assert not rendered
    assert 'class="notice"' in page
