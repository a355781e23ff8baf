"""Checks of ``resources/read``: every file of every skill, compared with its entry.

Rules: R1, R2, E1, E2, F1, F4-F6, U7. Every ``SKILL.md`` is read first, so that all of them are checked before a
bound is reached.

Two differences between a ``SKILL.md`` and its entry have rules of their own, because the difference shows the
cause: YAML 1.1 instead of 1.2 (F4), and a lost line break at the end of a block scalar (F5).
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from skillwire.client.bounds import as_list, as_object, as_uri
from skillwire.errors import FormatError
from skillwire.skill.entry import digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import SKILL_MD, is_within, parse_uri
from skillwire.skill.verify import differing_fields
from skillwire.wire.extension import DIRECTORY, DIRECTORY_READ

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.conform.report import Exchange
    from skillwire.conform.server_run import ListedSkill, ServerRun
    from skillwire.skill.entry import Resource

_BOM = b"\xef\xbb\xbf"
_MARKDOWN = "text/markdown"
_DYNAMIC_FILES = 50  # of one skill, and as many directories
# What YAML 1.1 reads as a boolean, an octal or sexagesimal number, a date, or a number with underscores.
_TRAP = re.compile(
    rb"^[^#\r\n]*:[ \t]+(?:[Yy]es|YES|[Nn]o|NO|[Oo]n|ON|[Oo]ff|OFF|[yYnN]|0\d+|\d+(?::[0-5]?\d)+"
    rb"|\d{4}-\d\d?-\d\d?.*|[+-]?\d+(?:_\d+)+)[ \t]*\r?$",
    re.MULTILINE,
)
_DATE = re.compile(r"\d{4}-\d\d?-\d")


async def check_files(run: ServerRun) -> None:
    """Read every file within the bounds, then check that other spellings of a path are refused."""
    read = size = 0
    files = [(skill, file) for skill in run.entries for file in skill.entry.files]
    files.sort(key=lambda pair: not _is_skill_md(*pair))
    for skill, file in files:
        if read >= run.bounds.files or size > run.bounds.file_bytes:
            run.ledger.warned(
                "R2", f"only {read:,} of {len(files):,} files were read; the bounds exclude the rest"
            )
            break
        read, size = read + 1, size + (file.size or 0)
        await _check_file(run, skill, file)
    for skill in run.entries:
        if skill.entry.is_dynamic:
            await _check_dynamic(run, skill)
    if run.entries and run.ledger.includes("U7"):
        await _check_traversal(run, max(run.entries, key=lambda skill: len(skill.root.segments)))


def _is_skill_md(skill: ListedSkill, file: Resource) -> bool:
    return parse_uri(file.uri) == parse_uri(skill.entry.uri)


async def _check_file(run: ServerRun, skill: ListedSkill, file: Resource) -> None:
    uri, exchange = file.uri, await run.ask("resources/read", uri=file.uri)
    data = _check_content(run, exchange, uri)
    if data is None:
        return
    digest = digest_of(data)
    lost = _lost_bytes(file, data)
    if lost:
        run.ledger.failed("F6", f"{uri!r:.300} is sent without {lost}, but its digest includes it", exchange)
        return
    if file.size is not None and file.size != len(data):
        message = f"{uri!r:.300} has {len(data):,} bytes, but its entry has {file.size:,}"
        run.ledger.failed("R2", message, exchange)
    else:
        message = f"{uri!r:.300} has the digest {digest}, but its entry has {file.digest}"
        if run.ledger.expect("R2", digest == file.digest, message, exchange) and _is_fragile(data):
            run.ledger.passed("F6", exchange)
    if _is_skill_md(skill, file):
        _check_document(run, skill, data, exchange)


async def _check_dynamic(run: ServerRun, skill: ListedSkill) -> None:
    """E2: warn about a dynamic skill whose files do not change, because no host can verify it."""
    uri = skill.entry.uri
    first = await run.ask("resources/read", uri=uri)
    data = _check_content(run, first, uri)
    if data is None:
        return
    _check_document(run, skill, data, first)
    second = await run.ask("resources/read", uri=uri)
    if _bytes(second) != data:
        return
    others = await _files_now(run, skill)
    if others == await _files_now(run, skill):
        files = "its SKILL.md was" if not others else f"its SKILL.md and {len(others)} other files were"
        message = f'{uri!r:.300} is "dynamic", but {files} read twice with the same bytes'
        run.ledger.warned("E2", f"{message}: hosts decline such skills by default", second)


async def _files_now(run: ServerRun, skill: ListedSkill) -> dict[str, str | None]:
    """Digests of the first files in the directories of a skill, without ``SKILL.md``."""
    pending = [str(skill.root)] if as_object(run.settings).get("directoryRead") is True else []
    found: dict[str, str | None] = {}
    for _ in range(_DYNAMIC_FILES):  # directories; only the first page of each
        if not pending:
            break
        exchange = await run.ask(DIRECTORY_READ, uri=pending.pop())
        for item in map(as_object, as_list((exchange.result or {}).get("resources"))):
            uri, place = item.get("uri", ""), as_uri(item.get("uri"))
            if place is None or not is_within(skill.root, place) or place == parse_uri(skill.entry.uri):
                continue
            if item.get("mimeType") == DIRECTORY:
                pending.append(uri)
            elif len(found) < _DYNAMIC_FILES and uri not in found:
                data = _bytes(await run.ask("resources/read", uri=uri))
                found[uri] = None if data is None else digest_of(data)
    return found


def _check_content(run: ServerRun, exchange: Exchange, uri: str) -> bytes | None:
    """R1: the bytes of the only content, which must be about ``uri``."""
    data, problem, item = decode_content(exchange, uri)
    kind = item.get("mimeType")
    if not problem and isinstance(item.get("blob"), str) and data is not None and _is_utf8(data):
        problem = "is sent as base64, but it is UTF-8 text"
    if not problem and not isinstance(kind, str):
        problem = "has no 'mimeType'"
    if not problem and uri.endswith(f"/{SKILL_MD}") and not str(kind).startswith(_MARKDOWN):
        problem = f"has the type {kind!r:.80} instead of {_MARKDOWN}"
    run.ledger.expect("R1", not problem, f"{uri!r:.300} {problem}", exchange)
    return data


class FileContent(NamedTuple):
    """The content in a response to ``resources/read``: its bytes, or the problem with it; and its item."""

    data: bytes | None
    problem: str = ""
    item: Mapping[str, Any] = MappingProxyType({})


def decode_content(exchange: Exchange, uri: str) -> FileContent:
    """Decode the only content of a response, which must be about ``uri``."""
    if exchange.result is None:
        return FileContent(None, f"cannot be read: {exchange.summary}")
    contents = [as_object(item) for item in as_list(exchange.result.get("contents"))]
    if len(contents) != 1:
        return FileContent(None, f"has {len(contents)} contents instead of one")
    item = contents[0]
    place = as_uri(item.get("uri"))
    if place is None or place != as_uri(uri):
        return FileContent(None, f"is answered with {item.get('uri')!r:.300}", item)
    text, blob = item.get("text"), item.get("blob")
    if isinstance(text, str) == isinstance(blob, str):
        return FileContent(None, "does not have exactly one of 'text' and 'blob'", item)
    try:
        return FileContent(
            text.encode() if isinstance(text, str) else b64decode(str(blob), validate=True), item=item
        )
    except UnicodeEncodeError:
        return FileContent(None, "has text that is not Unicode", item)
    except (binascii.Error, ValueError):
        return FileContent(None, "has a 'blob' that is not base64", item)


def _bytes(exchange: Exchange) -> bytes | None:
    """The bytes of the first content, about any URI."""
    contents = as_list((exchange.result or {}).get("contents"))
    uri = as_object(contents[0]).get("uri") if contents else None
    return decode_content(exchange, uri).data if isinstance(uri, str) else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_fragile(data: bytes) -> bool:
    """Whether a conversion to text could change the bytes."""
    return data.startswith(_BOM) or b"\r" in data or not data.isascii() or not data.endswith(b"\n")


def _lost_bytes(file: Resource, data: bytes) -> str:
    """What a conversion to text removed, if restoring it gives the digest of the entry."""
    if digest_of(data) == file.digest:
        return ""
    restored = {
        "its byte order mark": _BOM + data,
        "its carriage returns": data.replace(b"\n", b"\r\n"),
        "its byte order mark and carriage returns": _BOM + data.replace(b"\n", b"\r\n"),
        "its final line break": data + b"\n",
    }
    return next((what for what, bytes_ in restored.items() if digest_of(bytes_) == file.digest), "")


async def _check_traversal(run: ServerRun, skill: ListedSkill) -> None:
    """U7: other spellings of an existing file, each with a segment that is not a plain name.

    Dot segments that the server resolves inside the skill are harmless, so they are a warning.
    """
    root, name = str(skill.root), skill.root.segments[-1]
    promised = skill.entry.resource(skill.entry.uri)
    dots = (f"../{name}/{SKILL_MD}", f"%2e%2e/{name}/{SKILL_MD}")
    others = (f"..%2f{name}%2f{SKILL_MD}", f"x%5c..%5c{SKILL_MD}", f"x/..%5c..%5c{SKILL_MD}", f"{SKILL_MD}%00")
    for uri in (f"{root}/{tail}" for tail in (*dots, *others)):
        exchange = await run.ask("resources/read", uri=uri)
        data = _bytes(exchange)
        if promised is None or data is None or digest_of(data) != promised.digest:
            run.ledger.passed("U7", exchange)
        elif uri.removeprefix(f"{root}/") in dots:
            run.ledger.warned("U7", f"{uri!r:.300} is resolved instead of refused", exchange)
        else:
            run.ledger.failed("U7", f"{uri!r:.300} is read as the file at {skill.entry.uri!r:.300}", exchange)


def _check_document(run: ServerRun, skill: ListedSkill, data: bytes, exchange: Exchange) -> None:
    """Compare the bytes of a ``SKILL.md`` with the frontmatter of its entry."""
    uri, ledger = skill.entry.uri, run.ledger
    try:
        document = parse_skill_md(data)
    except FormatError as error:
        ledger.failed("F1", f"{uri!r:.300}: {error.message}", exchange)
        return
    ledger.passed("F1", exchange)
    sent, written = skill.entry.frontmatter, document.frontmatter
    run.written[uri] = written
    different = differing_fields(sent, written, sent.keys() | written.keys())
    for name in different:
        rule, why = _cause(sent.get(name), written.get(name), in_both=name in sent and name in written)
        part = {"entry": sent.get(name), "SKILL.md": written.get(name)}
        ledger.failed(rule, f"{uri!r:.300}: the field {name!r:.80} {why}", exchange, part)
    if not different:
        ledger.passed("E1", exchange)
        head = data[: data.find(b"\n---", 4)]
        if _TRAP.search(head):
            ledger.passed("F4", exchange)
        if document.frontmatter and _ends_in_break(list(document.frontmatter.values())[-1]):
            ledger.passed("F5", exchange)


def _cause(sent: Any, written: Any, *, in_both: bool) -> tuple[str, str]:
    """The rule that a difference breaks, and a description of the difference."""
    if not in_both:
        return "E1", "is missing in the entry or in the SKILL.md"
    if _every_difference(sent, written, _is_without_break):
        return "F5", "lost its last line break"
    if _every_difference(sent, written, _is_misread):
        return "F4", f"is {sent!r:.80} in the entry, but {written!r:.80} in YAML 1.2"
    return "E1", "differs between the entry and the SKILL.md"


def _every_difference(sent: Any, written: Any, has_cause: Callable[[Any, Any], bool]) -> bool:
    """Whether ``has_cause`` is true for every pair of different values inside the two values."""
    if isinstance(sent, dict) and isinstance(written, dict):
        one, other = cast("dict[str, Any]", sent), cast("dict[str, Any]", written)
        return one.keys() == other.keys() and all(
            one[key] == other[key] or _every_difference(one[key], other[key], has_cause) for key in one
        )
    return has_cause(sent, written)


def _is_without_break(sent: Any, written: Any) -> bool:
    return isinstance(sent, str) and isinstance(written, str) and written == sent + "\n"


def _is_misread(sent: Any, written: Any) -> bool:
    """Whether two scalars have different types, or differ as a date does after a round trip."""
    if isinstance(sent, dict | list) or isinstance(written, dict | list):
        return False
    return type(sent) is not type(written) or (isinstance(written, str) and _DATE.match(written) is not None)


def _ends_in_break(value: Any) -> bool:
    """Whether the last string in ``value`` ends in a line break."""
    while isinstance(value, dict | list) and value:
        items = cast("dict[str, Any] | list[Any]", value)
        value = list(items.values())[-1] if isinstance(items, dict) else items[-1]
    return isinstance(value, str) and value.endswith("\n")
