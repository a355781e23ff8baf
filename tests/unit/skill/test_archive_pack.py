"""I2: a skill as one file, the same bytes everywhere, that everybody can open."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import tarfile
import zipfile
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, get_args

import pytest

from rules import rule
from skillwire.errors import FormatError, LimitError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.archive import ArchiveFormat, archive_format, archive_root, archive_uri, pack, unpack
from skillwire.skill.entry import digest_of
from trees import files_of, skill_md, small_tree

if TYPE_CHECKING:
    from pathlib import Path

FORMS: tuple[ArchiveFormat, ...] = get_args(ArchiveFormat)
LONG = "a/" * 40 + "b" * 70  # a plain tar header holds it in two parts
LONGER = "/".join(["folder" * 10] * 5) + "/file.md"
FILES = {
    "SKILL.md": skill_md("packed"),
    "empty": b"",
    "assets/all.bin": bytes(range(256)) * 700,  # more than one stored block
    "references/R\u00e9sum\u00e9 & notes #1?.md": "na\u00efve\n".encode(),
    LONG: b"long",
    LONGER: b"longer",
    "n" * 100: b"as long as it fits",
    "n" * 101: b"one more",
}
# Pinned: whoever changes a byte of what is packed changes every digest that anybody has kept.
GOLDEN = {
    "tar.gz": "sha256:6b9afbc7a9e220ff444eea690dc7a8325177af1ffe49905be693f412e2f3d3d6",
    "zip": "sha256:f018ac57f1a969f7114cdefb3bb2aae8da2ee28e4156409f93da3e3c3cd61a60",
}

every_form = pytest.mark.parametrize("form", FORMS)


@rule("I2")
@every_form
def test_the_bytes_are_the_same_everywhere_and_always(form: ArchiveFormat) -> None:
    """Whatever the machine, the day, the order of files, the versions of Python and zlib."""
    assert digest_of(pack(FILES, form)) == GOLDEN[form]
    assert pack(dict(reversed(FILES.items())), form) == pack(FILES, form)


@rule("I2", "I3")
@every_form
def test_what_is_packed_is_unpacked(form: ArchiveFormat) -> None:
    assert unpack(pack(FILES, form), form) == FILES


@rule("I2", "F6")
@every_form
def test_a_skill_with_odd_names_and_one_from_windows_survive(form: ArchiveFormat) -> None:
    tree = small_tree()
    for skill in ("odd-names", "windows"):
        files = files_of(tree, skill)
        assert unpack(pack(files, form), form) == files


@rule("I2")
def test_nothing_is_compressed_and_nothing_depends_on_a_moment() -> None:
    """Stored members of 1980; a gzip file without a time."""
    with zipfile.ZipFile(BytesIO(pack(FILES, "zip"))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == sorted(FILES)
        for member in archive.infolist():
            assert (member.compress_type, member.date_time) == (zipfile.ZIP_STORED, (1980, 1, 1, 0, 0, 0))
            assert (member.create_system, member.external_attr >> 16) == (3, 0o100644)
    data = pack(FILES, "tar.gz")
    assert data[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    assert len(data) > len(gzip.decompress(data))


@rule("I2")
def test_pythons_own_libraries_read_it() -> None:
    """Names, bytes, and a mode that makes a readable file."""
    with tarfile.open(fileobj=BytesIO(pack(FILES, "tar.gz")), mode="r:gz") as archive:
        members = archive.getmembers()
        assert [member.name for member in members] == sorted(FILES)
        assert {(member.mode, member.uid, member.gid, member.mtime, member.uname) for member in members} == {
            (0o644, 0, 0, 0, "")
        }
        assert all(archive.extractfile(member).read() == FILES[member.name] for member in members)  # pyright: ignore
    with zipfile.ZipFile(BytesIO(pack(FILES, "zip"))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == FILES


@rule("I2")
@pytest.mark.parametrize(
    ("form", "words"), [("tar.gz", ["tar", "-xzf"]), ("zip", ["unzip", "-q"])], ids=["tar", "unzip"]
)
def test_the_systems_own_tools_read_it(form: ArchiveFormat, words: list[str], tmp_path: Path) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"there is no {words[0]} here")
    archive = tmp_path / f"skill.{form}"
    archive.write_bytes(pack(FILES, form))
    out = tmp_path / "out"
    out.mkdir()
    subprocess.run(
        [*words, str(archive)], cwd=out, check=True, timeout=60, env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
    )
    assert {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()} == FILES


@rule("I3")
@pytest.mark.parametrize(
    "name", ["../x", "C:x", "./a", "a/", "", "x/" * 64 + "y"], ids=lambda name: ascii(name[:8])
)
def test_a_name_that_nobody_would_unpack_is_refused(name: str) -> None:
    with pytest.raises(FormatError) as caught:
        pack({"SKILL.md": b"", name: b""}, "zip")
    assert (caught.value.reference, caught.value.rule) == ("archive-refused", "I3")


@rule("B5")
def test_names_that_collide_are_refused() -> None:
    with pytest.raises(FormatError) as caught:
        pack({"SKILL.md": b"", "Docs/a": b"", "docs/b": b""}, "zip")
    assert caught.value.rule == "B5"


@rule("I2")
def test_without_a_skill_md_there_is_nothing_to_pack() -> None:
    with pytest.raises(FormatError) as caught:
        pack({"README.md": b""}, "zip")
    assert (caught.value.reference, caught.value.rule) == ("archive-refused", "I2")


LIMITS = {
    "members": replace(DEFAULT_LIMITS, max_resources=2),
    "bytes-of-the-files": replace(DEFAULT_LIMITS, max_archive_bytes=299),
    "bytes-of-the-archive": replace(DEFAULT_LIMITS, max_archive_bytes=320),
    "bytes-of-the-skill": replace(DEFAULT_LIMITS, max_skill_bytes=299),
}


@rule("I3")
@pytest.mark.parametrize("limit", LIMITS)
def test_what_would_be_too_large_to_unpack_is_not_packed(limit: str) -> None:
    with pytest.raises(LimitError) as caught:
        pack({"SKILL.md": bytes(300), "a": b"", "b": b""}, "zip", LIMITS[limit])
    assert caught.value.reference == "archive-too-large"


@rule("I3")
@every_form
def test_what_is_exactly_as_large_as_the_limits_is_packed(form: ArchiveFormat) -> None:
    files = {"SKILL.md": bytes(300), "a": b"", "b": b""}
    size = len(pack(files, form))
    exact = replace(DEFAULT_LIMITS, max_resources=3, max_archive_bytes=size, max_skill_bytes=300)
    assert len(pack(files, form, exact)) == size
    with pytest.raises(LimitError):
        pack(files, form, replace(exact, max_archive_bytes=size - 1))


@rule("I3")
def test_names_too_long_for_our_own_unpacking_are_not_packed() -> None:
    """Headers that describe others are bounded there."""
    with pytest.raises(LimitError):
        pack({"SKILL.md": b"", "/".join(["\u00e9" * 100] * 30): b""}, "tar.gz")
    many = {f"{'n' * 2000}{number:05}": b"" for number in range(130)}
    with pytest.raises(LimitError):
        pack({"SKILL.md": b"", **many}, "tar.gz")


@rule("I3")
def test_zips_inside_count_as_members_because_unpacking_counts_them() -> None:
    inside = {"SKILL.md": b"", "inner.zip": b"PK\x01\x02" * 10}
    assert unpack(pack(inside, "zip"), "zip") == inside
    with pytest.raises(LimitError):
        pack(inside, "zip", replace(DEFAULT_LIMITS, max_resources=11))


@rule("I2")
@every_form
def test_an_archive_stands_beside_its_skill(form: ArchiveFormat) -> None:
    """And format and skill are found from its URI."""
    uri = archive_uri("acme/re funds", form)
    assert uri == f"skill://acme/re%20funds.{form}"
    assert (archive_format(uri, None), archive_root(uri)) == (form, "skill://acme/re%20funds")
