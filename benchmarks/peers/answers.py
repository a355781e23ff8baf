"""What our server answers, written down for the floor and for the SDK's server that answers from a dictionary."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from benchmarks.peers.messages import FIRST_ID, Line, Speaking, next_cursor

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.peers.tree import Tree


def record(port: int, tree: Tree, place: Path) -> None:
    """Ask for everything that will be asked for while servers are measured."""
    line = Line(Speaking(port))
    part = place.with_suffix(f".{os.getpid()}")  # put in place whole: another run may be reading
    with part.open("w", encoding="utf-8") as file:

        def keep(method: str, about: str | None, body: bytes) -> None:
            head, mark, tail = body.partition(b'"id":')
            width = len(str(FIRST_ID))
            if not (mark and tail[:width].isdigit()):
                raise ValueError(f"an answer whose id is elsewhere: {body[:80]!r}")
            file.write(json.dumps([method, about, (head + mark).decode(), tail[width:].decode()]) + "\n")

        for uri in tree.skill_uris():
            keep("skills/get", uri, line.ask("skills/get", uri=uri))
        for uri in tree.digests():
            keep("resources/read", uri, line.ask("resources/read", uri=uri))
        cursor: str | None = None
        while True:
            page = line.ask("skills/list", **({} if cursor is None else {"cursor": cursor}))
            keep("skills/list", cursor, page)
            cursor = next_cursor(page)
            if cursor is None:
                break
    line.close()
    os.replace(part, place)
