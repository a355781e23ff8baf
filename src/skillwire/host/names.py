"""The names of skills for a model (N1, E5).

A skill is identified by its origin and URI. Its name need not be unique. A bare name is used only while no other
skill of any origin has the same name, regardless of case and Unicode form. Otherwise each skill is shown under the
first unambiguous one of ``origin:name``, ``origin:path`` and ``origin:URI``. A name that could imitate another
(``local:refunds``, letters that look like others) is never used bare. A name with invisible characters is replaced
by the URI, with these characters encoded. No skill hides another or has precedence, of a folder or of a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.errors import NotFoundError, OriginError
from skillwire.skill.hidden import is_seen
from skillwire.skill.uri import fold, parse_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.host.origins import Origin
    from skillwire.skill import SkillEntry

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """A skill of an origin, and its shortest unambiguous name."""

    name: str
    origin: Origin
    entry: SkillEntry


class Names:
    """All known skills, by all their names."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        known = [(origin, entry) for origin in origins for entry in origin.known]
        qualified = [_qualified(*each) for each in known]
        same_name: dict[str, list[int]] = {}  # by folded name
        meant: dict[str, list[int]] = {}  # which skills a name can mean
        for number, (_, entry) in enumerate(known):
            same_name.setdefault(fold(entry.name), []).append(number)
            for name in (entry.uri, *qualified[number]):
                meant.setdefault(name, []).append(number)
        meant |= {entry.name: same_name[fold(entry.name)] for _, entry in known if _is_plain(entry.name)}
        self.skills = tuple(
            NamedEntry(_shortest(entry.name, longer, meant), origin, entry)
            for (origin, entry), longer in zip(known, qualified, strict=True)
        )
        self._by_name = {name: [self.skills[number] for number in numbers] for name, numbers in meant.items()}

    def find(self, text: str, origin: str | None = None) -> NamedEntry:
        """The skill that ``text`` means; ``OriginError`` lists the candidates if there are several."""
        found = self._by_name.get(text, [])
        if origin is not None:
            within = [
                skill
                for skill in found
                if skill.origin.label == origin and text in (skill.entry.name, skill.entry.uri)
            ]
            found = within or [
                skill for skill in self._by_name.get(f"{origin}:{text}", []) if skill.origin.label == origin
            ]
        if len(found) == 1:
            return found[0]
        if found:
            raise OriginError(
                "name-ambiguous",
                f"{text!r:.100} is ambiguous: {', '.join(skill.name for skill in found[:_SHOWN])}",
                "use one of these names",
                rule="N1",
            )
        raise NotFoundError("skill-unknown", f"unknown skill {text!r:.100}", "use a name from the list", rule="N1")


def _qualified(origin: Origin, entry: SkillEntry) -> tuple[str, ...]:
    """The names with the origin's label, shortest first. The last one has no invisible characters."""
    names = [entry.name, entry.path, entry.uri]
    if not _is_visible(entry.uri):
        names.append(str(parse_uri(entry.uri)))
    return tuple(dict.fromkeys(f"{origin.label}:{name}" for name in names))


def _is_plain(name: str) -> bool:
    """Whether the name cannot imitate a qualified name or other letters."""
    return name.isascii() and ":" not in name


def _shortest(name: str, qualified: tuple[str, ...], meant: dict[str, list[int]]) -> str:
    """The first name that means one skill only. The last one, with label and URI, always does."""
    *shorter, longest = (*([name] if _is_plain(name) else []), *qualified)
    return next((each for each in shorter if len(meant[each]) == 1 and _is_visible(each)), longest)


def _is_visible(text: str) -> bool:
    return text.isascii() or (text.isprintable() and is_seen(text))
