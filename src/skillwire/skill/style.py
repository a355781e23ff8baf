"""Whether a ``style`` certainly leaves an element in sight (B6).

A list of declarations that can hide nothing. Anything else counts as hiding: colours, positions, filters,
functions, variables, escapes, and what no browser knows.
"""

from __future__ import annotations

import re

_SIZE = r"(?:0|auto|\d{1,2}(?:px|pt|%)|(?:\d|\d?\.\d{1,3})r?em)"  # of the space around: small, not negative
_LARGE = r"(?:auto|(?:1[6-9]|[2-9]\d|[1-9]\d{2,3})px|(?:[2-9]|[1-9]\d)(?:\.\d+)?r?em|(?:[2-9]\d|100)%)"
_LINE = r"(?:none|solid|dashed|dotted|double|inset|outset|ridge|groove)"
_EDGE = rf"(?:0|(?:\d|1\d)(?:px|pt)?|thin|medium|{_LINE}|[#][0-9a-f]{{3,6}}|black|gray|grey|silver)"
_SIDE = r"(?:-(?:top|bottom|left|right))?"
_FONT = r"""(?:serif|sans-serif|monospace|system-ui|arial|helvetica|georgia|verdana|menlo|monaco|consolas|courier
    |['"]?(?:courier\ new|times\ new\ roman)['"]?)"""
_HARMLESS = re.compile(
    rf"""text-align(?:-last)?:(?:left|right|center|justify|start|end)
    |vertical-align:(?:top|middle|bottom|baseline|sub|super|text-top|text-bottom)
    |float:(?:left|right|none) |clear:(?:left|right|both|none)
    |(?:max-|min-)?(?:width|height):{_LARGE} |max-width:none |min-(?:width|height):0
    |margin{_SIDE}:{_SIZE}(?:\ {_SIZE}){{0,3}} |padding{_SIDE}:{_SIZE}(?:\ {_SIZE}){{0,3}}
    |border{_SIDE}:{_EDGE}(?:\ {_EDGE}){{0,2}} |border-radius:{_SIZE}
    |border-collapse:(?:collapse|separate) |border-spacing:{_SIZE} |table-layout:auto
    |font-weight:(?:normal|bold|bolder|lighter|[1-9]00) |font-style:(?:normal|italic|oblique)
    |font-size:(?:1[0-9]|[2-6]\d)(?:px|pt)|font-size:(?:0\.[7-9]\d?|[1-4](?:\.\d+)?)r?em|font-size:(?:[7-9]\d|[1-3]\d\d)%
    |font-size:(?:small|medium|large|x-large|smaller|larger)
    |font-family:{_FONT}(?:,\ ?{_FONT}){{0,5}}
    |text-decoration:(?:none|underline|line-through) |text-transform:(?:none|uppercase|lowercase|capitalize)
    |list-style(?:-type)?:(?:none|disc|circle|square|decimal|lower-alpha|upper-alpha|lower-roman|upper-roman)
    |white-space:(?:normal|nowrap|pre|pre-wrap|pre-line)
    |display:(?:block|inline|inline-block|flex|inline-flex|list-item|table|table-row|table-cell|inline-table)
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s*([:,;])\s*|\s+")


def is_plain_style(style: str) -> bool:
    """Whether every declaration of ``style`` is known to hide nothing."""
    plain = _BLANKS.sub(lambda match: match[1] or " ", style.strip().lower())
    return all(_HARMLESS.fullmatch(each.strip()) for each in plain.split(";") if each)
