"""The acting windows of one conversation, by skill (W1–W3). ``skill/window.py`` has the state transitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillwire.errors import ApprovalError, OriginError
from skillwire.skill.uri import SkillUri, parse_uri, skill_root
from skillwire.skill.window import Event, Window

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.host.loader import ApprovedSkill


class Windows:
    """The skills whose text is in the model's context, and what each may cause."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], tuple[Window, ApprovedSkill]] = {}
        self._names: dict[tuple[str, str], str] = {}

    def load(self, skill: ApprovedSkill, name: str) -> None:
        """W1: the host loaded the ``SKILL.md`` into the context, under this name."""
        window = Window(skill.origin.label, skill.entry, skill.grants).after("load")
        self._windows[skill.origin.label, skill.entry.uri] = window, skill
        self._names[skill.origin.label, skill.entry.uri] = name

    def quote(self, skill: ApprovedSkill, name: str) -> None:
        """O3: a read across origins put text of a skill into the context, under this name."""
        place = skill.origin.label, skill.entry.uri
        if place in self._windows:
            self.apply(*place, "cross-read")
        else:
            window = Window(skill.origin.label, skill.entry, skill.grants).after("cross-read")
            self._windows[place] = window, skill
            self._names[place] = name

    def grant(self, skill: ApprovedSkill, grants: frozenset[str]) -> None:
        """A4, A5: add grants; ``ApprovalError`` if the skill changed while the person was asked."""
        place = skill.origin.label, skill.entry.uri
        if place in self._windows:
            held = self.current(*place, skill.entry.name)
            if held.entry != skill.entry:
                raise _changed(skill.entry.name)
            held = replace(held, grants=held.grants | grants)
            self._windows[place] = replace(self._windows[place][0], grants=held.grants), held

    def apply(self, origin: str, uri: str, event: Event) -> None:
        """Apply an event to the window of a skill, if it has one."""
        known = self._windows.get((origin, uri))
        if known is not None:
            window = known[0].after(event)
            if window.is_acting:
                self._windows[origin, uri] = window, known[1]
            else:
                del self._windows[origin, uri]

    def apply_to_all(self, event: Event, origin: str | None = None) -> None:
        """Apply an event to all windows, or to those of one origin."""
        for label, uri in list(self._windows):
            if origin is None or label == origin:
                self.apply(label, uri, event)

    def acting(self) -> Iterator[tuple[Window, ApprovedSkill]]:
        """Every skill whose text is in the context."""
        return iter(list(self._windows.values()))

    def find(self, name: str, *, by_uri: bool = False) -> tuple[str, str] | None:
        """Origin and URI of the skill that was loaded under ``name``.

        A skill keeps the name that the model knows, even if that name means another skill by now (N1).
        """
        found = [
            place
            for place in self._windows
            if name in (self._names[place], ":".join(place)) or (by_uri and name == place[1])
        ]
        if len(found) > 1:
            raise OriginError(
                "name-ambiguous",
                f"{name!r:.100} is ambiguous: {', '.join(map(':'.join, found))}",
                "use one of these names",
                rule="N1",
            )
        return found[0] if found else None

    def around(self, origin: str, file: SkillUri) -> str:
        """The name of the innermost loaded skill of ``origin`` around ``file``, or ``ApprovalError``."""
        roots = {skill_root(parse_uri(uri)): uri for label, uri in self._windows if label == origin}
        for place in file.parent.upwards():
            uri = roots.get(place)
            if uri is not None:
                return f"{origin}:{uri}"
        raise ApprovalError(
            "skill-not-loaded",
            f"no loaded skill of {origin!r:.80} contains {str(file)!r:.300}",
            "load the skill first: read its SKILL.md",
            rule="W2",
        )

    def loaded(self, origin: str, uri: str, name: str) -> ApprovedSkill:
        """The loaded skill; ``ApprovalError`` if it is not loaded, was revoked, or changed."""
        known = self._windows.get((origin, uri))
        if known is None or known[0].state == "quoted":
            raise ApprovalError(
                "skill-not-loaded", f"{name!r:.100} is not loaded", "call load_skill first", rule="W2"
            )
        return self.current(origin, uri, name)

    def current(self, origin: str, uri: str, name: str) -> ApprovedSkill:
        """The skill whose text is in the context; ``ApprovalError`` if it was revoked or changed."""
        window, skill = self._windows[origin, uri]
        if window.state == "revoked":
            raise _changed(name)
        return skill


def _changed(name: str) -> ApprovalError:
    return ApprovalError(
        "skill-changed",
        f"{name!r:.100} was revoked or changed after it was loaded",
        "load it again: it needs a new approval",
        rule="A2",
    )
