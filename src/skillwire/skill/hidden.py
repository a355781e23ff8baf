"""Text that a person does not see and a model does (B6).

Unicode tag characters spell ASCII invisibly; control characters, and those that turn the direction of writing,
make text read differently from what it says; runs of zero-width characters and variation selectors carry bits;
HTML and Markdown comments vanish when rendered. Each is reported with what it says, so that the person who
approves has read it too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class HiddenText(NamedTuple):
    """One find: what it is, where it begins in the text, and what it says."""

    kind: str
    offset: int
    says: str


_TAGS = "[\U000e0001-\U000e007f]"
_PATTERN = re.compile(
    f"(?P<tag>{_TAGS}+)"
    "|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+)"
    "|(?P<bidi>[\u202a-\u202e\u2066-\u2069]+)"
    "|(?P<zero>[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]{2,})"
    "|(?P<selector>[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,})"
)
_KINDS = {
    "tag": "Unicode tag characters",
    "control": "control characters",
    "bidi": "bidirectional control characters",
    "zero": "a run of zero-width characters",
    "selector": "a run of variation selectors",
}
# A flag such as Scotland's is a black flag, tag letters and a cancel tag: visible, and a few letters long.
_FLAG = re.compile(f"\U0001f3f4{_TAGS}{{2,6}}\U000e007f")
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_MARKDOWN_COMMENT = re.compile(r"^ {0,3}\[[^\]\n]{1,60}\]:[ \t]*(?:#|<#?>)[ \t]+[\"'(](.*)", re.MULTILINE)


def find_hidden_characters(text: str) -> Iterator[HiddenText]:
    """Invisible and reordering characters, in any text."""
    if text.isascii() and text.isprintable():
        return
    visible = {match.start() + 1 for match in _FLAG.finditer(text)}
    for match in _PATTERN.finditer(text):
        kind = match.lastgroup or ""
        if match.start() in visible:
            continue
        yield HiddenText(_KINDS[kind], match.start(), _spell(kind, match.group()))


def find_comments(text: str) -> Iterator[HiddenText]:
    """Comments in a piece of Markdown that is not code: ``<!-- … -->`` and ``[//]: # (…)``."""
    for match in _COMMENT.finditer(text):
        yield HiddenText("an HTML comment", match.start(), " ".join(match.group(1).split()))
    for match in _MARKDOWN_COMMENT.finditer(text):
        yield HiddenText("a Markdown comment", match.start(), match.group(1).rstrip("\"')"))


def _spell(kind: str, characters: str) -> str:
    if kind == "tag":
        return "".join(chr(ord(character) - 0xE0000) for character in characters if character != "\U000e007f")
    shown = " ".join(f"U+{ord(character):04X}" for character in characters[:8])
    return f"{shown} …" if len(characters) > 8 else shown
