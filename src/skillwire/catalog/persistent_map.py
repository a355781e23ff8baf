"""A mapping whose changed copy costs what changed, not what it holds.

Copies share one large base; what differs from it lies in a small layer of their own. When a layer has grown, the
next copy gets a base of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

V = TypeVar("V")

_MAX_LAYER = 1000


class Layered(Generic[V]):
    """An immutable mapping of text to values other than ``None``."""

    __slots__ = ("_base", "_layer")

    def __init__(self, base: Mapping[str, V] | None = None, layer: Mapping[str, V | None] | None = None) -> None:
        self._base = base or {}
        self._layer = layer or {}

    def get(self, key: str) -> V | None:
        """The value at ``key``, or ``None``."""
        return self._layer[key] if key in self._layer else self._base.get(key)

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def values(self) -> Iterator[V]:
        """Every value. Goes through everything."""
        for key, value in self._base.items():
            if key not in self._layer:
                yield value
        yield from (value for value in self._layer.values() if value is not None)

    def changed(self, changes: Mapping[str, V | None]) -> Layered[V]:
        """A copy with ``changes``; ``None`` takes a key away."""
        if not changes:
            return self
        layer = {**self._layer, **changes}
        if len(layer) <= _MAX_LAYER:
            return Layered(self._base, layer)
        whole: dict[str, V | None] = {**self._base, **layer}
        return Layered({key: value for key, value in whole.items() if value is not None})
