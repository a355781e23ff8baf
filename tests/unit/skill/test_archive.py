"""I2, I3, B5: a packed skill comes out as files, or is refused before anything of it is used."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zipfile
import zlib
from contextlib import nullcontext
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest

from archives import pack_tar_gz, pack_zip, tar_member, tar_of, zip_of
from rules import rule
from skillwire.errors import FormatError, LimitError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.archive import (
    MAX_EXTENDED,
    MAX_EXTENDED_COST,
    ArchiveFormat,
    archive_format,
    archive_root,
    unpack,
)
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

SKILL_MD = skill_md("refunds")
FILES = {
    "SKILL.md": SKILL_MD,
    "templates/reply.md": b"Dear customer,\r\n",
    "a/b/c.bin": bytes(range(256)),
    "empty": b"",
}
PACK: dict[ArchiveFormat, Callable[[dict[str, bytes]], bytes]] = {"tar.gz": pack_tar_gz, "zip": pack_zip}
FORMATS = pytest.mark.parametrize("form", PACK)


def refusal(data: bytes, form: ArchiveFormat, limits: Limits | None = None) -> SkillwireError:
    with pytest.raises((FormatError, LimitError)) as caught:
        unpack(data, form, limits or Limits())
    error = caught.value
    assert error.reference == ("archive-refused" if isinstance(error, FormatError) else "archive-too-large")
    assert error.message
    assert error.hint
    assert error.rule in ("I2", "I3", "B5")
    return error


def bad(data: bytes, form: ArchiveFormat, limits: Limits | None = None) -> FormatError:
    error = refusal(data, form, limits)
    assert isinstance(error, FormatError), error
    return error


def too_much(data: bytes, form: ArchiveFormat, limits: Limits | None = None) -> LimitError:
    error = refusal(data, form, limits)
    assert isinstance(error, LimitError), error
    return error


def tar_gz(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """A ``.tar.gz`` of a good ``SKILL.md`` and ``members``."""
    return gzip.compress(tar_of([tar_member("SKILL.md", SKILL_MD), *members], form))


def header(name: str, kind: bytes, size: int = 0) -> bytes:
    """One block, as its member says it is, whatever follows."""
    return tar_member(name, type=kind, size=size)[0].tobuf(tarfile.USTAR_FORMAT)


def block(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 512)


def zipped(name: str = "x", data: bytes = b"x", mode: int = 0, **fields: Any) -> bytes:
    """A ``.zip`` of a good ``SKILL.md`` and one more member."""
    member = zipfile.ZipInfo(name)
    member.filename = name  # as it is: the constructor cuts at a NUL
    member.external_attr = mode << 16
    for field, value in fields.items():
        setattr(member, field, value)
    return zip_of([("SKILL.md", SKILL_MD), (member, data)])


# ── honest archives ──────────────────────────────────────────────────────────────────────────────────────────


@rule("I2")
@FORMATS
def test_an_archive_comes_out_as_its_files(form: ArchiveFormat) -> None:
    """As individual files would: text, binary and empty ones, in folders."""
    assert unpack(PACK[form](FILES), form) == FILES


@rule("I2")
@pytest.mark.parametrize(
    "layout", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["ustar", "gnu", "pax"]
)
def test_every_layout_of_tar_is_read(layout: int) -> None:
    """With long and non-ASCII names, which each writes in its own way."""
    files = FILES | {f"{'long/' * 18}{'n' * 60}.md": b"x"}
    if layout != tarfile.USTAR_FORMAT:
        files |= {"references/R\u00e9sum\u00e9 & notes #1?.md": b"y", f"{'d' * 200}/{'e' * 150}": b"z"}
    assert unpack(pack_tar_gz(files, layout), "tar.gz") == files


@rule("I2")
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED], ids=["stored", "deflated"])
def test_stored_and_deflated_members_are_read(method: int) -> None:
    assert unpack(pack_zip(FILES, method), "zip") == FILES


@rule("I2")
def test_a_zip_may_have_a_comment_and_names_in_utf_8() -> None:
    raw = BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        archive.comment = b"packed with care"
        archive.writestr("SKILL.md", SKILL_MD)
        archive.writestr("R\u00e9sum\u00e9.md", b"x")
    assert unpack(raw.getvalue(), "zip") == {"SKILL.md": SKILL_MD, "R\u00e9sum\u00e9.md": b"x"}


@rule("I2")
def test_a_zip_that_does_not_say_that_its_names_are_utf_8_is_read_as_if_it_did() -> None:
    """The Finder and others pack so; read as code page 437 the file would have another name."""
    data = pack_zip({"SKILL.md": SKILL_MD, "R\u00e9sum\u00e9.md": b"x"})
    for head, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        second = data.index(head, data.index(head) + 4) + place
        (flags,) = struct.unpack_from("<H", data, second)
        assert flags & 0x800
        data = data[:second] + struct.pack("<H", flags & ~0x800) + data[second + 2 :]
    assert unpack(data, "zip").keys() == {"SKILL.md", "R\u00e9sum\u00e9.md"}


@rule("I2")
def test_a_zip_of_an_old_tool_keeps_its_code_page() -> None:
    """Bytes that are no UTF-8."""
    data = pack_zip({"SKILL.md": SKILL_MD, "caf?": b"x"}).replace(b"caf?", b"caf\x82")
    assert unpack(data, "zip").keys() == {"SKILL.md", "caf\u00e9"}


@rule("I2")
def test_several_gzip_streams_in_a_row_are_one() -> None:
    """Parallel packers write so."""
    raw = tar_of([tar_member("SKILL.md", SKILL_MD)])
    assert unpack(gzip.compress(raw[:700]) + gzip.compress(raw[700:]), "tar.gz") == {"SKILL.md": SKILL_MD}


@rule("I2")
@FORMATS
def test_names_that_begin_with_a_dot_and_a_slash_are_the_names_behind(form: ArchiveFormat) -> None:
    """``tar czf x.tar.gz .`` writes so."""
    for start in ("./", "././"):
        assert unpack(PACK[form]({f"{start}{name}": data for name, data in FILES.items()}), form) == FILES


@rule("I2")
@pytest.mark.parametrize("root", [".", "./"], ids=["dot", "dot-slash"])
def test_folders_are_accepted_the_root_included(root: str) -> None:
    """An empty folder is no file."""
    folders = [tar_member(name, type=tarfile.DIRTYPE, mode=0o755) for name in (root, "a", "a/b/", "a")]
    assert unpack(tar_gz(*folders, tar_member("a/b/c", b"x")), "tar.gz") == {"SKILL.md": SKILL_MD, "a/b/c": b"x"}
    with_slash = [(f"{name.rstrip('/')}/", b"") for name in (root, "a", "a/b")]
    assert unpack(zip_of([*with_slash, ("SKILL.md", SKILL_MD)]), "zip") == {"SKILL.md": SKILL_MD}
    assert unpack(zipped("a/", b"", mode=0o040755), "zip") == {"SKILL.md": SKILL_MD}


@rule("I3")
def test_modes_owners_and_setuid_bits_are_dropped() -> None:
    """What comes out is bytes, and which of them are executable."""
    member = tar_member("run.sh", b"x", mode=0o6777, uid=0, gid=0, uname="root", mtime=2**33)
    assert unpack(tar_gz(member), "tar.gz") == {"SKILL.md": SKILL_MD, "run.sh": b"x"}
    assert unpack(zipped("run.sh", mode=0o106777), "zip") == {"SKILL.md": SKILL_MD, "run.sh": b"x"}


# ── which format ─────────────────────────────────────────────────────────────────────────────────────────────


@rule("I2")
def test_the_format_is_told_by_the_media_type_then_by_the_suffix() -> None:
    for media_type in ("application/gzip", "application/x-gzip", "application/x-tar+gzip"):
        assert archive_format("skill://a.zip", media_type) == "tar.gz"
    for media_type in ("application/zip", "application/x-zip-compressed", "Application/ZIP; charset=binary"):
        assert archive_format("skill://a.tar.gz", media_type) == "zip"
    assert archive_format("skill://a.tar.gz", None) == "tar.gz"
    assert archive_format("skill://a.TGZ", "") == "tar.gz"
    assert archive_format("skill://a.Zip", "application/octet-stream") == "zip"


@rule("I2")
def test_another_format_is_refused_by_name() -> None:
    for uri, media_type in (
        ("skill://a.7z", None),
        ("skill://a", "text/plain"),
        ("skill://a.tar", "application/x-tar"),
    ):
        with pytest.raises(FormatError) as caught:
            archive_format(uri, media_type)
        assert (caught.value.reference, caught.value.rule) == ("archive-unknown", "I2")
        assert uri in caught.value.message
        assert caught.value.hint


@rule("I2")
def test_the_skill_is_where_its_archive_is_without_the_suffix() -> None:
    roots = {
        "skill://x/a.tar.gz": "skill://x/a",
        "skill://a.TGZ": "skill://a",
        "skill://a.zip.zip": "skill://a.zip",
        "skill://a": "skill://a",
    }
    assert {uri: archive_root(uri) for uri in roots} == roots


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────

WAYS_OUT = [
    "/etc/passwd", "../x", "a/../../x", "a/..", "..", "a/./b", "a//b", "C:/x", "c:x", "\\\\server\\share\\x",
    "a\\b", "a\nb", "\x7f", ".//x", "./../x", "/",
]  # fmt: skip


@rule("I3", "U7")
@pytest.mark.parametrize("name", WAYS_OUT)
def test_a_name_that_could_lead_elsewhere_is_refused(name: str) -> None:
    """Absolute, upwards, of a drive, of a network, with a backslash or a control character."""
    if name != "/":  # a tar file has no name for it
        assert repr(name)[1:-1] in bad(tar_gz(tar_member(name, b"x")), "tar.gz").message
    assert repr(name)[1:-1] in bad(zipped(name), "zip").message


@rule("I3")
@FORMATS
def test_a_folder_that_could_lead_elsewhere_is_refused(form: ArchiveFormat) -> None:
    for name in ("a/../b", "/x"):
        data = zipped(f"{name}/", b"") if form == "zip" else tar_gz(tar_member(name, type=tarfile.DIRTYPE))
        assert name in bad(data, form).message


@rule("I3")
def test_a_name_with_a_nul_is_refused() -> None:
    """What comes before it may be the name of something else."""
    data = zipped("SKILL.mdXexe").replace(b"SKILL.mdX", b"SKILL.md\0")
    assert "\\x00" in bad(data, "zip").message
    record = b"20 path=a\0b.md....\n"
    raw = header("x", tarfile.XHDTYPE, len(record)) + block(record) + header("x", tarfile.REGTYPE) + b"\0" * 1024
    assert "\\x00" in bad(gzip.compress(raw), "tar.gz").message


@rule("I3", "U7")
def test_a_name_that_is_no_text_is_refused() -> None:
    raw = tar_of([tar_member("SKILL.md", SKILL_MD), tar_member("caf\udcff", b"x")], tarfile.GNU_FORMAT)
    bad(gzip.compress(raw), "tar.gz")
    data = pack_zip({"SKILL.md": SKILL_MD, "caf\u00e9": b"x"})
    bad(data.replace("caf\u00e9".encode(), b"caf\xff\xfe"), "zip")


@rule("I3")
@pytest.mark.parametrize("name", ["", ".", "./"], ids=["empty", "dot", "dot-slash"])
def test_a_file_without_a_name_is_refused(name: str) -> None:
    """Only a folder can be the root; and nothing is skipped by going through all that it claims to hold."""
    raw = header(name, tarfile.REGTYPE, 0) + tar_of([tar_member("SKILL.md", SKILL_MD)])
    bad(gzip.compress(raw), "tar.gz")
    huge = tar_member(name, size=2**60)[0].tobuf(tarfile.GNU_FORMAT)
    bad(gzip.compress(huge + b"\0" * 1024), "tar.gz")
    if not name.endswith("/"):
        bad(zipped(name), "zip")


@rule("I3", "B1")
@FORMATS
def test_a_name_that_is_too_long_or_too_deep_is_refused(form: ArchiveFormat) -> None:
    """And the message about it is short."""
    deepest = "d/" * (DEFAULT_LIMITS.max_depth - 1) + "x"
    assert deepest in unpack(PACK[form]({"SKILL.md": SKILL_MD, deepest: b"x"}), form)
    for name in (f"d/{deepest}", "n" * 5000):
        assert len(refusal(PACK[form]({"SKILL.md": SKILL_MD, name: b"x"}), form).message) < 300


@rule("I3", "B1")
def test_a_name_may_be_as_long_as_a_uri_and_no_longer() -> None:
    longest = "n" * DEFAULT_LIMITS.max_uri_length
    assert longest in unpack(zipped(longest), "zip")
    bad(zipped(f"{longest}n"), "zip")


# ── collisions ───────────────────────────────────────────────────────────────────────────────────────────────

COLLISIONS = [
    ("README.md", "readme.MD"), ("caf\u00e9", "cafe\u0301"), ("a/x", "A/y"), ("a", "a/b"), ("a/b", "a"),
    ("A", "a/b"), ("a/b/c", "a/B"), ("SKILL.MD", "x"),
]  # fmt: skip


@rule("B5")
@pytest.mark.parametrize(("one", "other"), COLLISIONS)
def test_names_that_a_disk_could_take_for_one_are_refused(one: str, other: str) -> None:
    """Case, Unicode form, a file where a folder is, in either order."""
    assert bad(PACK["zip"]({"SKILL.md": SKILL_MD, one: b"1", other: b"2"}), "zip").rule == "B5"


@rule("B5")
@pytest.mark.parametrize("name", ["x", "SKILL.md"])
def test_a_file_that_comes_twice_is_refused(name: str) -> None:
    """Whichever would win. The spelling does not matter, nor whether one is a folder."""
    for again in (name, f"./{name}"):
        assert bad(tar_gz(tar_member("x", b"1"), tar_member(again, b"2")), "tar.gz").rule == "B5"
        with pytest.warns(UserWarning, match="Duplicate") if again == name else nullcontext():
            data = zip_of([("SKILL.md", SKILL_MD), ("x", b"1"), (again, b"2")])
        assert bad(data, "zip").rule == "B5"
    assert bad(tar_gz(tar_member("x", b"1"), tar_member("x", type=tarfile.DIRTYPE)), "tar.gz").rule == "B5"
    assert bad(zip_of([("SKILL.md", SKILL_MD), ("x/", b""), ("x", b"1")]), "zip").rule == "B5"


# ── kinds of members ─────────────────────────────────────────────────────────────────────────────────────────


@rule("I3")
@pytest.mark.parametrize(
    "kind",
    [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, b"Z"],
    ids=["symbolic-link", "hard-link", "character-device", "block-device", "pipe", "unknown"],
)
def test_a_tar_with_anything_but_files_and_folders_is_refused(kind: bytes) -> None:
    """A link even if it stays inside."""
    error = bad(tar_gz(tar_member("odd", type=kind, linkname="SKILL.md", devmajor=1, devminor=3)), "tar.gz")
    assert "'odd'" in error.message


@rule("I3")
@pytest.mark.parametrize("kind", [0o120000, 0o020000, 0o140000], ids=["symbolic-link", "device", "socket"])
def test_a_zip_with_anything_but_files_and_folders_is_refused(kind: int) -> None:
    assert "'odd'" in bad(zipped("odd", b"/etc/passwd", mode=kind | 0o777), "zip").message


def sparse_pax(**records: str) -> bytes:
    lines = b"".join(_record(f"GNU.sparse.{key}", value) for key, value in records.items())
    return (
        tar_of([tar_member("SKILL.md", SKILL_MD)])[: -(-len(SKILL_MD) // 512) * 512 + 512]
        + header("x", tarfile.XHDTYPE, len(lines))
        + block(lines)
        + header("odd", tarfile.REGTYPE, 512)
        + block(b"1\n0\n1\n")
        + b"\0" * 1024
    )


def _record(key: str, value: str) -> bytes:
    """``length key=value``, where the length counts itself."""
    body = f" {key}={value}\n".encode()
    length = len(body) + 1
    while len(f"{length}") + len(body) != length:
        length += 1
    return f"{length}".encode() + body


@rule("I3")
@pytest.mark.parametrize(
    "raw",
    [
        header("odd", tarfile.GNUTYPE_SPARSE, 0) + b"\0" * 1024,
        header("odd", tarfile.GNUTYPE_SPARSE, 2**32)[:482] + b"\x01" + b"\0" * 29,
        sparse_pax(map="0,1", size="99999999"),
        sparse_pax(size="99999999", numblocks="1"),
        sparse_pax(major="1", minor="0", realsize="99999999", name="odd"),
    ],
    ids=["old", "old-and-cut", "pax-0.1", "pax-0.0", "pax-1.0"],
)
def test_a_sparse_file_is_refused(raw: bytes) -> None:
    """Holes are bytes that nobody packed."""
    bad(gzip.compress(raw), "tar.gz")


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────


@rule("I3")
@FORMATS
def test_an_archive_may_have_so_many_members_and_no_more(form: ArchiveFormat) -> None:
    """Folders count; they cost too."""
    files = {"SKILL.md": SKILL_MD, **{f"{number}": b"" for number in range(9)}}
    assert len(unpack(PACK[form](files), form, Limits(max_resources=10))) == 10
    too_much(PACK[form](files), form, Limits(max_resources=9))


@rule("I3", "B1")
@FORMATS
def test_an_archive_may_unpack_to_so_many_bytes_and_no_more(form: ArchiveFormat) -> None:
    """All files together."""
    files = {"SKILL.md": SKILL_MD, "a": b"x" * 1000, "b": b"y" * 1000}
    size = sum(map(len, files.values()))
    assert unpack(PACK[form](files), form, Limits(max_skill_bytes=size)) == files
    assert "'b'" in too_much(PACK[form](files), form, Limits(max_skill_bytes=size - 1)).message


@rule("I3", "B1")
@FORMATS
def test_an_archive_may_itself_be_so_large_and_no_larger(form: ArchiveFormat) -> None:
    """Looked at before anything else."""
    data = PACK[form](FILES)
    assert unpack(data, form, Limits(max_archive_bytes=len(data))) == FILES
    assert str(len(data)) in too_much(data, form, Limits(max_archive_bytes=len(data) - 1)).message
    too_much(b"x" * 11, form, Limits(max_archive_bytes=10))


@rule("I3")
@FORMATS
def test_a_bomb_goes_off_nowhere(form: ArchiveFormat) -> None:
    """4 MB in 4 kB; it stops long before the bound of one skill."""
    data = PACK[form]({"SKILL.md": SKILL_MD, "zeros": b"\0" * 4_000_000})
    assert len(data) < 10_000
    too_much(data, form, Limits(max_archive_ratio=20))
    assert "'zeros'" in too_much(data, form).message


@rule("I3")
def test_what_can_be_packed_tightly_still_comes_out() -> None:
    """A table that repeats itself is no bomb."""
    files = {"SKILL.md": SKILL_MD, "table.csv": b"gold,500,yes,2026-01-01\n" * 4000}
    for form, pack in PACK.items():
        assert unpack(pack(files), form) == files


@rule("I3")
def test_zeros_between_or_behind_the_members_of_a_tar_count() -> None:
    """The stream is bounded, not only the files in it."""
    raw = tar_of([tar_member("SKILL.md", SKILL_MD)]) + b"\0" * 3_000_000
    limits = Limits(max_resources=10, max_skill_bytes=2_000_000)
    too_much(gzip.compress(raw), "tar.gz", limits)
    assert unpack(gzip.compress(raw), "tar.gz", Limits(max_archive_ratio=1000)) == {"SKILL.md": SKILL_MD}


EXTENDED = {
    "pax": tarfile.XHDTYPE,
    "global": tarfile.XGLTYPE,
    "solaris": tarfile.SOLARIS_XHDTYPE,
    "long-name": tarfile.GNUTYPE_LONGNAME,
    "long-link": tarfile.GNUTYPE_LONGLINK,
}


@rule("I3")
@pytest.mark.parametrize("kind", EXTENDED)
def test_a_header_that_describes_a_header_may_not_be_large(kind: str) -> None:
    """They are read whole, and searched; digits without end make that search slow."""
    for size in (MAX_EXTENDED + 1, 8**11 - 1, -512):
        member = tar_member("x", type=EXTENDED[kind], size=size)[0].tobuf(tarfile.GNU_FORMAT)
        too_much(gzip.compress(member + block(b"1" * (MAX_EXTENDED + 1))), "tar.gz")


@rule("I3")
def test_a_header_that_describes_a_header_may_be_as_large_as_a_path() -> None:
    record = _record("comment", "c" * (MAX_EXTENDED - 14))
    assert len(record) == MAX_EXTENDED
    raw = header("x", tarfile.XHDTYPE, len(record)) + block(record) + tar_of([tar_member("SKILL.md", SKILL_MD)])
    assert unpack(gzip.compress(raw), "tar.gz") == {"SKILL.md": SKILL_MD}


@rule("I3")
@pytest.mark.parametrize("kind", ["pax", "solaris", "long-name", "long-link"])
def test_headers_that_describe_headers_may_not_be_many(kind: str) -> None:
    """One before each member. What they cost grows with the square of their size."""

    def members(count: int) -> bytes:
        parts: list[bytes] = []
        for number in range(count):
            content = f"{number:04}{'n' * 3996}".encode()
            if kind in ("pax", "solaris"):
                content = _record("comment", "c" * 3986)
            assert len(content) == 4000
            parts += header("x", EXTENDED[kind], 4000), block(content), header(f"{number}", tarfile.REGTYPE)
        return gzip.compress(b"".join(parts) + tar_of([tar_member("SKILL.md", SKILL_MD)]))

    most = MAX_EXTENDED_COST // 4000**2
    assert len(unpack(members(most), "tar.gz")) == most + 1
    too_much(members(most + 1), "tar.gz")


@rule("I3")
@pytest.mark.parametrize("kind", ["pax", "long-name"])
def test_headers_that_describe_headers_without_end_are_refused(kind: str) -> None:
    """The library calls itself for each."""
    refusal(gzip.compress((header("x", EXTENDED[kind], 10) + block(b"6 a=bc\n")) * 2000), "tar.gz")


@rule("I3")
def test_global_headers_are_bounded_more_tightly() -> None:
    """Each is applied to every member behind it. One, as git writes, is fine."""
    record = _record("comment", "0" * 40)
    one = header("pax_global_header", tarfile.XGLTYPE, len(record)) + block(record)
    rest = tar_of([tar_member("SKILL.md", SKILL_MD)])
    assert unpack(gzip.compress(one + rest), "tar.gz") == {"SKILL.md": SKILL_MD}
    keys = b"".join(_record(f"k{number}", "v") for number in range(300))
    many = (header("g", tarfile.XGLTYPE, len(keys)) + block(keys) + header("d", tarfile.DIRTYPE)) * 100
    too_much(gzip.compress(many + rest), "tar.gz")


@rule("I3")
def test_a_zip_of_very_many_members_is_refused_before_the_library_sees_it() -> None:
    """Each would become an object; here there is not even an archive around them."""
    too_much(b"PK\x01\x02" * 51, "zip", Limits(max_resources=50))
    bad(b"PK\x01\x02" * 50, "zip", Limits(max_resources=50))


# ── damage and tricks ────────────────────────────────────────────────────────────────────────────────────────


@rule("I3")
@FORMATS
def test_an_archive_that_ends_too_early_is_refused(form: ArchiveFormat) -> None:
    """Wherever it was cut, the very end included."""
    data = PACK[form](FILES)
    for length in [*range(0, len(data), 37), len(data) - 1, len(data) - 4, len(data) - 8]:
        bad(data[:length], form)


@rule("I3")
def test_a_wrong_checksum_or_length_of_a_gzip_stream_is_refused() -> None:
    """They stand behind all files, where a reader in a hurry does not look."""
    honest = pack_tar_gz(FILES)
    for place in (-8, -5, -1):
        data = bytearray(honest)
        data[place] ^= 1
        bad(bytes(data), "tar.gz")


@rule("I3")
def test_a_broken_header_between_members_is_not_taken_for_the_end() -> None:
    """The files behind it would be missing without a word."""
    raw = bytearray(tar_of([tar_member("SKILL.md", SKILL_MD), tar_member("more.md", b"x")]))
    place = raw.index(b"more.md")
    raw[place] ^= 1
    assert bad(gzip.compress(bytes(raw)), "tar.gz").__cause__ is None


def patched(data: bytes, head: bytes, place: int, packed: bytes) -> bytes:
    """``data`` with other bytes at ``place`` behind the last occurrence of ``head``."""
    start = data.rindex(head) + place
    return data[:start] + packed + data[start + len(packed) :]


@rule("I3")
def test_a_wrong_checksum_of_a_zip_member_is_refused() -> None:
    bad(patched(zipped(), b"PK\x01\x02", 16, struct.pack("<I", 1)), "zip")


@rule("I3")
@pytest.mark.parametrize("size", [0, 999, 1001, 2**31])
def test_a_zip_whose_directory_lies_about_a_size_is_refused(size: int) -> None:
    """Smaller or larger than what comes out."""
    honest = zipped("x", b"y" * 1000)
    assert len(unpack(honest, "zip")["x"]) == 1000
    bad(patched(honest, b"PK\x01\x02", 24, struct.pack("<I", size)), "zip")


@rule("I3")
@pytest.mark.parametrize("size", [0, 2**31])
def test_a_zip_whose_directory_lies_about_a_packed_size_is_refused(size: int) -> None:
    bad(patched(zipped("x", bytes(range(256)) * 9), b"PK\x01\x02", 20, struct.pack("<I", size)), "zip")


@rule("I3")
@pytest.mark.parametrize("flags", [0x1, 0x41], ids=["weak", "strong"])
def test_an_encrypted_zip_is_refused_and_named(flags: int) -> None:
    """A skill has no password."""
    data = patched(zipped("secret"), b"PK\x01\x02", 8, struct.pack("<H", flags))
    error = bad(data, "zip")
    assert "'secret'" in error.message
    assert error.__cause__ is None


@rule("I3")
@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, 99], ids=["bzip2", "lzma", "unknown"])
def test_a_zip_packed_in_another_way_is_refused(method: int) -> None:
    """Their output cannot be bounded while it is made."""
    data = zipped("x", b"x" * 100, compress_type=method) if method != 99 else zipped()
    for head, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        data = patched(data, head, place, struct.pack("<H", method))
    assert "'x'" in bad(data, "zip").message


@rule("I3")
def test_members_of_a_zip_that_share_bytes_are_refused() -> None:
    """The trick of the zip bombs that need no nesting."""
    kernel = zlib.compress(b"\0" * 100_000, 9)[2:-4]
    checksum = zlib.crc32(b"\0" * 100_000)
    sizes = (checksum, len(kernel), 100_000, 1, 0)
    names = [b"a", b"b", b"c"]
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 0, *sizes) + b"a" + kernel
    first = pack_zip({"SKILL.md": SKILL_MD})
    start = first.index(b"PK\x01\x02")
    directory = first[start : first.index(b"PK\x05\x06")] + b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, *sizes, 0, 0, 0, 0, start) + name
        for name in names
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 4, 4, len(directory), start + len(local), 0)
    assert bad(first[:start] + local + directory + end, "zip").__cause__ is None


@rule("I3")
def test_a_member_of_a_zip_that_reaches_into_the_directory_is_refused() -> None:
    data = pack_zip({"SKILL.md": SKILL_MD}, zipfile.ZIP_STORED)
    longer = struct.pack("<II", len(SKILL_MD) + 40, len(SKILL_MD) + 40)
    assert bad(patched(data, b"PK\x01\x02", 20, longer), "zip").__cause__ is None


@rule("I3")
@pytest.mark.parametrize(
    "junk",
    [b"x", b"\0", pack_zip({"SKILL.md": b"other"})],
    ids=["a-byte", "a-zero", "an-archive"],
)
def test_data_around_a_zip_is_refused(junk: bytes) -> None:
    """Another reader would see another archive."""
    data = pack_zip(FILES)
    if not junk.startswith(b"PK"):
        bad(data + junk, "zip")
    bad(junk + data, "zip")


@rule("I3")
@pytest.mark.parametrize(
    "junk",
    [b"x", gzip.compress(b"more", mtime=0)],
    ids=["a-byte", "another-stream"],
)
def test_data_behind_a_tar_is_refused(junk: bytes) -> None:
    """Behind the compressed stream, and inside it behind the last member."""
    data = pack_tar_gz(FILES)
    bad(data + junk, "tar.gz")
    bad(gzip.compress(gzip.decompress(data) + junk), "tar.gz")


@rule("I2", "I3")
@FORMATS
def test_what_is_no_archive_is_refused(form: ArchiveFormat) -> None:
    other = PACK["zip" if form == "tar.gz" else "tar.gz"](FILES)
    for data in (
        b"",
        b"x",
        SKILL_MD,
        other,
        gzip.compress(b""),
        gzip.compress(SKILL_MD),
        b"\0" * 1024,
        b"\x1f\x8b",
    ):
        bad(data, form)


@rule("I2")
@FORMATS
def test_an_archive_without_a_skill_md_at_its_root_is_refused(form: ArchiveFormat) -> None:
    """Empty, wrapped in a folder, or spelled otherwise."""
    for files in ({}, {"refunds/SKILL.md": SKILL_MD}, {"skill.md": SKILL_MD}, {"SKILL.md/x": b""}, {"x": b""}):
        error = bad(PACK[form](files), form)
        assert error.rule == "I2"


@rule("I2")
def test_a_folder_called_skill_md_is_no_skill() -> None:
    assert bad(zip_of([("SKILL.md/", b"")]), "zip").rule == "I2"


@rule("I3")
def test_a_refusal_keeps_what_the_library_said() -> None:
    """For whoever has to mend the server."""
    assert isinstance(bad(b"no archive", "zip").__cause__, zipfile.BadZipFile)
    assert isinstance(bad(b"no archive", "tar.gz").__cause__, gzip.BadGzipFile)


@rule("I3", "B1")
def test_many_empty_pieces_of_compressed_data_are_refused_before_they_are_unpacked() -> None:
    """Each is a few bytes and costs as much time as a file."""
    limits = Limits(max_resources=50)
    assert unpack(gzip.compress(b"") * 20 + pack_tar_gz(FILES), "tar.gz", limits)
    error = refusal(gzip.compress(b"") * 51 + pack_tar_gz(FILES), "tar.gz", limits)
    assert (error.reference, error.rule) == ("archive-too-large", "I3")
