"""Honest trees with every trait that has broken a peer somewhere, and the hashes that a peer must arrive at.

``nasty_tree`` holds what every peer copes with. Each of the others holds one trait on which peers disagree; the
tests that use it say exactly how, and why.
"""

from __future__ import annotations

import re
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from trees import Tree, files_of, skill_md

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

T = TypeVar("T")
MIB = 1024 * 1024

# F4: on the left what an author writes without quotes, on the right what YAML 1.2's core schema makes of it.
CORE_SCHEMA: list[tuple[str, object]] = [
    ("yes", "yes"),
    ("on", "on"),
    ("N", "N"),
    ("TRUE", True),
    ("012", 12),
    ("0o14", 12),
    ("0x1F", 31),
    ("1:30", "1:30"),
    ("1_000", "1_000"),
    ("2026-01-01", "2026-01-01"),
    ("2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"),
    ("1e3", 1000),
    (".5", 0.5),
    ("+1", 1),
    ("1.0", 1.0),
    ("9007199254740993", 9007199254740993),
    ("~", None),
    ("null", None),
    ("", None),
    ("=", "="),
    ("[yes, 012, 2026-01-01]", ["yes", 12, "2026-01-01"]),
    ("{answer: no}", {"answer": "no"}),
]

_ODD_NAMES = [
    "references/Résumé & notes #1?.md",
    "references/日本語.md",
    "references/party 🎉.md",
    "references/100%.md",
    "references/%41.md",
    "references/a+b=c;d,e@f:g.md",
    "references/(round) [square] {curly}.md",
    "references/'single' \"double\" `tick`.md",
    "references/pipe|caret^less<more>.md",
    "references/$dollar!~tilde.md",
    "références/…/ ends with a space ",
    ".hidden",
    "no-suffix",
]


def nasty_tree() -> Tree:
    """Sixteen skills: whatever honest authors write and every peer reads."""
    return {
        # F6: line ends of another system, none at the end
        "crlf/SKILL.md": b"---\r\nname: crlf\r\ndescription: Lines end as on Windows\r\n---\r\n\r\nOne\r\nTwo",
        "crlf/notes.txt": b"one\r\ntwo\rthree\nfour",
        # F6, U7: names and text beyond ASCII
        "odd-names/SKILL.md": skill_md("odd-names", "Größe, 大小, размер, \U0001f40d, e\u0301, \u2028."),
        **{f"odd-names/{name}": f"I am {name}\n".encode() for name in _ODD_NAMES},
        # R1: text and what only looks like it
        "bytes/SKILL.md": skill_md("bytes"),
        "bytes/empty": b"",
        "bytes/empty.md": b"",
        "bytes/every-byte.bin": bytes(range(256)),
        "bytes/broken-utf8.md": b"na\xefve\n",
        "bytes/cut-short.txt": "é".encode()[:1],
        "bytes/surrogate.txt": b"\xed\xa0\x80",
        "bytes/nul.txt": b"a\x00b",
        "bytes/only-a-bom.txt": b"\xef\xbb\xbf",
        "bytes/utf16.txt": "hello".encode("utf-16"),
        "bytes/replacement.txt": "\ufffd".encode(),
        "bytes/separators.txt": "a\u2028b\u2029c\u0085d\x0b\x0c".encode(),
        "bytes/data.json": b'{"a": 1}\n',
        "bytes/data.yaml": b"a: yes\n",
        "bytes/script.py": b"print('hi')\n",
        "bytes/image.svg": b"<svg/>",
        # F4: fields that YAML 1.1 reads otherwise
        "core-schema/SKILL.md": skill_md(
            "core-schema",
            extra="metadata:\n  quoted: 'yes'\n  octal: '012'\n  date: '2026-01-01'\n  \"on\": 'off'\n"
            + "".join(f"field-{index}: {text}".rstrip() + "\n" for index, (text, _) in enumerate(CORE_SCHEMA)),
        ),
        # F5: the last line break belongs to the block
        "last-literal/SKILL.md": skill_md("last-literal", extra="notes: |\n  one\n\n  two\n"),
        "last-folded/SKILL.md": b"---\nname: last-folded\ndescription: >\n  One line\n  and more.\n---\nDo it.\n",
        "last-stripped/SKILL.md": skill_md("last-stripped", extra="notes: >-\n  one\n  two\n"),
        # F1: a rule in the body is not the end, an indented one is text
        "rules/SKILL.md": skill_md("rules", body="Above\n\n---\n\nBelow\n", extra="notes: |\n  a\n  ---\n  b\n"),
        # F3: as long as a description may be, in characters and not in bytes
        "long/SKILL.md": skill_md("long", "\U0001f40d" * 1024),
        # E4, L2: a skill in a skill in a skill
        "outer/SKILL.md": skill_md("outer"),
        "outer/inner/SKILL.md": skill_md("inner"),
        "outer/inner/notes.md": b"inner notes\n",
        "outer/inner/deep/innermost/SKILL.md": skill_md("innermost"),
        # U1, U4, U7, E5: prefixes, one of them no host name, and one name at three paths
        "Team.A/review/SKILL.md": skill_md("review", "As team A does it."),
        "Team.A/review/steps/first.md": b"first\n",
        "team-b/eu/west/review/SKILL.md": skill_md("review", "As team B does it."),
        "Équipe 1/review/SKILL.md": skill_md("review", "Comme l'équipe 1."),
        "Équipe 1/review/été/à faire.md": "à faire\n".encode(),
        "team-b/eu/west/review/a/b/c/d/e/f.md": b"deep\n",
        # D1: more files than there are on a page
        "many/SKILL.md": skill_md("many"),
        **{f"many/parts/{index:03}.md": f"part {index}\n".encode() for index in range(110)},
    }


def flat_tree() -> Tree:
    """Three skills, one level deep, that every peer's server serves to the last byte."""
    return {
        "alone/SKILL.md": skill_md("alone"),
        "pixels/SKILL.md": skill_md("pixels", "Größe, 大小, \U0001f40d."),
        "pixels/assets/empty": b"",
        "pixels/assets/empty.txt": b"",
        "pixels/assets/every-byte.bin": bytes(range(256)),
        "refunds/SKILL.md": skill_md("refunds", extra="license: MIT\nmetadata:\n  owner: billing\n"),
        "refunds/data.json": b'{"limit": 500}\n',
        "refunds/references/limits.csv": b"tier,limit\ngold,500\n",
        "refunds/templates/reply.md": "Très cher client,\n".encode(),
    }


def disputed_tree() -> Tree:
    """Skills with one trait each that some peer's server does not serve as it is, and a clean one among them."""
    return {
        "clean/SKILL.md": skill_md("clean"),
        "acme/billing/invoice/SKILL.md": skill_md("invoice"),
        "core-schema/SKILL.md": skill_md("core-schema", extra="switch: on\noctal: 012\ntime: 1:30\nsum: 1_000\n"),
        "crlf/SKILL.md": b"---\r\nname: crlf\r\ndescription: Lines end as on Windows\r\n---\r\n\r\nOne\r\n",
        "crlf/notes.txt": b"one\r\ntwo\r\n",
        "dated/SKILL.md": skill_md("dated", extra="since: 2026-01-01\n"),
        "hidden/SKILL.md": skill_md("hidden"),
        "hidden/.env": b"A=1\n",
        "kept/SKILL.md": skill_md("kept", extra="notes: |+\n  one\n\n\n"),
        "latin/SKILL.md": skill_md("latin"),
        "latin/notes.md": b"na\xefve\n",
        "literal/SKILL.md": skill_md("literal", extra="notes: |\n  one\n  two\n"),
        "manifest/SKILL.md": skill_md("manifest"),
        "manifest/_manifest": b"a file of that name\n",
        "marked/SKILL.md": b"\xef\xbb\xbf" + skill_md("marked"),
        "outer/SKILL.md": skill_md("outer"),
        "outer/inner/SKILL.md": skill_md("inner"),
        "signs/SKILL.md": skill_md("signs"),
        "signs/a+b=c&d.md": b"signs that some encode and some do not\n",
        "spaces/SKILL.md": skill_md("spaces"),
        "spaces/two words.md": b"two words\n",
        "team-a/review/SKILL.md": skill_md("review", "As team A does it."),
        "team-b/review/SKILL.md": skill_md("review", "As team B does it."),
        "unicode/SKILL.md": skill_md("unicode"),
        "unicode/Makefile": b"all:\n",
        "unicode/références/日本語.md": "日本語\n".encode(),
    }


# Which feature of the matrix a skill of the disputed tree stands for, by the first folder of its path.
TRAITS = {
    "acme": "nested",
    "core-schema": "yaml",
    "crlf": "crlf",
    "dated": "yaml",
    "kept": "kept",
    "latin": "bytes",
    "literal": "block",
    "manifest": "names",
    "marked": "bom",
    "outer": "nested",
    "signs": "names",
    "spaces": "names",
    "team-a": "shared",
    "team-b": "shared",
    "unicode": "names",
}


LARGE = ("big/assets/model-1.bin", "big/assets/model-2.bin", "big/references/table.csv")


def limits_tree() -> Tree:
    """E6: a skill of 500 files and one of 15 MiB, both within what every host must accept.

    No file is larger than 5 MiB: over stdio the TypeScript SDK gives up at messages of 10 MiB, unless told not to.
    """
    chance = Random(15)
    return {
        "big/SKILL.md": skill_md("big"),
        "big/assets/model-1.bin": chance.randbytes(5 * MIB),
        "big/assets/model-2.bin": chance.randbytes(5 * MIB),
        "big/references/table.csv": b"tier,limit\n" * (5 * MIB // 11),
        "many/SKILL.md": skill_md("many"),
        **{f"many/parts/{index:03}.md": f"part {index}\n".encode() for index in range(499)},
    }


def wide_tree() -> Tree:
    """230 skills: three pages of ``skills/list`` (L1, L3)."""
    return {f"group-{index % 3}/skill-{index:03}/SKILL.md": skill_md(f"skill-{index:03}") for index in range(230)}


# What is skipped where ``limits_tree`` or ``wide_tree`` is read: nine of ten files that are alike.
ALIKE = r"/\d*[1-9]\.md$|-\d*[1-9]/SKILL\.md$"


def samples(paths: Iterable[str]) -> list[str]:
    """The paths that are read of many: every tenth of those that are alike, and all others."""
    return [path for path in paths if not re.search(ALIKE, path)]


def bom_tree() -> Tree:
    """F6: a byte order mark before the frontmatter, and a skill without one beside it."""
    marked = b"\xef\xbb\xbf" + skill_md("marked")
    return {"marked/SKILL.md": marked, "marked/notes.md": b"notes\n", "plain/SKILL.md": skill_md("plain")}


def kept_tree() -> Tree:
    """F5: a block that keeps all its line breaks (``|+``) ends the frontmatter."""
    return {"kept/SKILL.md": skill_md("kept", extra="notes: |+\n  one\n\n\n"), "plain/SKILL.md": skill_md("plain")}


LOOSE_METADATA = "metadata:\n  version: 1.5\n  beta: true\n"
LOOSE_TOOLS = "allowed-tools: [Read, Grep]\n"


def lenient_tree(extra: str) -> Tree:
    """F7: one skill with a field that breaks the letter of F3, and a clean one beside it."""
    return {"clean/SKILL.md": skill_md("clean"), "loose/SKILL.md": skill_md("loose", extra=extra)}


def declined_tree() -> Tree:
    """F6, F7: what one peer or another declines, though it may be offered."""
    return {**bom_tree(), **loose_tree()}


def loose_tree() -> Tree:
    """F7: both fields that break the letter of F3."""
    return {**lenient_tree(LOOSE_METADATA), "tools/SKILL.md": skill_md("tools", extra=LOOSE_TOOLS)}


def spoiled_tree() -> Tree:
    """F7: a clean skill among some that no server may offer; none of them spoils it."""
    return {
        "clean/SKILL.md": skill_md("clean"),
        "clean/a/b.md": b"b\n",
        "alias/SKILL.md": skill_md("alias", extra="one: &x 1\ntwo: *x\n"),
        "elsewhere/SKILL.md": skill_md("another-name"),
        "Upper/SKILL.md": skill_md("Upper"),
        "unclosed/SKILL.md": b"---\nname: unclosed\ndescription: No end\n",
        "broken/SKILL.md": b"---\nname: [\n---\n",
        "latin/SKILL.md": "---\nname: latin\ndescription: naïve\n---\n".encode("latin-1"),
        "number/SKILL.md": skill_md("number", extra="limit: .inf\n"),
    }


def read_tree(root: Path) -> Tree:
    """What lies on disk."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def skills_of(tree: Mapping[str, bytes]) -> list[str]:
    """The paths of all skills in a tree."""
    return sorted(path.removesuffix("/SKILL.md") for path in tree if path.endswith("/SKILL.md"))


def files_by_skill(tree: Mapping[str, bytes]) -> dict[str, list[str]]:
    """The paths of every skill's files, by the skill's path; a nested skill's are the outer one's too (E4)."""
    return {skill: sorted(f"{skill}/{path}" for path in files_of(tree, skill)) for skill in skills_of(tree)}


def path_of(uri: str) -> str:
    """The path that a ``skill://`` URI stands for (U1, U7), decoded without help from the code under test."""
    assert uri.startswith("skill://")
    return unquote(uri.removeprefix("skill://"), errors="strict")


def by_path(values: Mapping[str, T]) -> dict[str, T]:
    """A mapping by URI as one by path."""
    return {path_of(uri): value for uri, value in values.items()}


def hashes(tree: Mapping[str, bytes]) -> dict[str, str]:
    """The SHA-256 of every file that belongs to a skill, by its path."""
    return {path: sha256(tree[path]).hexdigest() for paths in files_by_skill(tree).values() for path in paths}
