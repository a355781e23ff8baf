"""Packs a skill into one archive and unpacks one in memory (I2, I3, B5).

Unpacking trusts nothing in the archive. Each name is checked before its bytes are read, and bytes are counted
while they are decompressed, so neither a false header nor a bomb exceeds the limits. Nothing is written to disk.
The result is the files as bytes, which of them are executable, and the folders; or an error that names the member.
All other modes, owners and times are dropped, including setuid bits. Links are refused even if they stay inside.

Packing is deterministic: the same files make the same bytes, and so the same digest, on every machine and with
every version of Python and zlib. Names are sorted, times are fixed, only the executable bit of a mode is kept, and
nothing is compressed. Compressors differ between versions, and so do the headers that ``tarfile`` writes, so tar
and gzip are written here byte by byte (docs/adr/0008). ``pack`` refuses every name that ``unpack`` would refuse.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from io import BytesIO
from struct import pack as binary
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, cast
from zlib import crc32

from skillwire.errors import FormatError, LimitError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, fold, format_uri, segment_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    # Name, whether it is a folder, mode, size, and a function that opens it.
    _PackedMember: TypeAlias = tuple[str, bool, int, int, Callable[[], IO[bytes]]]

ArchiveFormat = Literal["tar.gz", "zip"]
_MEDIA_TYPES: dict[str, ArchiveFormat] = {
    "application/gzip": "tar.gz",
    "application/x-gzip": "tar.gz",
    "application/x-tar+gzip": "tar.gz",
    "application/zip": "zip",
    "application/x-zip-compressed": "zip",
}
_SUFFIXES: dict[str, ArchiveFormat] = {".tar.gz": "tar.gz", ".tgz": "tar.gz", ".zip": "zip"}
_CHUNK = 64 * 1024
_TAR_OVERHEAD = 2048
_GZIP_MAGIC = b"\x1f\x8b\x08"
_TAR_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_GLOBAL_COST = 64 * 1024  # for each byte: a global header applies to every later member
_ZIP_END = b"PK\x05\x06"
_ZIP_END_SIZE = 22
_ZIP_LOCAL_SIZE = 30
_ZIP_ENCRYPTED = 1
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the output of other methods cannot be bounded
_REGULAR, _DIRECTORY = 0o100000, 0o040000
_EXECUTABLE = 0o100
MAX_EXTENDED = 4 * 1024  # bytes of one extended tar header; longer names are refused anyway
MAX_EXTENDED_COST = 500_000_000  # sum of their squared sizes: 10,000 headers of 200 bytes, or a second of parsing
ZIP_HEADER = b"PK\x01\x02"  # begins a member in the central directory of a zip file
_MAX_ZIP_MEMBERS = 0xFFFF  # more members need the zip64 layout

_BLOCK = 512  # bytes of a tar block
_NAME, _PREFIX = 100, 155  # bytes in a plain tar header
_FILE, _FOLDER, _EXTENDED = b"0", b"5", b"x"
_GZIP_HEADER = b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff"  # deflate, no time, no system
_MAX_STORED = 0xFFFF

_ZIP_UTF8 = 0x800
_ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest time of the format
_ZIP_FOLDER = 0x10  # the DOS attribute
_ZIP_UNIX = 3


class Unpacked(NamedTuple):
    """The content of an archive: files by path, the paths of executable files, and the folders it names."""

    files: dict[str, bytes]
    executables: frozenset[str]
    folders: frozenset[str]


def archive_format(uri: str, media_type: str | None) -> ArchiveFormat:
    """The format of an archive (I2), by its media type, else by its suffix."""
    known = _MEDIA_TYPES.get((media_type or "").partition(";")[0].strip().lower())
    if known is not None:
        return known
    for suffix, form in _SUFFIXES.items():
        if uri.lower().endswith(suffix):
            return form
    raise FormatError(
        "archive-unknown",
        f"{uri!r:.300} ({media_type!r:.80}) is neither a .tar.gz nor a .zip",
        "the server must pack skills as application/gzip or application/zip",
        rule="I2",
    )


def archive_uri(skill_path: str, form: ArchiveFormat, scheme: str = DEFAULT_SCHEME) -> str:
    """The URI of the archive of the skill at ``skill_path`` (I2)."""
    return format_uri(f"{skill_path}.{form}", scheme)


def archive_root(uri: str) -> str:
    """The URI of the skill in the archive at ``uri``: the same without the suffix."""
    for suffix in _SUFFIXES:
        if uri.lower().endswith(suffix):
            return uri[: -len(suffix)]
    return uri


def unpack(data: bytes, form: ArchiveFormat, limits: Limits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """The files in an archive by path. ``SKILL.md`` is at the root."""
    return unpack_tree(data, form, limits).files


def unpack_tree(data: bytes, form: ArchiveFormat, limits: Limits = DEFAULT_LIMITS) -> Unpacked:
    """The files in an archive, which of them are executable, and the folders."""
    if len(data) > limits.max_archive_bytes:
        raise too_much(f"the archive has {len(data)} bytes, more than {limits.max_archive_bytes}")
    unpacking = _Unpacking(len(data), limits)
    members = _zip_members(data, limits) if form == "zip" else _tar_members(data, unpacking.room, limits)
    try:
        for member in members:
            unpacking.add(*member)
    except SkillwireError:
        raise
    except Exception as error:  # both libraries raise many kinds of errors for broken headers
        raise refused("the archive is damaged, or of an unsupported kind") from error
    if SKILL_MD not in unpacking.files:
        hint = "pack the files of the skill without their folder: cd my-skill && zip -r ../my-skill.zip ."
        raise refused("the archive has no SKILL.md at its root", rule="I2", hint=hint)
    return Unpacked(unpacking.files, frozenset(unpacking.executables), frozenset(unpacking.folders))


# ── names of members ───────────────────────────────────────────────────────────────────────────────────


class Members:
    """The member names of one archive so far, and which further ones are allowed (I3, B5)."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = 0
        self._names: dict[str, str] = {}  # fold -> path, for every file and folder (B5)
        self._files: set[str] = set()

    def claim(self, name: str, *, is_directory: bool) -> str:
        """Check and record a further member. Returns its path, which is empty for the root itself."""
        self._count += 1
        if self._count > self._limits.max_resources:
            raise too_much(f"the archive has more than {self._limits.max_resources} members")
        path = _safe_path(name)
        if not path and not is_directory:
            raise refused(f"{name!r:.200} is a file in place of the root")
        if path:
            self._claim(path, is_directory)
        return path

    def _claim(self, path: str, is_directory: bool) -> None:
        """Refuse two names that are equal on some disk, and a file with the name of a folder (B5)."""
        segments = path.split("/")
        for depth in range(1, len(segments)):
            folder = "/".join(segments[:depth])
            if self._names.setdefault(fold(folder), f"{folder}/") != f"{folder}/":
                raise refused(f"{path!r:.200} collides with another name", rule="B5")
        mine = f"{path}/" if is_directory else path
        known = self._names.setdefault(fold(path), mine)
        if known != mine or path in self._files:
            raise refused(f"{path!r:.200} collides with {known!r:.200}", rule="B5")
        if not is_directory:
            self._files.add(path)


def _safe_path(name: str) -> str:
    """The path of a member, empty for the root itself. Refuses every name that could point outside."""
    path = name if name == "/" else name.removesuffix("/")
    while path.startswith("./"):
        path = path[2:]
    if path in ("", "."):
        return ""
    if len(path) > DEFAULT_LIMITS.max_uri_length or path.count("/") >= DEFAULT_LIMITS.max_depth:
        raise refused(f"{name!r:.200} is too long or too deep")
    if path[1:2] == ":":
        raise refused(f"{name!r:.200} names a drive")
    for segment in path.split("/"):
        problem = segment_problem(segment)
        if problem:
            raise refused(f"{name!r:.200} {problem}")
    return path


def refused(message: str, rule: str = "I3", hint: str = "the archive must be packed again") -> FormatError:
    """The error for forbidden content in an archive."""
    hint = f"nothing was unpacked; {hint}"
    return FormatError("archive-refused", message, hint, rule=rule)


def too_much(message: str) -> LimitError:
    """The error for an archive that exceeds a limit."""
    hint = "nothing was unpacked; read the files one by one, or raise Limits"
    return LimitError("archive-too-large", message, hint, rule="I3")


# ── unpacking ──────────────────────────────────────────────────────────────────────────────────────────


class _Unpacking:
    """The files unpacked so far, and how many more bytes are allowed."""

    def __init__(self, packed: int, limits: Limits) -> None:
        self.files: dict[str, bytes] = {}
        self.executables: set[str] = set()
        self.folders: set[str] = set()
        self.room = self._limit = min(limits.max_skill_bytes, max(packed, 1024) * limits.max_archive_ratio)
        self._members = Members(limits)

    def add(self, name: str, is_directory: bool, mode: int, size: int, read: Callable[[], IO[bytes]]) -> None:
        path = self._members.claim(name, is_directory=is_directory)
        if is_directory:
            self.folders.update({path} - {""})
            return
        with read() as stream:
            self.files[path] = self._read(stream, path)
        if len(self.files[path]) != size:
            raise refused(f"the size of {path!r:.200} differs from its header")
        if mode & _EXECUTABLE:
            self.executables.add(path)

    def _read(self, stream: IO[bytes], path: str) -> bytes:
        chunks: list[bytes] = []
        while chunk := stream.read(min(_CHUNK, self.room + 1)):
            self.room -= len(chunk)
            if self.room < 0:
                raise too_much(f"the archive unpacks to more than {self._limit} bytes (at {path!r:.200})")
            chunks.append(chunk)
        return b"".join(chunks)


class _Bounded:
    """A stream that fails when it exceeds a limit: headers can be bombs too."""

    def __init__(self, stream: IO[bytes], room: int) -> None:
        self._stream = stream
        self._room = room
        self._count = 0
        self.filled = 0  # offset after the last byte that is not zero, so far

    def read(self, count: int) -> bytes:
        chunk = self._stream.read(min(count, self._room + 1 - self._count))
        content = len(chunk.rstrip(b"\0"))
        if content:
            self.filled = self._count + content
        self._count += len(chunk)
        if self._count > self._room:
            raise too_much(f"the archive unpacks to more than {self._room} bytes")
        return chunk


def _tar_members(data: bytes, room: int, limits: Limits) -> Iterator[_PackedMember]:
    """The members in the order of the stream. Refuses any that is neither a file nor a folder."""
    if data.count(_GZIP_MAGIC) > limits.max_resources:  # each costs time, even if it unpacks to nothing
        raise too_much(f"the archive is compressed in more than {limits.max_resources} pieces")
    stream = _Bounded(
        cast("IO[bytes]", gzip.GzipFile(fileobj=BytesIO(data))), room + limits.max_resources * _TAR_OVERHEAD
    )
    with tarfile.open(fileobj=cast("IO[bytes]", stream), mode="r|", tarinfo=_header_kind()) as archive:
        for member in archive:
            if member.issparse() or not (member.isfile() or member.isdir()):
                raise refused(f"{member.name!r:.200} is a link, a device, a pipe or sparse")
            yield (
                member.name,
                member.isdir(),
                member.mode,
                member.size,
                lambda member=member: _opened(archive.extractfile(member)),
            )
        while stream.read(_CHUNK):  # up to the checksum at the very end
            pass
        if stream.filled > archive.offset:  # the library treats a header that it cannot read as the end
            raise refused("the archive has a broken header, or data after its end")


def _header_kind() -> type[tarfile.TarInfo]:
    """A header class for one tar file, with a limit for extended headers.

    The library reads an extended header whole. Before Python 3.11.10, parsing one takes quadratic time.
    """
    cost = 0

    class Header(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
            nonlocal cost
            header = super().frombuf(buf, encoding, errors)
            if header.type == tarfile.GNUTYPE_SPARSE:
                raise refused(f"{header.name!r:.200} is sparse")
            if header.type in _TAR_EXTENDED:
                cost += header.size * (_GLOBAL_COST if header.type == tarfile.XGLTYPE else header.size)
                if not 0 <= header.size <= MAX_EXTENDED or cost > MAX_EXTENDED_COST:
                    raise too_much("the archive's extended headers are too large")
            return header

    return Header


def _zip_members(data: bytes, limits: Limits) -> Iterator[_PackedMember]:
    if data.count(ZIP_HEADER) > limits.max_resources:  # before the library creates an object for each
        raise too_much(f"the archive has more than {limits.max_resources} members")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        _check_layout(archive, data)
        for member in archive.infolist():
            name = _zip_name(member)
            mode = member.external_attr >> 16
            kind = mode & 0o170000
            if kind not in (0, _REGULAR, _DIRECTORY):
                raise refused(f"{name!r:.200} is a link, a device or a pipe")
            if member.flag_bits & _ZIP_ENCRYPTED:
                raise refused(f"{name!r:.200} is encrypted")
            if member.compress_type not in _ZIP_METHODS:
                raise refused(f"{name!r:.200} uses an unsupported compression method")
            yield name, name.endswith("/"), mode, member.file_size, lambda member=member: archive.open(member)


def _zip_name(member: zipfile.ZipInfo) -> str:
    """The whole name. The library cuts ``filename`` at a NUL, and decodes code page 437 if UTF-8 is not declared.

    The macOS Finder, and ``zip`` in some locales, write UTF-8 without declaring it.
    """
    if member.flag_bits & _ZIP_UTF8:
        return member.orig_filename
    try:
        return member.orig_filename.encode("cp437").decode()
    except UnicodeError:
        return member.orig_filename


def _check_layout(archive: zipfile.ZipFile, data: bytes) -> None:
    """Refuse data before or after the archive, and members that share bytes: readers would disagree about them."""
    end = 0
    for member in sorted(archive.infolist(), key=lambda member: member.header_offset):
        if member.header_offset < end or (not end and member.header_offset):
            raise refused(f"{member.orig_filename!r:.200} overlaps another member, or has data before it")
        end = member.header_offset + _ZIP_LOCAL_SIZE + member.compress_size
    if end > archive.start_dir or not data[-_ZIP_END_SIZE - len(archive.comment) :].startswith(_ZIP_END):
        raise refused("the archive has overlapping members, or data after its end")


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise refused("a member has no content")
    return stream


# ── packing ────────────────────────────────────────────────────────────────────────────────────────────


class _Member(NamedTuple):
    """A file or a folder. The name of a folder ends in a slash."""

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
    """Pack ``files``, by path inside the skill, with ``SKILL.md`` at the root of the archive.

    ``FormatError`` or ``LimitError`` if ``unpack`` with the same ``limits`` would refuse the archive.
    """
    if sum(map(len, files.values())) > min(limits.max_skill_bytes, limits.max_archive_bytes):
        raise too_much("the skill is larger than an archive may be")
    members = [_Member(name, data, 0o755 if name in executables else 0o644) for name, data in files.items()]
    members = sorted([*members, *(_Member(f"{name}/", b"", 0o755, True) for name in empty_folders)])
    names = Members(limits)
    for member in members:
        path = names.claim(member.name, is_directory=member.is_folder)
        if (f"{path}/" if member.is_folder else path) != member.name:
            raise refused(f"{member.name!r:.200} is not a normalised path")
    if SKILL_MD not in files:
        raise refused("the skill has no SKILL.md at its root", rule="I2")
    data = _zipped(members, limits) if form == "zip" else _gzipped(b"".join(_tarred(members)))
    if len(data) > limits.max_archive_bytes:
        raise too_much(f"the archive has {len(data)} bytes, more than {limits.max_archive_bytes}")
    return data


# ── packing as tar and gzip ────────────────────────────────────────────────────────────────────────────


def _tarred(members: list[_Member]) -> Iterator[bytes]:
    cost = 0
    for name, data, mode, is_folder in members:
        encoded = name.encode()
        place = _split(encoded) if name.isascii() else None
        if place is None:  # too long for a plain header, or not ASCII: needs an extended header
            record = _record(b"path=" + encoded + b"\n")
            cost += len(record) ** 2
            if len(record) > MAX_EXTENDED or cost > MAX_EXTENDED_COST:
                raise too_much("the file names are too long for an archive")
            yield _header(b"././@PaxHeader", b"", len(record), _EXTENDED, 0o644)
            yield from _padded(record)
            place = name.encode("ascii", "replace")[:_NAME], b""
        yield _header(*place, len(data), _FOLDER if is_folder else _FILE, mode)
        yield from _padded(data)
    yield bytes(2 * _BLOCK)


def _split(name: bytes) -> tuple[bytes, bytes] | None:
    """The name and the prefix for a plain header; ``None`` if they do not fit."""
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
    """A line of an extended header. It begins with its length, which includes its own digits."""
    length = len(content) + 1
    while len(b"%d" % length) + 1 + len(content) != length:
        length = len(b"%d" % length) + 1 + len(content)
    return b"%d " % length + content


def _gzipped(data: bytes) -> bytes:
    """A gzip file with stored (uncompressed) blocks."""
    parts = [_GZIP_HEADER]
    for start in range(0, len(data), _MAX_STORED):
        block = data[start : start + _MAX_STORED]
        is_last = start + _MAX_STORED >= len(data)
        parts += binary("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block
    return b"".join([*parts, binary("<LL", crc32(data), len(data))])


# ── packing as zip ─────────────────────────────────────────────────────────────────────────────────────


def _zipped(members: list[_Member], limits: Limits) -> bytes:
    if len(members) > _MAX_ZIP_MEMBERS:
        raise too_much("a zip archive cannot hold so many files")
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, data, mode, is_folder in members:
            member = zipfile.ZipInfo(name, _ZIP_TIME)
            member.create_system = _ZIP_UNIX
            member.external_attr = (
                (_DIRECTORY | mode) << 16 | _ZIP_FOLDER if is_folder else (_REGULAR | mode) << 16
            )
            archive.writestr(member, data)
    if (
        packed.getvalue().count(ZIP_HEADER) > limits.max_resources
    ):  # a zip file inside the skill has such headers too
        raise too_much(f"the archive has more than {limits.max_resources} members")
    return packed.getvalue()
