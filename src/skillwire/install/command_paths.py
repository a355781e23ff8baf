"""A command that is started elsewhere: what in it names a file of one folder, in full.

A word without a dot or a slash may be a file or just a word. After one of our own verbs it is known; of another
program's words it is not, and they stay.
"""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WITH_VALUE = re.compile("--[^=]*=")
# What these take may look like a path, and is none.
_OUR_WORDS = ("--name", "--prefix", "--unlisted", "--instructions")


def from_anywhere(words: Sequence[str], folder: Path) -> list[str]:
    """``words``, which a person typed in ``folder``, so that they mean the same wherever they are started."""
    ours = next((place for place, word in enumerate(words) if Path(word).name == "skillwire"), len(words))
    whole = [_program(word, folder) for word in words[:1]]
    for before, word in pairwise(words):
        is_ours = len(whole) > ours + 1  # after the verb
        option, equals, value = _split(word)
        if not (is_ours and (option or before) in _OUR_WORDS):
            value = _argument(value, folder, may_be_bare=is_ours)
        whole.append(option + equals + value)
    return whole


def _split(word: str) -> tuple[str, str, str]:
    """An option and its value in one word, such as ``--config=servers.json``; else no option."""
    return word.partition("=") if _WITH_VALUE.match(word) else ("", "", word)


def _program(word: str, folder: Path) -> str:
    """Without a slash it is looked for on the ``PATH``."""
    return _joined(folder, word) if "/" in word else word


def _argument(word: str, folder: Path, *, may_be_bare: bool) -> str:
    if word.startswith(("./", "../")):
        return _joined(folder, word)
    is_like_one = bool(word) and (may_be_bare or "/" in word or "." in word)
    return _joined(folder, word) if is_like_one and os.path.exists(folder / word) else word


def _joined(folder: Path, word: str) -> str:
    return word if os.path.isabs(word) else os.path.normpath(folder / word)
