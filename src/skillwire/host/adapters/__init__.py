"""One thin file per agent framework; each needs the extra of its name. They add shape, and no rules of their own:

the tools are ``host.tools()`` and ``host.call()``, the list of skills is ``host.catalog_prompt()``, and what was
refused reaches the model as text. A loop of your own needs no adapter: ``examples/agents/plain_loop.py``.

A framework calls tools by itself. So each adapter asks ``host.gate()`` before any other tool of the agent runs:
while words of a server's skill are in the context, code runs only if a person granted it (A5). No adapter offers
the host's tools without this gate.
"""

from __future__ import annotations


def missing(extra: str, error: ImportError) -> ImportError:
    """What to tell a person whose environment lacks the framework, or has one that is too old."""
    return ImportError(f"{error}. This adapter needs an extra: pip install 'skillwire[{extra}]'", name=error.name)
