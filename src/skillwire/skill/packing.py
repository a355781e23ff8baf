"""A skill as one file: the counterpart of ``archive.py`` (I2).

The same files make the same bytes, and so the same digest, on every machine and with every version of Python and
zlib: names are sorted, times are fixed, of a mode only the executable bit counts, and nothing is compressed.
Compressors differ from version to version, and so do the headers that ``tarfile`` writes, so both formats are
written here byte by byte (docs/adr/0008).

What is made, ``unpack`` accepts: a name that it would refuse is refused here, before anything is packed.
"""

from __future__ import annotations

from struct import pack as binary
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.members import MAX_EXTENDED, MAX_EXTENDED_COST, ZIP_HEADER, Members, refused, too_much
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from skillwire.skill.archive import ArchiveFormat

_MAX_ZIP_MEMBERS = 0xFFFF  # above, a zip needs another layout

_BLOCK = 512  # of a tar file
_NAME, _PREFIX = 100, 155  # bytes of a name in a plain header
_FILE, _FOLDER, _EXTENDED = b"0", b"5", b"x"
_GZIP_HEADER = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"  # deflate, no time, no system
_MAX_STORED = 0xFFFF

_ZIP_VERSION = 20
_ZIP_UTF8 = 0x800
_ZIP_DATE = 0x0021  # 1 January 1980, where the format's time begins
_ZIP_FOLDER = 0x10  # as DOS says it
_ZIP_UNIX = 3 << 8


class _Member(NamedTuple):
    """A file, or a folder, whose name ends in a slash."""

    name: str
    data: bytes
    mode: int
    is_folder: bool = False


def pack(
    files: Mapping[str, bytes],
    form: ArchiveFormat,
    limits: Limits = DEFAULT_LIMITS,
    *,
    executables: Collection[str] = (),
    empty_folders: Collection[str] = (),
) -> bytes:
    """``files``, by their path in the skill, as an archive: ``SKILL.md`` at the root, no folder around it.

    ``FormatError`` or ``LimitError`` if nobody with the same ``limits`` would unpack it.
    """
    if sum(map(len, files.values())) > min(limits.max_skill_bytes, limits.max_archive_bytes):
        raise too_much("the skill is larger than an archive may be")
    members = [_Member(name, data, 0o755 if name in executables else 0o644) for name, data in files.items()]
    members = sorted([*members, *(_Member(f"{name}/", b"", 0o755, True) for name in empty_folders)])
    names = Members(limits)
    for member in members:
        path = names.claim(member.name, is_directory=member.is_folder)
        if (f"{path}/" if member.is_folder else path) != member.name:
            raise refused(f"{member.name!r:.200} is not how a path is written")
    if SKILL_MD not in files:
        raise refused("there is no SKILL.md at the root", rule="I2")
    data = _zipped(members, limits) if form == "zip" else _gzipped(b"".join(_tarred(members)))
    if len(data) > limits.max_archive_bytes:
        raise too_much(f"the archive has {len(data)} bytes, more than {limits.max_archive_bytes}")
    return data


# ── tar, and gzip around it ──────────────────────────────────────────────────────────────────────────────────


def _tarred(members: list[_Member]) -> Iterator[bytes]:
    cost = 0
    for name, data, mode, is_folder in members:
        encoded = name.encode()
        place = _split(encoded) if name.isascii() else None
        if place is None:  # longer than a plain header holds, or not ASCII: another header says it
            record = _record(b"path=" + encoded + b"\n")
            cost += len(record) ** 2
            if len(record) > MAX_EXTENDED or cost > MAX_EXTENDED_COST:
                raise too_much("names of files are too long to be packed")
            yield _header(b"././@PaxHeader", b"", len(record), _EXTENDED, 0o644)
            yield from _padded(record)
            place = name.encode("ascii", "replace")[:_NAME], b""
        yield _header(*place, len(data), _FOLDER if is_folder else _FILE, mode)
        yield from _padded(data)
    yield bytes(2 * _BLOCK)


def _split(name: bytes) -> tuple[bytes, bytes] | None:
    """A name, and the folders before it, as they fit into a plain header."""
    if len(name) <= _NAME:
        return name, b""
    slash = name.rfind(b"/", 0, _PREFIX + 1)
    if slash <= 0 or len(name) - slash - 1 > _NAME:
        return None
    return name[slash + 1 :], name[:slash]


def _header(name: bytes, prefix: bytes, size: int, kind: bytes, mode: int) -> bytes:
    numbers = b"%07o\0" % mode + b"0000000\0" * 2 + b"%011o\0" % size + b"%011o\0" % 0
    begin = name.ljust(_NAME, b"\0") + numbers
    end = kind + bytes(100) + b"ustar\x0000" + bytes(64) + b"0000000\0" * 2 + prefix.ljust(_PREFIX, b"\0")
    end = end.ljust(_BLOCK - len(begin) - 8, b"\0")
    return begin + b"%06o\0 " % (sum(begin) + sum(end) + 8 * ord(" ")) + end


def _padded(data: bytes) -> tuple[bytes, bytes]:
    return data, bytes(-len(data) % _BLOCK)


def _record(content: bytes) -> bytes:
    """A line of an extended header. It begins with its own length, the digits of that included."""
    length = len(content) + 1
    while len(b"%d" % length) + 1 + len(content) != length:
        length = len(b"%d" % length) + 1 + len(content)
    return b"%d " % length + content


def _gzipped(data: bytes) -> bytes:
    """A gzip file whose blocks are stored as they are."""
    parts = [_GZIP_HEADER]
    for start in range(0, len(data), _MAX_STORED):
        block = data[start : start + _MAX_STORED]
        is_last = start + _MAX_STORED >= len(data)
        parts += binary("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block
    return b"".join([*parts, binary("<LL", crc32(data), len(data))])


# ── zip ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _zipped(members: list[_Member], limits: Limits) -> bytes:
    if len(members) > _MAX_ZIP_MEMBERS:
        raise too_much("there are more files than a zip holds")
    parts: list[bytes] = []
    directory: list[bytes] = []
    offset = 0
    for name, data, mode, is_folder in members:
        facts = _zip_facts(name, data)
        local = b"PK\x03\x04" + facts + name.encode()
        parts += local, data
        attributes = (0o040000 | mode) << 16 | _ZIP_FOLDER if is_folder else (0o100000 | mode) << 16
        made_by, rest = binary("<H", _ZIP_UNIX | _ZIP_VERSION), binary("<HHHLL", 0, 0, 0, attributes, offset)
        directory.append(ZIP_HEADER + made_by + facts + rest + name.encode())
        offset += len(local) + len(data)
    entries = b"".join(directory)
    end = b"PK\x05\x06" + binary("<HHHHLLH", 0, 0, len(members), len(members), len(entries), offset, 0)
    packed = b"".join([*parts, entries, end])
    if packed.count(ZIP_HEADER) > limits.max_resources:  # a zip inside has members too
        raise too_much("there are more members than we unpack")
    return packed


def _zip_facts(name: str, data: bytes) -> bytes:
    """What both headers of a member say: version, flags, how packed, when, checksum, sizes, lengths."""
    flags, size = (0 if name.isascii() else _ZIP_UTF8), len(data)
    when = (0, _ZIP_DATE)
    return binary("<HHHHHLLLHH", _ZIP_VERSION, flags, 0, *when, crc32(data), size, size, len(name.encode()), 0)
