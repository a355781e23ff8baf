"""Skills that show every trait of the dialects that know skills by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trees import skill_md, small_tree

if TYPE_CHECKING:
    from trees import Tree

GUIDE_BODY = """\
# Guide

First [the *last* file](references/zz.md), then ![a picture](assets/aa.png), and [again](references/zz.md).
See [the web](https://example.com/a.md), [nothing](gone.md), [outside](../flat/SKILL.md) and [itself](SKILL.md).
"""
GUIDE_FIELDS = """\
title: The guide
version: "1.10"
tags: [help, docs]
icons: [{src: "https://example.com/i.png", mimeType: image/png}]
"""
WEATHER_FIELDS = """\
arguments:
  - {name: city, title: City, description: Where?, required: true}
  - unit
"""
WRONG_FIELDS = """\
title: [a]
version: 1.10
tags: {a: b}
arguments: order
dependencies: python>=3.8
icons: [javascript]
"""
LEFT_OUT = "needs-pay"
LABELS = [
    "acme/billing/refunds", "release", "changelog", "flat", "guide", "needs-files", "odd-names", "plain-braces",
    "shop/refunds", "weather", "windows", "wrong-fields",
]  # fmt: skip


def named_tree() -> Tree:
    """The small tree, and beside it: fields, links, arguments, dependencies, and two skills of one name."""
    return small_tree() | {
        "guide/SKILL.md": skill_md("guide", "Guides.", GUIDE_BODY, GUIDE_FIELDS),
        "guide/references/zz.md": b"zz\n",
        "guide/assets/aa.png": b"\x89PNG\x00",
        "guide/LICENSE": b"free\n",
        "weather/SKILL.md": skill_md("weather", "Tells it.", "In {{ city }}, {{unit}}. {{x}}\n", WEATHER_FIELDS),
        "plain-braces/SKILL.md": skill_md("plain-braces", body="Use {{ city }} as it is.\n"),
        "shop/refunds/SKILL.md": skill_md("refunds", "Of the shop."),
        "wrong-fields/SKILL.md": skill_md("wrong-fields", extra=WRONG_FIELDS),
        "needs-pay/SKILL.md": skill_md("needs-pay", extra="dependencies: {tools: [pay], prompts: [thank]}\n"),
        "needs-files/SKILL.md": skill_md(
            "needs-files", extra='dependencies: {resources: ["skill://guide/SKILL.md", "skill://flat/SKILL.md"]}\n'
        ),
    }
