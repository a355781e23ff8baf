"""Which catalog may use which path in a combined catalog (N1).

Labels are reserved: a path that begins with a source's label belongs to that source alone. A source *claims* any
other path at which it has a skill. A path is *contested* if two sources claim it, or if one claims it inside
another's skill. A skill is visible at its own path if that can be claimed and is not contested, else at its
source's label before that path. So every skill has exactly one URI, no file's URI can mean two things, and
nothing is shadowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from skillwire.skill.uri import skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.catalog.contract import Catalog


@dataclass(frozen=True, slots=True, eq=False)
class Mount:
    """A catalog, the label that tells it from its neighbours, and the prefix its skills are served under."""

    catalog: Catalog
    label: str
    prefix: str = ""

    def outer(self, path: str) -> str:
        """The path with the prefix."""
        return f"{self.prefix}/{path}" if self.prefix else path

    def inner(self, path: str) -> str | None:
        """The path without the prefix; ``None`` if it does not begin with it."""
        if not self.prefix:
            return path
        return path[len(self.prefix) + 1 :] if path.startswith(f"{self.prefix}/") else None

    def inner_beginning(self, beginning: str) -> str:
        """``beginning`` without the prefix; empty if it does not begin with it."""
        prefix = f"{self.prefix}/" if self.prefix else ""
        return beginning[len(prefix) :] if beginning.startswith(prefix) else ""

    def qualified(self, path: str) -> str:
        """The path below the label, which no other source can have."""
        return f"{self.label}/{path}"


class Claim(NamedTuple):
    """A source that has a skill, and the skill's path there."""

    mount: Mount
    inner: str


class Claims:
    """Claims on paths, cached for one request."""

    def __init__(self, mounts: Sequence[Mount], scheme: str) -> None:
        self._mounts = mounts
        self._by_label = {mount.label: mount for mount in mounts}
        self._scheme = scheme
        self._known: dict[str, list[Claim]] = {}

    async def of(self, path: str) -> list[Claim]:
        """The sources that claim ``path``."""
        if path not in self._known:
            self._known[path] = [
                Claim(mount, inner)
                for mount in self._mounts
                if (inner := mount.inner(path)) and self.may_claim(mount, path) and await self._has(mount, inner)
            ]
        return self._known[path]

    def may_claim(self, mount: Mount, path: str) -> bool:
        """Whether the first segment is no label, or is the label of ``mount`` and begins its prefix."""
        owner = self._by_label.get(path.partition("/")[0])
        return owner is None or (owner is mount and mount.prefix.partition("/")[0] == mount.label)

    async def is_contested(self, path: str) -> bool:
        """Whether more than one source claims ``path``, or one claims it inside another's skill."""
        if len(self._mounts) < 2:
            return False
        mounts = {claim.mount for claim in await self.of(path)}
        above = path.rpartition("/")[0] if mounts else ""
        while above and len(mounts) < 2:
            mounts |= {claim.mount for claim in await self.of(above)}
            above = above.rpartition("/")[0]
        return len(mounts) > 1

    async def visible_path(self, mount: Mount, path: str) -> str:
        """The path at which a skill of ``mount``, whose path with its prefix is ``path``, is served."""
        if self.may_claim(mount, path) and not await self.is_contested(path):
            return path
        return mount.qualified(path)

    async def at(self, path: str) -> Claim | None:
        """The skill visible at exactly ``path``. ``None`` too if it is contested: then ask ``of``."""
        claims = await self.of(path)
        if claims:
            return None if await self.is_contested(path) else claims[0]
        label, _, rest = path.partition("/")
        mount = self._by_label.get(label)
        inner = mount.inner(rest) if mount and rest else None
        if mount is None or not inner or not await self._has(mount, inner):
            return None
        return Claim(mount, inner) if await self.visible_path(mount, rest) == path else None

    async def _has(self, mount: Mount, path: str) -> bool:
        return await mount.catalog.peek_skill(skill_md_uri(path, self._scheme)) is not None
