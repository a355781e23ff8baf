"""A packed skill, unpacked in memory (I2, I3).

Nothing of an archive is believed: every name is checked before its bytes are read, and bytes are counted while
they come out, so that neither a header's lie nor a bomb gets further than the bounds. Nothing is written anywhere;
what comes out is files as bytes, which of them are executable, and folders, or an error that names the member.

Everything else of modes, owners and times is dropped, setuid bits with them. A link is refused even where it would
stay inside: a skill is files.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from io import BytesIO
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, Self, TypeAlias, cast

from skillwire.errors import FormatError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.members import MAX_EXTENDED, MAX_EXTENDED_COST, ZIP_HEADER, Members, refused, too_much
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # Its name, whether it is a folder, its mode, its size, and how to open it.
    _Member: TypeAlias = tuple[str, bool, int, int, Callable[[], IO[bytes]]]

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
_GZIP_HEADER = b"\x1f\x8b\x08"
_TAR_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_GLOBAL_COST = 64 * 1024  # for each byte: a global one is applied to every member behind it
_ZIP_END = b"PK\x05\x06"
_ZIP_END_SIZE = 22
_ZIP_LOCAL_SIZE = 30
_ZIP_ENCRYPTED = 1
_ZIP_UTF8 = 0x800
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of the others, output cannot be bounded
_REGULAR = (0, 0o100000)
_DIRECTORY = 0o040000
_EXECUTABLE = 0o100


class Unpacked(NamedTuple):
    """What is in an archive: the files by their path, which of them are executable, and the folders it names."""

    files: dict[str, bytes]
    executables: frozenset[str]
    folders: frozenset[str]


def archive_format(uri: str, media_type: str | None) -> ArchiveFormat:
    """I2: by the media type, then by the suffix."""
    known = _MEDIA_TYPES.get((media_type or "").partition(";")[0].strip().lower())
    if known is not None:
        return known
    for suffix, form in _SUFFIXES.items():
        if uri.lower().endswith(suffix):
            return form
    raise FormatError(
        "archive-unknown",
        f"{uri!r:.300} ({media_type!r:.80}) is neither a .tar.gz nor a .zip",
        "the server has to pack skills as application/gzip or application/zip",
        rule="I2",
    )


def archive_uri(skill_path: str, form: ArchiveFormat, scheme: str = DEFAULT_SCHEME) -> str:
    """I2: where the archive of the skill at ``skill_path`` is."""
    return format_uri(f"{skill_path}.{form}", scheme)


def archive_root(uri: str) -> str:
    """The URI of the skill that the archive at ``uri`` holds: the same without the suffix."""
    for suffix in _SUFFIXES:
        if uri.lower().endswith(suffix):
            return uri[: -len(suffix)]
    return uri


def unpack(data: bytes, form: ArchiveFormat, limits: Limits = DEFAULT_LIMITS) -> dict[str, bytes]:
    """The files in an archive by their path, ``SKILL.md`` at the root among them."""
    return unpack_tree(data, form, limits).files


def unpack_tree(data: bytes, form: ArchiveFormat, limits: Limits = DEFAULT_LIMITS) -> Unpacked:
    """The same, and what else an archive says of files: which are executable, and which folders there are."""
    if len(data) > limits.max_archive_bytes:
        raise too_much(f"the archive has {len(data)} bytes, more than {limits.max_archive_bytes}")
    unpacking = _Unpacking(len(data), limits)
    members = _zip_members(data, limits) if form == "zip" else _tar_members(data, unpacking.room, limits)
    try:
        for member in members:
            unpacking.add(*member)
    except SkillwireError:
        raise
    except Exception as error:  # on broken headers both libraries raise whatever their code runs into
        raise refused("the archive is damaged, or of a kind we do not read") from error
    if SKILL_MD not in unpacking.files:
        hint = "pack what is in the skill's folder, not the folder: cd my-skill && zip -r ../my-skill.zip ."
        raise refused("the archive has no SKILL.md at its root", rule="I2", hint=hint)
    return Unpacked(unpacking.files, frozenset(unpacking.executables), frozenset(unpacking.folders))


class _Unpacking:
    """What has come out so far, and whether there may be more."""

    def __init__(self, packed: int, limits: Limits) -> None:
        self.files: dict[str, bytes] = {}
        self.executables: set[str] = set()
        self.folders: set[str] = set()
        self.room = min(limits.max_skill_bytes, max(packed, 1024) * limits.max_archive_ratio)
        self._members = Members(limits)

    def add(self, name: str, is_directory: bool, mode: int, size: int, read: Callable[[], IO[bytes]]) -> None:
        path = self._members.claim(name, is_directory=is_directory)
        if is_directory:
            self.folders.update({path} - {""})
            return
        with read() as stream:
            self.files[path] = self._read(stream, path)
        if len(self.files[path]) != size:
            raise refused(f"{path!r:.200} has another size than its header says")
        if mode & _EXECUTABLE:
            self.executables.add(path)

    def _read(self, stream: IO[bytes], path: str) -> bytes:
        chunks: list[bytes] = []
        while chunk := stream.read(min(_CHUNK, self.room + 1)):
            self.room -= len(chunk)
            if self.room < 0:
                raise too_much(f"the archive unpacks to more than we accept (at {path!r:.200})")
            chunks.append(chunk)
        return b"".join(chunks)


class _Bounded:
    """A stream that ends in an error instead of going on for ever: headers can be bombs too."""

    def __init__(self, stream: IO[bytes], room: int) -> None:
        self._stream = stream
        self._room = room
        self._count = 0
        self.filled = 0  # where the zeros begin that the stream ends in, as far as it was read

    def read(self, count: int) -> bytes:
        chunk = self._stream.read(min(count, self._room + 1 - self._count))
        content = len(chunk.rstrip(b"\0"))
        if content:
            self.filled = self._count + content
        self._count += len(chunk)
        if self._count > self._room:
            raise too_much("the archive unpacks to more than we accept")
        return chunk


def _tar_members(data: bytes, room: int, limits: Limits) -> Iterator[_Member]:
    """Members as they stand in the stream; what is neither file nor folder is refused before it is looked into."""
    if data.count(_GZIP_HEADER) > limits.max_resources:  # each costs time, also if it unpacks to nothing
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
        while stream.read(_CHUNK):  # to the checksum, which stands at the very end
            pass
        if stream.filled > archive.offset:  # the library takes a header that it cannot read for the end
            raise refused("the archive has a broken header, or data behind its end")


def _header_kind() -> type[tarfile.TarInfo]:
    """Headers of one tar file, with a bound on those that describe others.

    The library reads such a header whole; before Python 3.11.10 it searches it in time that grows with its square.
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
                    raise too_much("the archive's headers hold more than we read")
            return header

    return Header


def _zip_members(data: bytes, limits: Limits) -> Iterator[_Member]:
    if data.count(ZIP_HEADER) > limits.max_resources:  # counted before the library makes an object of each
        raise too_much(f"the archive has more than {limits.max_resources} members")
    with zipfile.ZipFile(BytesIO(data)) as archive:
        _check_layout(archive, data)
        for member in archive.infolist():
            name = _zip_name(member)
            mode = member.external_attr >> 16
            kind = mode & 0o170000
            if kind not in _REGULAR and kind != _DIRECTORY:
                raise refused(f"{name!r:.200} is a link, a device or a pipe")
            if member.flag_bits & _ZIP_ENCRYPTED:
                raise refused(f"{name!r:.200} is encrypted")
            if member.compress_type not in _ZIP_METHODS:
                raise refused(f"{name!r:.200} is packed in a way we do not read")
            yield name, name.endswith("/"), mode, member.file_size, lambda member=member: archive.open(member)


def _zip_name(member: zipfile.ZipInfo) -> str:
    """The whole name: the library cuts ``filename`` at a NUL, and reads code page 437 where UTF-8 is not declared.

    The Finder, and ``zip`` in some locales, write UTF-8 without declaring it.
    """
    if member.flag_bits & _ZIP_UTF8:
        return member.orig_filename
    try:
        return member.orig_filename.encode("cp437").decode()
    except UnicodeError:
        return member.orig_filename


def _check_layout(archive: zipfile.ZipFile, data: bytes) -> None:
    """One archive and nothing else: what lies before or behind it, and entries that share bytes, are tricks."""
    end = 0
    for member in sorted(archive.infolist(), key=lambda member: member.header_offset):
        if member.header_offset < end or (not end and member.header_offset):
            raise refused(f"{member.orig_filename!r:.200} overlaps another member, or has data before it")
        end = member.header_offset + _ZIP_LOCAL_SIZE + member.compress_size
    if end > archive.start_dir or not data[-_ZIP_END_SIZE - len(archive.comment) :].startswith(_ZIP_END):
        raise refused("the archive has overlapping members, or data behind its end")


def _opened(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise refused("a member has no content")
    return stream
