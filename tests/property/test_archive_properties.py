"""I2, I3: what was packed honestly comes out as it went in; what is broken is refused, and by us."""

from __future__ import annotations

import gzip
import tarfile
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archives import pack_tar_gz, pack_zip
from property.budget import FEWER
from rules import rule
from skillwire.errors import FormatError, LimitError
from skillwire.limits import Limits
from skillwire.skill.archive import ArchiveFormat, unpack
from skillwire.skill.uri import fold

SEGMENT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"), min_size=1, max_size=9
).filter(lambda segment: segment not in (".", "..") and segment[1:2] != ":")
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map("/".join)
SMALL = Limits(max_skill_bytes=100_000, max_resources=50)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, bytes]:
    """Files whose names no disk takes for one another's."""
    files = {"SKILL.md": draw(st.binary(max_size=100))}
    taken = {"skill.md"}
    for path in draw(st.lists(PATH, max_size=6)):
        folders = {fold("/".join(path.split("/")[:depth])): path.split("/")[:depth] for depth in range(1, 9)}
        if fold(path) in taken or any(fold(path).startswith(f"{name}/") for name in taken):
            continue
        if any(name.startswith(f"{fold(path)}/") for name in taken):
            continue
        if any(
            fold("/".join(other.split("/")[: len(parts)])) == name and other.split("/")[: len(parts)] != parts
            for other in files
            for name, parts in folders.items()
        ):
            continue
        taken.add(fold(path))
        files[path] = draw(st.binary(max_size=600) | st.just(b"\0" * 700))
    return files


@rule("I2")
@FEWER
@given(trees(), st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]))
def test_a_tree_packed_as_tar_comes_out_as_it_was(files: dict[str, bytes], layout: int) -> None:
    assert unpack(pack_tar_gz(files, layout), "tar.gz") == files


@rule("I2")
@FEWER
@given(trees(), st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_a_tree_packed_as_zip_comes_out_as_it_was(files: dict[str, bytes], method: int) -> None:
    assert unpack(pack_zip(files, method), "zip") == files


def outcome(data: bytes, form: ArchiveFormat) -> dict[str, bytes] | None:
    """The files, or ``None`` if they were refused as they should be; any other exception is a failed test."""
    try:
        return unpack(data, form, SMALL)
    except (FormatError, LimitError):
        return None


TREE = {"SKILL.md": b"---\nname: a\n", "n\u00e9/x.md": b"text " * 30, "y": bytes(range(200)), "z" * 120: b""}
TAR = {form: pack_tar_gz(TREE, form) for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)}
RAW = {form: gzip.decompress(data) for form, data in TAR.items()}
ZIP = {method: pack_zip(TREE, method) for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)}

Changes = list[tuple[float, str, bytes]]
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from(["flip", "set", "cut", "repeat", "insert"]),
        st.binary(min_size=1, max_size=8),
    ),
    min_size=1,
    max_size=4,
)


def corrupted(data: bytes, changes: Changes) -> bytes:
    for where, kind, extra in changes:
        place = int(where * len(data))
        match kind:
            case "flip":
                data = data[:place] + bytes([data[place] ^ (extra[0] or 1)]) + data[place + 1 :] if data else data
            case "set":
                data = data[:place] + extra + data[place + len(extra) :]
            case "cut":
                data = data[:place] + data[place + len(extra) * 9 :]
            case "repeat":
                data = data[:place] + data[max(0, place - len(extra) * 64) :]
            case _:
                data = data[:place] + extra + data[place:]
    return data


@rule("I3")
@settings(max_examples=max(100, settings.default.max_examples))
@given(st.sampled_from(list(ZIP.values())), CHANGES)
def test_a_broken_zip_is_refused_with_an_error_of_ours_or_unpacks(data: bytes, changes: Changes) -> None:
    """What the library raises on broken headers is of many kinds; none of them gets out."""
    outcome(corrupted(data, changes), "zip")


@rule("I3")
@settings(max_examples=max(100, settings.default.max_examples))
@given(st.sampled_from(list(RAW.values())), CHANGES)
def test_a_broken_tar_is_refused_with_an_error_of_ours_or_unpacks(data: bytes, changes: Changes) -> None:
    """Broken before it was compressed, so that every checksum of gzip is right."""
    outcome(gzip.compress(corrupted(data, changes), 1), "tar.gz")


@rule("I3")
@settings(max_examples=max(100, settings.default.max_examples))
@given(st.sampled_from(list(TAR.values())), CHANGES)
def test_a_broken_gzip_stream_never_passes_for_another_tree(data: bytes, changes: Changes) -> None:
    """Its checksum is at the end and is read."""
    files = outcome(corrupted(data, changes), "tar.gz")
    assert files is None or files == TREE


@rule("I3")
@settings(max_examples=max(100, settings.default.max_examples))
@given(
    st.sampled_from([0, 100, 124, 136, 257, 345, 386, 482]),
    st.binary(min_size=1, max_size=12),
    st.sampled_from(b"0123456789xgLKSVDMNX\0"),
    st.binary(max_size=600),
)
def test_a_tar_header_with_any_field_and_a_right_checksum_is_ours_to_refuse(
    place: int, value: bytes, kind: int, payload: bytes
) -> None:
    """A checksum proves nothing about the rest of a header."""
    block = bytearray(tarfile.TarInfo("x").tobuf(tarfile.GNU_FORMAT))
    block[156] = kind
    block[place : place + len(value)] = value
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    raw = RAW[tarfile.PAX_FORMAT]
    outcome(gzip.compress(bytes(block) + payload + b"\0" * (-len(payload) % 512) + raw, 1), "tar.gz")


@rule("I3")
@given(st.binary(max_size=300), st.sampled_from(["tar.gz", "zip"]))
@example(b"PK\x05\x06" + b"\0" * 18, "zip")
@example(b"\x1f\x8b\x08\x00" + b"\0" * 30, "tar.gz")
def test_any_bytes_are_refused_by_us(data: bytes, form: ArchiveFormat) -> None:
    assert outcome(data, form) is None


@rule("I3", "U7")
@pytest.mark.parametrize("form", ["tar.gz", "zip"])
@given(names=st.lists(st.text(max_size=12) | st.sampled_from(["../x", "/x", "a\\b", "C:x", "x", "X"]), max_size=4))
def test_no_name_comes_out_that_leads_elsewhere(form: ArchiveFormat, names: list[str]) -> None:
    files = {"SKILL.md": b"", **{name: b"x" for name in names if name and name.isprintable()}}
    out = outcome(pack_zip(files) if form == "zip" else pack_tar_gz(files), form)
    for name in out or ():
        assert all(segment not in ("", ".", "..") for segment in name.split("/"))
        assert "\\" not in name
        assert name[1:2] != ":"
    assert out is None or len({fold(name) for name in out}) == len(out)
