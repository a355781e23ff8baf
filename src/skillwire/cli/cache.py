"""``skillwire cache``: shows, verifies and prunes the cache of verified content (C1–C3)."""

from __future__ import annotations

import logging
import re
import time
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.host_session import add_state_options, state_of
from skillwire.cli.printer import Printer, counted, line, size_of

if TYPE_CHECKING:
    from skillwire.store.content_cache import ContentCache

_EXAMPLES = """\
examples:
  skillwire cache show
  skillwire cache verify             hash all files again; remove damaged ones
  skillwire cache prune --max 100M   remove the least recently used files

exit codes: 0 done, 1 some files were damaged, 2 usage, or an unusable cache
"""
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:i?B)?\Z", re.IGNORECASE)
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "cache",
        run,
        "show, verify or prune the cache of verified content",
        "Manage the cache of verified skill content on disk, which allows loading without a connection.",
        _EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add_state_options(actions.add_parser("show", help="show the size for each origin"))
    add_state_options(actions.add_parser("verify", help="hash all files again and remove damaged ones"))
    prune = actions.add_parser("prune", help="remove the least recently used files")
    prune.add_argument(
        "--max", type=size, metavar="SIZE", help="keep at most this much, such as 100M (default: 512M)"
    )
    add_state_options(prune)


def size(text: str) -> int:
    """Parse a size such as ``100M`` or ``1.5 GiB``, in units of 1024 bytes."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise ArgumentTypeError("is not a size; write 100M or 2G")
    return int(float(match[1]) * 1024 ** _UNITS[match[2].upper()])


def run(arguments: Arguments, printer: Printer) -> int:
    """Show, verify or prune the cache."""
    from skillwire.host.state import open_cache

    logging.getLogger("skillwire.cache").setLevel(logging.ERROR)  # damaged files are reported below
    actions = {"show": _show, "verify": _verify, "prune": _prune}
    return actions[arguments.action](open_cache(state_of(arguments)), arguments, printer)


def _show(cache: ContentCache, arguments: Arguments, printer: Printer) -> int:
    usage = cache.usage()
    if arguments.json:
        printer.json({"files": usage.files, "bytes": usage.bytes, "origins": dict(usage.by_origin)})
        return Exit.OK
    rows = [(line(label), size_of(kept)) for label, kept in sorted(usage.by_origin.items())]
    printer.table(("origin", "size"), rows)
    printer.talk(f"{counted(usage.files, 'file')}, {size_of(usage.bytes)}")
    return Exit.OK


def _verify(cache: ContentCache, arguments: Arguments, printer: Printer) -> int:
    damaged = cache.verify()
    kept = cache.usage().files
    if arguments.json:
        found = [{"origin": file.origin, "digest": file.digest, "reason": file.reason} for file in damaged]
        printer.json({"files": kept, "damaged": found})
    else:
        for file in damaged:
            printer.data(f"removed {file.digest} of {line(file.origin)}: {line(file.reason)}")
        printer.talk(f"{counted(kept, 'file')} kept, {len(damaged)} damaged and removed")
    return Exit.PROBLEMS if damaged else Exit.OK


def _prune(cache: ContentCache, arguments: Arguments, printer: Printer) -> int:
    freed = cache.prune(arguments.max, now=time.time())
    kept = cache.usage()
    if arguments.json:
        printer.json({"freed": freed, "files": kept.files, "bytes": kept.bytes})
    else:
        printer.talk(f"freed {size_of(freed)}; {size_of(kept.bytes)} kept")
    return Exit.OK
