"""I2, I3: packing and unpacking are each other's opposite, whatever the names, the bytes and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from hypothesis import given
from hypothesis import strategies as st

from property.budget import FEWER
from property.test_archive_properties import PATH, trees
from rules import rule
from skillwire.errors import FormatError, LimitError
from skillwire.skill.archive import ArchiveFormat, pack, unpack

if TYPE_CHECKING:
    from random import Random

FORMS = st.sampled_from(get_args(ArchiveFormat))


@rule("I2")
@FEWER
@given(trees(), FORMS)
def test_what_is_packed_comes_out_as_it_was(files: dict[str, bytes], form: ArchiveFormat) -> None:
    assert unpack(pack(files, form), form) == files


@rule("I2")
@FEWER
@given(trees(), FORMS, st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(files: dict[str, bytes], form: ArchiveFormat, random: Random) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)
    assert pack({name: files[name] for name in shuffled}, form) == pack(files, form)


@rule("I3")
@FEWER
@given(st.dictionaries(PATH | st.text(max_size=20), st.binary(max_size=50), max_size=6), FORMS)
def test_whatever_is_packed_can_be_unpacked(files: dict[str, bytes], form: ArchiveFormat) -> None:
    """A name is refused by both sides or by none."""
    files = {"SKILL.md": b"", **files}
    try:
        data = pack(files, form)
    except (FormatError, LimitError):
        return
    assert unpack(data, form) == files
