"""Examines a page in both themes, narrow and wide: its layout, and its accessibility with axe-core.

``pytest --pictures`` (``make web-pictures``) also keeps a picture of every state in ``artefacts``.
"""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from axe_playwright_python.sync_playwright import Axe

from web.watching import shift_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.sync_api import Page

ARTEFACTS = Path(__file__).parent / "artefacts"
KEEP_PICTURES = "SKILLWIRE_TEST_PICTURES"  # set by `pytest --pictures`, also for its workers
# Each theme and each width once: what is too wide is so in both themes, and what is too pale at both widths.
Theme = Literal["light", "dark"]
LOOKS: tuple[tuple[Theme, int], ...] = (("light", 400), ("dark", 2000))
THEMES: tuple[Theme, ...] = ("light", "dark")
WIDTHS = (400, 1280, 2000)  # of the pictures, in both themes
SHIFT = 0.01  # of what browsers call a shift; a tenth of what they call good
_GRAVE = ("serious", "critical")
# What a template makes again and again is judged so often; axe-core takes seconds for each hundred.
_REPEATED = [["[data-row]:nth-child(n+16)"], [".numbered .l:nth-child(n+31)"]]


def examine(page: Page, name: str) -> None:
    """Check that the page fits, stays still, has no serious accessibility problem, and no link to nowhere."""
    page.wait_for_load_state()
    moved = shift_of(page)
    assert moved < SHIFT, f"{name} moved by {moved} while it appeared"
    usual, wrong = page.viewport_size, list[str]()
    for theme, width in LOOKS:
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        # Every other rule gives the same result in both themes, and takes most of the time.
        rules = ["color-contrast"] if theme == "dark" else []
        wrong += [f"{theme} at {width}: {each}" for each in overflowing(page) + barriers(page, rules)]
        if width == WIDTHS[0]:
            wrong += small_targets(page)
    wrong += dead_links(page)
    if KEEP_PICTURES in os.environ:
        ARTEFACTS.mkdir(exist_ok=True)
        for theme, width in product(THEMES, WIDTHS):
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=ARTEFACTS / f"{name}-{theme}-{width}.png", full_page=True)
    page.emulate_media(color_scheme="light")
    if usual is not None:
        page.set_viewport_size(usual)
    assert not wrong, f"{name}: " + "\n".join(wrong)


def overflowing(page: Page) -> list[str]:
    """What makes the page wider than its window, if anything does."""
    return page.evaluate(
        """() => {
          const room = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= room) return [];
          return [...document.body.querySelectorAll("*")]
            .filter((each) => each.getBoundingClientRect().right > room + 1)
            .slice(0, 5)
            .map((each) => `too wide: ${each.outerHTML.slice(0, 120)}`);
        }"""
    )


def small_targets(page: Page) -> list[str]:
    """Links and controls that are smaller than a fingertip, except links in a sentence."""
    return page.evaluate(
        """() => [...document.querySelectorAll("a[href], button, summary, select, input:not([type=hidden])")]
          .map((each) => [each, /radio|checkbox/.test(each.type) ? each.closest("label") || each : each])
          .filter(([each, target]) => {
            const box = target.getBoundingClientRect(), around = each.closest("p, li, dd, td");
            const isInText = around && getComputedStyle(each).display === "inline"
              && around.textContent.trim() !== each.textContent.trim();
            return box.width && !isInText && !each.closest("pre, .unseen, .skip, .prose") && !each.matches(".skip")
              && (box.height < 24 || box.width < 20);
          })
          .map(([each]) => `too small to touch: ${each.outerHTML.slice(0, 160)}`)
          .slice(0, 8)"""
    )


def dead_links(page: Page) -> list[str]:
    """Links to a part of the page that does not exist."""
    return page.evaluate(
        """() => [...document.querySelectorAll("main a[href*='#']")]
          .filter((each) => each.href.split("#")[0] === location.href.split("#")[0])
          .filter((each) => !document.getElementById(decodeURIComponent(each.hash.slice(1))))
          .map((each) => `leads nowhere: ${each.outerHTML.slice(0, 160)}`)"""
    )


def barriers(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """Serious and critical problems that axe-core finds with these rules, or with all."""
    options: dict[str, Any] = {"resultTypes": ["violations"]}  # it describes nothing else in full
    if rules:
        options["runOnly"] = list(rules)
    found: list[dict[str, Any]] = Axe().run(page, {"exclude": _REPEATED}, options).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for each in found
        if each["impact"] in _GRAVE
        for node in each["nodes"][:3]
    ]
