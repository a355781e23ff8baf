"""Where an upstream's skill is in the gateway: a mapping that loses nothing (U4, U5, N1). Pure.

An upstream may use any scheme; the gateway serves ``skill://``. What an upstream has at ``skill://acme/refunds``
is at ``acme/refunds`` below its label. What it has in another scheme has that scheme before it, as a segment that
ends in a colon: ``github://acme/refunds`` is at ``github:/acme/refunds``. A first segment that really ends in a
colon has its scheme before it too: ``skill:/github:/acme/refunds``. So no two addresses of an upstream ever become
one, whatever else it lists, and every one can be read back.

Where an upstream knows its skills by name only, they have no addresses of its own, and ``named://`` is the scheme
that needs no mention.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.skill.uri import DEFAULT_SCHEME, NAMED_SCHEME, SkillUri, parse_uri

if TYPE_CHECKING:
    from collections.abc import Iterable

# Most URIs look like this: in the one spelling they have, and the same on both sides.
_PLAIN = re.compile(r"skill://[A-Za-z0-9_~-][A-Za-z0-9_~.-]*(?:/[A-Za-z0-9_~-][A-Za-z0-9_~.-]*)*\Z")


def is_plain(uri: str) -> bool:
    """Whether ``uri`` is an address of ours as it stands, and the only way to write it."""
    return _PLAIN.match(uri) is not None


@dataclass(frozen=True, slots=True)
class Addresses:
    """The mapping for an upstream whose usual scheme is ``home``."""

    home: str = DEFAULT_SCHEME

    def inside(self, theirs: SkillUri) -> SkillUri:
        """Where the gateway has what the upstream has at ``theirs``."""
        if theirs.scheme == self.home and not theirs.segments[0].endswith(":"):
            return SkillUri(DEFAULT_SCHEME, theirs.segments)
        return SkillUri(DEFAULT_SCHEME, (f"{theirs.scheme}:", *theirs.segments))

    def inside_uri(self, uri: str) -> str:
        """The same, as text."""
        if self.home == DEFAULT_SCHEME and is_plain(uri):
            return uri
        return str(self.inside(parse_uri(uri)))

    def theirs(self, inside: SkillUri) -> SkillUri:
        """The upstream's own address for what the gateway has at ``inside``."""
        first, *rest = inside.segments
        if first.endswith(":") and rest:
            return SkillUri(first[:-1], tuple(rest))
        return SkillUri(self.home, inside.segments)


def addresses_for(schemes: Iterable[str]) -> Addresses:
    """The mapping for an upstream that lists skills in these schemes."""
    return Addresses(NAMED_SCHEME if set(schemes) == {NAMED_SCHEME} else DEFAULT_SCHEME)
