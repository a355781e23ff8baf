"""Links that leave a skill: to the web, to files of the machine, out of its folder. PURE.

In Markdown every link counts; in any text, every address of the web that stands in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.errors import FormatError
from skillwire.skill.markdown import read_markdown
from skillwire.skill.uri import parse_uri, reference_kind, resolve_reference, skill_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Kind: TypeAlias = Literal["web", "machine", "outside"]
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`\\)\]}|]{1,500}", re.IGNORECASE)
_MOST_TARGETS = 200
_MOST_PLACES = 5
_LONGEST = 500


@dataclass
class Leaving:
    """Where a link leads, of what kind that is, and where it stands."""

    target: str
    kind: Kind
    places: list[str] = field(default_factory=list[str])
    count: int = 0


def leaving_links(skill: str, texts: Iterable[tuple[str, str]]) -> list[Leaving]:
    """Those of the skill whose ``SKILL.md`` is at ``skill``; ``texts`` are paths inside it, and what they say."""
    found: dict[str, Leaving] = {}
    for path, text in texts:
        for target, kind, offset in _links(skill, path, text):
            if target not in found and len(found) >= _MOST_TARGETS:
                continue
            link = found.setdefault(target, Leaving(target, kind))
            link.count += 1
            if len(link.places) < _MOST_PLACES:
                link.places.append(f"{path}:{text.count(chr(10), 0, offset) + 1}")
    return sorted(found.values(), key=lambda link: (_ORDER[link.kind], link.target))


def _links(skill: str, path: str, text: str) -> Iterator[tuple[str, Kind, int]]:
    seen: set[str] = set()
    if path.lower().endswith((".md", ".markdown")):
        for link in read_markdown(text).links:
            kind = _kind(skill, link.target)
            if kind is not None:
                seen.add(link.target)
                yield link.target[:_LONGEST], kind, link.offset
    own = f"{parse_uri(skill).scheme}:"
    for match in _ADDRESS.finditer(text):
        address = match.group().rstrip(".,;:!?*_")
        if address not in seen and not address.lower().startswith(own):
            yield address, "machine" if address.lower().startswith("file:") else "web", match.start()


def _kind(skill: str, target: str) -> Kind | None:
    kind = reference_kind(target)
    if kind == "machine":
        return "machine"
    if kind == "elsewhere":
        return None if not target.strip() or target.strip().startswith("#") else "web"
    uri = parse_uri(skill)
    try:
        resolve_reference(skill_root(uri), uri, target)
    except FormatError:
        return "outside"
    return None


_ORDER: dict[Kind, int] = {"machine": 0, "outside": 1, "web": 2}
