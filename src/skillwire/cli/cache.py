"""``skillwire cache``: shows, verifies and prunes the cache of verified content (C1–C3)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Noun, Size, option, verb
from skillwire.cli.host_session import STORE_OPTIONS, state_of
from skillwire.cli.printer import Printer, counted, line, size_of

if TYPE_CHECKING:
    from skillwire.store.content_cache import ContentCache


@verb("Show the size for each origin.", *STORE_OPTIONS, examples="  skillwire cache show\n")
def _show(arguments: Arguments, printer: Printer) -> None:
    usage = _open(arguments).usage()
    printer.json({"files": usage.files, "bytes": usage.bytes, "origins": dict(usage.by_origin)})
    rows = [(line(label), size_of(kept)) for label, kept in sorted(usage.by_origin.items())]
    printer.table(("origin", "size"), rows)
    printer.talk(f"{counted(usage.files, 'file')}, {size_of(usage.bytes)}")


@verb(
    "Hash all files again and remove damaged ones.",
    *STORE_OPTIONS,
    examples="  skillwire cache verify             exit code 1 if files were damaged\n",
)
def _verify(arguments: Arguments, printer: Printer) -> int:
    cache = _open(arguments)
    damaged = cache.verify()
    kept = cache.usage().files
    found = [{"origin": file.origin, "digest": file.digest, "reason": file.reason} for file in damaged]
    printer.result(
        {"files": kept, "damaged": found},
        *(f"removed {file.digest} of {line(file.origin)}: {line(file.reason)}" for file in damaged),
    )
    printer.talk(f"{counted(kept, 'file')} kept, {len(damaged)} damaged and removed")
    return Exit.PROBLEMS if damaged else Exit.OK


@verb(
    "Remove the least recently used files.",
    option("--max", type=Size(), metavar="SIZE", help="keep at most this much, such as 100M (default: 512M)"),
    *STORE_OPTIONS,
    examples="  skillwire cache prune --max 100M\n",
)
def _prune(arguments: Arguments, printer: Printer) -> None:
    cache = _open(arguments)
    freed = cache.prune(arguments.max, now=time.time())
    kept = cache.usage()
    printer.result({"freed": freed, "files": kept.files, "bytes": kept.bytes})
    printer.talk(f"freed {size_of(freed)}; {size_of(kept.bytes)} kept")


def _open(arguments: Arguments) -> ContentCache:
    from skillwire.host.state import open_cache

    logging.getLogger("skillwire.cache").setLevel(logging.ERROR)  # damaged files are reported above
    return open_cache(state_of(arguments))


command = Noun(
    "The cache of verified skill content on disk, which allows loading without a connection.",
    {"show": _show, "verify": _verify, "prune": _prune},
    default="show",
)
