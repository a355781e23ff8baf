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


class HiddenRun(NamedTuple):
    """Characters side by side that are not seen: what they are, where, and what they say."""

    kind: str
    start: int
    end: int
    says: str


_TAGS = "[\U000e0001-\U000e007f]"
_ZERO_WIDTH = (
    "\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
)
_SELECTORS = "\u180b-\u180d\ufe00-\ufe0f\U000e0100-\U000e01ef"
_PATTERN = re.compile(
    f"(?P<tag>{_TAGS}+)"
    "|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+)"
    "|(?P<bidi>[\u061c\u202a-\u202e\u2066-\u2069]+)"
    # An emoji may join a selector to one zero-width joiner; three in a row mean nothing visible.
    f"|(?P<selector>[{_SELECTORS}]{{2,}})"
    f"|(?P<zero>[{_ZERO_WIDTH}{_SELECTORS}]{{3,}}|[{_ZERO_WIDTH}]{{2,}})"
)
# One alone is often innocent, so that no check reports it; whoever shows text marks it all the same. Not the
# joiners and selectors that emoji and many scripts are written with.
_ALONE = (
    "\x80-\x9f\u00ad\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028\u2029\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000"
)
_ANY = re.compile(f"{_PATTERN.pattern}|(?P<single>[{_ALONE}])")
_KINDS = {
    "tag": "Unicode tag characters",
    "control": "control characters",
    "bidi": "bidirectional control characters",
    "selector": "a run of variation selectors",
    "zero": "a run of zero-width characters",
    "single": "a character that is not seen",
}
# The flags of England, Scotland and Wales are a black flag, five tag letters and a cancel tag: visible.
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
# [//]: # (words), "words" or 'words': the title of a link that nothing uses. It may go on over lines.
_MARKDOWN_COMMENT = re.compile(
    r"""^[ ]{0,3}\[[^\]\n]{1,60}\]:[ \t]*(?:\#|<\#?>)[ \t\r\n]+
        (?: "([^"]{0,9999}) | '([^']{0,9999}) | \(([^)]{0,9999}) )""",
    re.MULTILINE | re.VERBOSE,
)


def find_hidden_characters(text: str) -> Iterator[HiddenText]:
    """Invisible and reordering characters, in any text."""
    for run in _runs(_PATTERN, text):
        yield HiddenText(run.kind, run.start, run.says)


def find_hidden_runs(text: str) -> Iterator[HiddenRun]:
    """The same, and single characters that are not seen: for whoever shows the text."""
    return _runs(_ANY, text)


def find_html_comments(text: str) -> Iterator[HiddenText]:
    """``<!-- … -->`` in a piece of Markdown that is not code."""
    for match in _COMMENT.finditer(text):
        yield HiddenText("an HTML comment", match.start(), " ".join(match.group(1).split()))


def find_markdown_comments(text: str) -> Iterator[HiddenText]:
    """``[//]: # (…)`` in a piece of Markdown that is not code."""
    for match in _MARKDOWN_COMMENT.finditer(text):
        words = next(group for group in match.groups() if group is not None)
        yield HiddenText("a Markdown comment", match.start(), " ".join(words.split()))


def _runs(pattern: re.Pattern[str], text: str) -> Iterator[HiddenRun]:
    if text.isascii() and text.isprintable():
        return
    for match in pattern.finditer(_FLAG.sub(_blank, text)):
        kind = match.lastgroup or ""
        yield HiddenRun(_KINDS[kind], *match.span(), _spell(kind, match.group()))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _spell(kind: str, characters: str) -> str:
    if kind == "tag":
        return "".join(chr(ord(character) - 0xE0000) for character in characters if character != "\U000e007f")
    shown = " ".join(f"U+{ord(character):04X}" for character in characters[:8])
    return f"{shown} …" if len(characters) > 8 else shown
