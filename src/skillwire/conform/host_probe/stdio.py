"""One origin on stdio, as a host starts it: ``python -m skillwire.conform.host_probe.stdio LABEL FILE``."""

from __future__ import annotations

import json
import os
import sys

import anyio

from skillwire.conform.host_probe.honeypot import LABELS
from skillwire.conform.host_probe.observations import Seen, observed_server
from skillwire.server.run import serve_stdio


def main() -> None:
    """Serve until stdin closes. Lines of several processes do not mix: each is one write at the file's end."""
    label, path = sys.argv[1:]
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(one: Seen) -> None:
        os.write(log, json.dumps(one.to_json()).encode() + b"\n")

    anyio.run(serve_stdio, observed_server(LABELS[label], note))


if __name__ == "__main__":
    main()
