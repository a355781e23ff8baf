"""What a model may call a skill (N1, E5).

A skill's identity is (origin, URI). Its name is a label that others may bear too, so a bare name means a skill
only while no other skill of any origin has it, in whatever case or Unicode form; else each is shown as
``origin:name``, ``origin:path`` or ``origin:URI``, whichever first means it and nothing else. A name that could be
taken for more than a name (``local:refunds``, letters that look like others) is never bare, and one that has
characters that nobody sees is shown by its URI, with these encoded. Nothing is dropped, preferred or hidden by
another, folder or server alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.errors import NotFoundError, OriginError
from skillwire.skill.entry import fold
from skillwire.skill.hidden import is_seen
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.host.origins import Origin
    from skillwire.skill import SkillEntry

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """A skill of an origin, and the shortest name that means it and nothing else."""

    name: str
    origin: Origin
    entry: SkillEntry


class Names:
    """Every known skill by every name that means it."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        known = [(origin, entry) for origin in origins for entry in origin.entries]
        qualified = [_qualified(*each) for each in known]
        bearers: dict[str, list[int]] = {}  # of a name, folded
        meant: dict[str, list[int]] = {}
        for number, (_, entry) in enumerate(known):
            bearers.setdefault(fold(entry.name), []).append(number)
            for name in (entry.uri, *qualified[number]):
                meant.setdefault(name, []).append(number)
        meant |= {entry.name: bearers[fold(entry.name)] for _, entry in known if _is_plain(entry.name)}
        self.skills = tuple(
            NamedEntry(_shortest(entry.name, longer, meant), origin, entry)
            for (origin, entry), longer in zip(known, qualified, strict=True)
        )
        self._by_name = {name: [self.skills[number] for number in numbers] for name, numbers in meant.items()}

    def find(self, text: str, origin: str | None = None) -> NamedEntry:
        """The one skill that ``text`` means; ``OriginError`` lists the candidates if there are several."""
        found = self._by_name.get(text, [])
        if origin is not None:
            within = [skill for skill in found if skill.origin.label == origin and text in _own(skill.entry)]
            found = within or [
                skill for skill in self._by_name.get(f"{origin}:{text}", []) if skill.origin.label == origin
            ]
        if len(found) == 1:
            return found[0]
        if found:
            raise OriginError(
                "name-ambiguous",
                f"{text!r:.100} could be {', '.join(skill.name for skill in found[:_SHOWN])}",
                "use one of these names",
                rule="N1",
            )
        raise NotFoundError(
            "skill-unknown", f"no known skill is called {text!r:.100}", "use a name from the list", rule="N1"
        )


def _own(entry: SkillEntry) -> tuple[str, ...]:
    return entry.name, entry.uri


def _qualified(origin: Origin, entry: SkillEntry) -> tuple[str, ...]:
    """The names with a label before them, each once, shortest first; the last is one that everybody can see."""
    names = [entry.name, entry.path, entry.uri]
    if not _is_visible(entry.uri):
        names.append(str(parse_uri(entry.uri)))
    return tuple(dict.fromkeys(f"{origin.label}:{name}" for name in names))


def _is_plain(name: str) -> bool:
    """Whether it can be nothing but a name, and looks like what it is."""
    return name.isascii() and ":" not in name


def _shortest(name: str, qualified: tuple[str, ...], meant: dict[str, list[int]]) -> str:
    """The first that means one skill; the last, with label and URI, always does."""
    *shorter, whole = (*([name] if _is_plain(name) else []), *qualified)
    return next((each for each in shorter if len(meant[each]) == 1 and _is_visible(each)), whole)


def _is_visible(text: str) -> bool:
    return text.isascii() or (text.isprintable() and is_seen(text))
