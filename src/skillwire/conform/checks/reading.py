"""``resources/read``: every file of every skill, compared with its entry byte for byte (R1, R2, F1, F6, U7).

Each ``SKILL.md`` comes first, so that all of them are looked at before the bounds are reached.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.authored import check_document
from skillwire.errors import FormatError
from skillwire.skill.digest import digest_of
from skillwire.skill.uri import SKILL_MD, format_uri, is_within, parse_uri
from skillwire.wire.extension import DIRECTORY_READ, EXTENSION_ID
from skillwire.wire.media import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.conform.checks.asking import Listed, Run
    from skillwire.conform.evidence import Exchange
    from skillwire.conform.outcome import Ledger
    from skillwire.skill.entry import Resource

_BOM = b"\xef\xbb\xbf"
_MARKDOWN = "text/markdown"
_DYNAMIC_FILES = 50  # of one skill, and as many directories


async def check_reading(run: Run) -> None:
    """Read everything, as far as the bounds go, then what nobody may read."""
    read = size = 0
    todo = [*_files(run.entries, main=True), *_files(run.entries, main=False)]
    for skill, file in todo:
        if read >= run.bounds.files or size > run.bounds.file_bytes:
            run.ledger.doubtful(
                "R2", f"only {read:,} of {len(todo):,} files were read; the rest is beyond the bounds"
            )
            break
        read, size = read + 1, size + (file.size or 0)
        await _check_file(run, skill, file)
    for skill in run.entries:
        if skill.entry.is_dynamic:
            await _check_dynamic(run, skill)
    if run.entries and run.ledger.wants("U7"):
        await _check_ways_out(run, max(run.entries, key=lambda skill: len(skill.root.segments)))


def _files(entries: list[Listed], *, main: bool) -> Iterator[tuple[Listed, Resource]]:
    for skill in entries:
        for file in skill.entry.files:
            if (parse_uri(file.uri) == parse_uri(skill.entry.uri)) == main:
                yield skill, file


async def _check_file(run: Run, skill: Listed, file: Resource) -> None:
    exchange = await run.ask("resources/read", uri=file.uri)
    data = content_of(run.ledger, exchange, file.uri)
    if data is None:
        return
    lost = _lost_in_text(file, data)
    if lost:
        run.ledger.broken("F6", f"{file.uri!r:.300} comes without {lost}, which its digest has", exchange)
    elif _is_right(run.ledger, file, data, exchange) and _is_telling(data):
        run.ledger.held("F6", exchange)
    if parse_uri(file.uri) == parse_uri(skill.entry.uri) and not lost:
        check_document(run, skill, data, exchange)


async def _check_dynamic(run: Run, skill: Listed) -> None:
    """E2: a skill whose files are stable has no reason to be dynamic, and no host can verify it."""
    uri = skill.entry.uri
    first = await run.ask("resources/read", uri=uri)
    data = content_of(run.ledger, first, uri)
    if data is None:
        return
    check_document(run, skill, data, first)
    second = await run.ask("resources/read", uri=uri)
    if _bytes(second) != data:
        return
    others = await _files_now(run, skill)
    if others == await _files_now(run, skill):
        files = "its SKILL.md was" if not others else f"its SKILL.md and {len(others)} other files were"
        message = f'{uri!r:.300} is "dynamic", and {files} read twice with the same bytes'
        run.ledger.doubtful("E2", f"{message}: hosts decline such skills unless a person chose them", second)


async def _files_now(run: Run, skill: Listed) -> dict[str, str | None]:
    """Digests of the files that a skill's directories show now, without ``SKILL.md``: the first ones, if many."""
    settings = as_object(as_object(run.capabilities.get("extensions")).get(EXTENSION_ID))
    pending = [format_uri(skill.root.path, skill.root.scheme)] if settings.get("directoryRead") is True else []
    found: dict[str, str | None] = {}
    for _ in range(_DYNAMIC_FILES):  # directories, each with its first page
        if not pending:
            break
        exchange = await run.ask(DIRECTORY_READ, uri=pending.pop())
        for item in map(as_object, as_list((exchange.result or {}).get("resources"))):
            uri = item.get("uri")
            if not isinstance(uri, str) or not _is_inside(skill, uri):
                continue
            if item.get("mimeType") == DIRECTORY:
                pending.append(uri)
            elif len(found) < _DYNAMIC_FILES and uri not in found:
                data = _bytes(await run.ask("resources/read", uri=uri))
                found[uri] = None if data is None else digest_of(data)
    return found


def _is_inside(skill: Listed, uri: str) -> bool:
    try:
        return is_within(skill.root, parse_uri(uri)) and parse_uri(uri) != parse_uri(skill.entry.uri)
    except FormatError:
        return False


def _is_right(ledger: Ledger, file: Resource, data: bytes, exchange: Exchange) -> bool:
    digest = digest_of(data)
    same_size = file.size is None or file.size == len(data)
    message = (
        f"{file.uri!r:.300} is {digest}, its entry says {file.digest}"
        if same_size
        else f"{file.uri!r:.300} has {len(data):,} bytes, its entry says {file.size:,}"
    )
    return ledger.expect("R2", same_size and digest == file.digest, message, exchange)


def content_of(ledger: Ledger, exchange: Exchange, uri: str) -> bytes | None:
    """R1: the bytes of the one content that is about ``uri``."""
    problem, data, item = _decoded(exchange, uri)
    if not problem and isinstance(item.get("blob"), str) and _is_utf8(data):
        problem = "came as base64, although it is UTF-8 text"
    kind = item.get("mimeType")
    if not problem and not isinstance(kind, str):
        problem = "has no 'mimeType'"
    if not problem and uri.endswith(f"/{SKILL_MD}") and not str(kind).startswith(_MARKDOWN):
        problem = f"is {kind!r:.80} instead of {_MARKDOWN}"
    ledger.expect("R1", not problem, f"{uri!r:.300} {problem}", exchange)
    return data


def _decoded(exchange: Exchange, uri: str) -> tuple[str, bytes | None, dict[str, Any]]:
    """What is wrong with the content, its bytes, and the item they came in."""
    if exchange.result is None:
        return f"cannot be read: {exchange.said}", None, {}
    contents = [as_object(item) for item in as_list(exchange.result.get("contents"))]
    if len(contents) != 1:
        return f"has {len(contents)} contents instead of one", None, {}
    item = contents[0]
    if not _is_about(item.get("uri"), uri):
        return f"was answered with {item.get('uri')!r:.300}", None, item
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str) == isinstance(blob, str):
        return "has not exactly one of 'text' and 'blob'", None, item
    try:
        if isinstance(text, str):
            return "", text.encode(), item
        return "", b64decode(str(blob), validate=True), item
    except UnicodeEncodeError:
        return "has text that is not Unicode", None, item
    except (binascii.Error, ValueError):
        return "has a 'blob' that is not base64", None, item


def _is_about(said: Any, uri: str) -> bool:
    try:
        return isinstance(said, str) and parse_uri(said) == parse_uri(uri)
    except FormatError:
        return False


def _is_utf8(data: bytes | None) -> bool:
    try:
        (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return data is not None


def _is_telling(data: bytes) -> bool:
    """Whether the bytes have anything that careless reading would change."""
    return data.startswith(_BOM) or b"\r" in data or not data.isascii() or not data.endswith(b"\n")


def _lost_in_text(file: Resource, data: bytes) -> str:
    """What careless reading took away, if putting it back gives what the entry says."""
    changed = {
        "its byte order mark": _BOM + data,
        "its carriage returns": data.replace(b"\n", b"\r\n"),
        "its byte order mark and carriage returns": _BOM + data.replace(b"\n", b"\r\n"),
        "its final line break": data + b"\n",
    }
    if digest_of(data) == file.digest:
        return ""
    return next((what for what, bytes_ in changed.items() if digest_of(bytes_) == file.digest), "")


async def _check_ways_out(run: Run, skill: Listed) -> None:
    """U7: other spellings of a file that is there, each with something in it that is no name.

    Dot segments that are resolved inside the skill lead nowhere else, and are a warning.
    """
    root, name = format_uri(skill.root.path, skill.root.scheme), skill.root.segments[-1]
    promised = skill.entry.resource(skill.entry.uri)
    dots = (f"../{name}/{SKILL_MD}", f"%2e%2e/{name}/{SKILL_MD}")
    others = (f"..%2f{name}%2f{SKILL_MD}", f"x%5c..%5c{SKILL_MD}", f"x/..%5c..%5c{SKILL_MD}", f"{SKILL_MD}%00")
    for uri in (f"{root}/{tail}" for tail in (*dots, *others)):
        exchange = await run.ask("resources/read", uri=uri)
        data = _bytes(exchange)
        if promised is None or data is None or digest_of(data) != promised.digest:
            run.ledger.held("U7", exchange)
        elif uri.removeprefix(f"{root}/") in dots:
            run.ledger.doubtful("U7", f"{uri!r:.300} was resolved instead of refused", exchange)
        else:
            run.ledger.broken("U7", f"{uri!r:.300} was read as the file at {skill.entry.uri!r:.300}", exchange)


def _bytes(exchange: Exchange) -> bytes | None:
    """The bytes of whatever came."""
    contents = as_list((exchange.result or {}).get("contents"))
    said = as_object(contents[0]).get("uri") if contents else None
    return _decoded(exchange, said)[1] if isinstance(said, str) else None
