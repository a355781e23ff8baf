"""The map that puts the skills of a source under other URIs (U4, U5, N1).

Only names change. Digests, sizes and bytes stay the same. A map puts the skills of a source below a prefix: a
folder in a combined catalog, or the label of an upstream in the gateway.

A source that may use any scheme is mapped to ``skill://``. Its usual scheme, ``home``, is not part of the mapped
path. Any other scheme becomes a first segment that ends in a colon: ``github://acme/refunds`` is mapped to
``skill://github:/acme/refunds``. If the first segment of a path already ends in a colon, its scheme is added too:
``skill://github:/acme`` is mapped to ``skill://skill:/github:/acme``. So two URIs are never mapped to one, and
every mapped URI can be mapped back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillwire.skill.entry import Partial, Resource
from skillwire.skill.uri import DEFAULT_SCHEME, SkillUri, is_within, parse_uri, root_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.skill import SkillEntry

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*\Z")


@dataclass(frozen=True, slots=True)
class UriMap:
    """Maps URIs of a source ("inner") to URIs below ``prefix`` ("outer"), and back.

    Without ``home`` the scheme stays the same. With ``home`` outer URIs are ``skill://``, and a scheme other than
    ``home`` becomes part of the path.
    """

    prefix: str = ""
    home: str | None = None

    def outer(self, uri: str) -> str:
        """The outer URI of an inner one."""
        if not self.prefix and self.home is None:
            return uri  # nothing is mapped, so its spelling stays too
        return str(self._outer(parse_uri(uri)))

    def inner(self, uri: str) -> str | None:
        """The inner URI of an outer one; ``None`` if ``uri`` is no outer URI of this map."""
        place = parse_uri(uri)
        depth = len(self._prefix_segments)
        segments = place.segments[depth:]
        if place.segments[:depth] != self._prefix_segments or not segments:
            return None
        inner = SkillUri(place.scheme, segments)
        if self.home is not None:
            first, *rest = segments
            has_scheme = first.endswith(":") and rest
            inner = SkillUri(first[:-1], tuple(rest)) if has_scheme else SkillUri(self.home, segments)
        # An outer URI has one form: ``skill://skill:/acme`` does not also mean ``skill://acme``.
        is_valid = _SCHEME.match(inner.scheme) is not None and self._outer(inner) == place
        return str(inner) if is_valid else None

    def path(self, uri: str) -> str:
        """The path, below the prefix, of the skill whose ``SKILL.md`` is at the inner ``uri``."""
        outer = self._outer(root_of(uri))
        return "/".join(outer.segments[len(self._prefix_segments) :])

    def entry(self, entry: SkillEntry) -> SkillEntry:
        """The same skill, with outer URIs.

        Known files of an incomplete entry may lie outside the skill. They have no outer URI and are removed.
        """
        uri = self.outer(entry.uri)
        if uri == entry.uri:
            return entry
        resources = entry.resources
        if isinstance(resources, tuple):
            resources = self._files(resources)
        elif isinstance(resources, Partial):
            root = entry.root
            resources = Partial(
                self._files(file for file in resources.known if is_within(root, parse_uri(file.uri)))
            )
        return replace(entry, uri=uri, resources=resources)

    @property
    def _prefix_segments(self) -> tuple[str, ...]:
        return tuple(self.prefix.split("/")) if self.prefix else ()

    def _outer(self, inner: SkillUri) -> SkillUri:
        if self.home is None:
            return SkillUri(inner.scheme, self._prefix_segments + inner.segments)
        is_home = inner.scheme == self.home and not inner.segments[0].endswith(":")
        scheme = () if is_home else (f"{inner.scheme}:",)
        return SkillUri(DEFAULT_SCHEME, (*self._prefix_segments, *scheme, *inner.segments))

    def _files(self, files: Iterable[Resource]) -> tuple[Resource, ...]:
        return tuple(file._replace(uri=self.outer(file.uri)) for file in files)
