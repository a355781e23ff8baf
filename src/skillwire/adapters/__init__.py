"""Adapters for agent frameworks, one file each. Each needs the extra of the same name.

An adapter translates and adds no rules. The tools are ``host.tools()`` and ``host.call()``, the list of skills is
``host.catalog_prompt()``, and refusals reach the model as text. An agent without a framework needs no adapter, see
``examples/agents/plain_loop.py``.

A framework calls tools itself. So each adapter calls ``host.gate()`` before any other tool of the agent runs:
while text of a server's skill is in the context, code runs only if a person granted it (A5). No adapter offers the
host's tools without this gate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection


def harmless_names(names: Collection[str]) -> frozenset[str]:
    """The names of the tools that are not gated. Text is refused: ``"oil" in "boil"`` is true."""
    if isinstance(names, str):
        raise TypeError(f"'harmless' is text; give a list of names: harmless=[{names!r}]")
    return frozenset(names)


def missing(extra: str, error: ImportError) -> ImportError:
    """The error for an environment without the framework, or with one that is too old."""
    return ImportError(f"{error}. This adapter needs an extra: pip install 'skillwire[{extra}]'", name=error.name)
