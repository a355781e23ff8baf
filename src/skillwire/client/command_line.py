"""A command as a line for a person who decides about it: with its arguments, and without secrets.

A value is hidden behind ``…`` if its option or variable sounds like a secret, if it is the value of an environment
variable or a header, or if it has the form of a token. URLs are shown without user, password, query and fragment.
A variable that is not replaced yet (``${TOKEN}``) is shown by its name.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HIDDEN = "…"
_MAX_WORDS = 64
_LONGEST = 400  # characters of a word
_SECRET_NAME = re.compile(
    r"secret|token|passw|pwd|passphrase|credential|bearer|cookie|session|private|auth|(?:^|[-_])pat$|"
    r"^basic$|api[-_]?key|access[-_]?key|(?:^|[-_])key$",
    re.I,
)
_OPTION = re.compile(r"-|(?:bearer|basic)$|.*:$", re.I)  # the next word may be a secret
_HEADER = re.compile(r"-H|--headers?")
_ENVIRONMENT = re.compile(r"-e|--env")
_NAMED = re.compile(r"(?P<name>--?[A-Za-z][\w.-]*|[A-Za-z_]\w*)=(?P<value>.*)", re.S)
_VARIABLE = re.compile(r"\$\{[^}]*\}")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
# Tokens of common services, and other long words that nobody would choose.
_TOKEN = re.compile(
    r"(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[a-z]|npm|pypi|hf)[-_][\w-]{8,}|AKIA[A-Z0-9]{12,}|"
    r"eyJ[\w-]{8,}[\w.-]*|(?=[\w+=-]*\d)(?=[\w+=-]*[a-z])(?=[\w+=-]*[A-Z])[\w+=-]{24,}"
)


def without_secrets(url: str) -> str:
    """The URL without user, password, query and fragment, which may contain secrets."""
    return re.sub(r"//[^/?#]*@", "//…@", re.sub(r"[?#].*", "", url, flags=re.DOTALL))


def command_line(command: Sequence[str]) -> str:
    """The command as it would be typed, without its secrets."""
    words = list(command[:_MAX_WORDS])
    if words and " " in words[0]:  # the whole command was written as its program
        words[:1] = words[0].split()
    more = f" {HIDDEN} {len(command) - _MAX_WORDS} more" if len(command) > _MAX_WORDS else ""
    # "…" alone needs no quotes: the line is read, and cannot be run.
    return (
        " ".join(word if HIDDEN in word and " " not in word else shlex.quote(word) for word in _shown(words))
        + more
    )


def _shown(words: Sequence[str]) -> Iterator[str]:
    option = ""
    for word in words:
        before, option = option, word if _OPTION.match(word) else ""
        if " " in word and not _HEADER.fullmatch(before):  # such as a script for "sh -c"
            yield " ".join(_shown(word.split()))[:_LONGEST]
        else:
            yield _without_secret(word, before)[:_LONGEST]


def _without_secret(word: str, option: str) -> str:
    named = _NAMED.fullmatch(word)
    if _HEADER.fullmatch(option):
        return f"{word.partition(':')[0]}: {HIDDEN}" if ":" in word else HIDDEN
    if _ENVIRONMENT.fullmatch(option):
        return f"{named['name']}={HIDDEN}" if named else word  # a name alone is passed on
    if "=" not in option and _SECRET_NAME.search(option) and not word.startswith("-"):
        return _kept_variable(word)
    if named and (_SECRET_NAME.search(named["name"]) or not named["name"].startswith("-")):
        return f"{named['name']}={_kept_variable(named['value'])}"
    return _TOKEN.sub(HIDDEN, _URL.sub(lambda match: without_secrets(match.group()), word))


def _kept_variable(value: str) -> str:
    return value if _VARIABLE.fullmatch(value) and ":-" not in value else HIDDEN
