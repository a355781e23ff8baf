"""``skillwire approve`` as a program types it: the fingerprint comes from a review (Z4)."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

from skillwire.cli.main import run


def reviewed_fingerprint(name: str, *options: str) -> str:
    """The fingerprint that ``skillwire approvals show`` shows."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert run(["approvals", "show", name, "--json", *options]) == 0
    return json.loads(out.getvalue())["fingerprint"]


def approve(name: str, *words: str, options: tuple[str, ...] | list[str] = ()) -> int:
    """Review a skill, then approve what was shown. ``options`` are those of both commands."""
    fingerprint = reviewed_fingerprint(name, *options)
    return run(["approve", name, *words, "--fingerprint", fingerprint, *options])
