"""Code as HTML, highlighted if its language is known, with line numbers as anchors.

The text is untrusted and highlighting uses regular expressions, so size and time are limited. Text above a limit
is shown without highlighting.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from skillwire.limits import KIB
from skillwire.web.escape import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pygments.lexer import Lexer
    from pygments.token import _TokenType as TokenType  # pyright: ignore[reportPrivateUsage]

MAX_HIGHLIGHTED = 512 * KIB
_TIMEOUT_SECONDS = 1.0
_MAX_LINE = 10_000

# By file extension or fence label. The list is short, because each lexer parses untrusted text.
LANGUAGES = {
    "bash": "bash", "sh": "bash", "zsh": "bash", "shell": "bash", "console": "console", "bat": "batch",
    "ps1": "powershell", "powershell": "powershell", "fish": "fish",
    "py": "python", "pyi": "python", "python": "python", "rb": "ruby", "ruby": "ruby", "pl": "perl", "lua": "lua",
    "js": "javascript", "mjs": "javascript", "cjs": "javascript", "jsx": "javascript", "javascript": "javascript",
    "ts": "typescript", "tsx": "typescript", "typescript": "typescript", "php": "php",
    "json": "json", "jsonl": "json", "ipynb": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "ini",
    "cfg": "ini", "html": "html", "htm": "html", "xml": "xml", "svg": "xml", "css": "css",
    "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "c++": "cpp", "cs": "csharp", "csharp": "csharp",
    "go": "go", "rs": "rust", "rust": "rust", "java": "java", "kt": "kotlin", "kotlin": "kotlin", "swift": "swift",
    "r": "r", "jl": "julia", "sql": "sql", "graphql": "graphql", "proto": "protobuf", "tex": "latex",
    "diff": "diff", "patch": "diff", "makefile": "make", "dockerfile": "docker", "md": "markdown",
}  # fmt: skip
_CLASSES = {
    "Token.Comment": "c", "Token.Keyword": "k", "Token.Operator.Word": "k", "Token.Literal.String": "s",
    "Token.Literal.Number": "m", "Token.Name.Function": "n", "Token.Name.Class": "n", "Token.Name.Tag": "n",
    "Token.Name.Decorator": "n", "Token.Name.Attribute": "a", "Token.Name.Builtin": "a",
    "Token.Name.Variable": "a", "Token.Generic.Deleted": "d", "Token.Generic.Inserted": "i",
    "Token.Generic.Heading": "n", "Token.Generic.Subheading": "n",
}  # fmt: skip


_NUMBERED = Markup('<pre class="code numbered" tabindex="0"><code>{}</code></pre>')


def code(text: str, filename: str) -> Markup:
    """A file's text with line numbers that are anchors (``#L12``)."""
    lines = enumerate(_lines(text, language_of(filename)), 1)
    return _NUMBERED.format(Markup("").join(_numbered(number, line) for number, line in lines))


def snippet(text: str, language: str) -> Markup:
    """A code block without line numbers."""
    lines = _lines(text.removesuffix("\n"), LANGUAGES.get(language.lower(), ""))
    return Markup('<pre class="code" tabindex="0"><code>{}</code></pre>').format(Markup("\n").join(lines))


def language_of(filename: str) -> str:
    """The language of a file, by its name; empty if it is unknown."""
    return LANGUAGES.get(filename.rpartition("/")[2].rpartition(".")[2].lower(), "")


def _lines(text: str, language: str) -> Iterator[Markup]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    tokens = token_lines(text, language)
    if tokens is None:
        return (visible(line) for line in text.split("\n"))
    return (Markup("").join(span(name, piece) for name, piece in line) for line in tokens)


def token_lines(text: str, language: str) -> list[list[tuple[str, str]]] | None:
    """The class and the text of each token, by line; ``None`` if the language is unknown or it takes too long."""
    if not language or len(text) > MAX_HIGHLIGHTED or max(map(len, text.split("\n"))) > _MAX_LINE:
        return None
    until = time.monotonic() + _TIMEOUT_SECONDS
    lines = [list[tuple[str, str]]()]
    for kind, value in _lexer(language).get_tokens(text):
        if time.monotonic() > until:
            return None
        name = _class_of(kind)
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
            lines[-1].append((name, piece))
    return lines


def _lexer(language: str) -> Lexer:
    from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType] - its options

    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def span(name: str, text: str) -> Markup:
    """A token of a class."""
    shown = visible(text)
    # No Markup.format here and below, because it is slow and both values are safe.
    return Markup(f'<span class="{name}">{shown}</span>') if name and text.strip() else shown  # noqa: S704


def _numbered(number: int, line: Markup) -> Markup:
    anchor = f'<a href="#L{number}" tabindex="-1" aria-hidden="true"></a>'
    return Markup(f'<span class="l" id="L{number}">{anchor}{line}\n</span>')  # noqa: S704


@cache
def _class_of(kind: TokenType) -> str:
    while kind.parent is not None and str(kind) not in _CLASSES:
        kind = kind.parent
    return _CLASSES.get(str(kind), "")
