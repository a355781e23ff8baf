"""A command that is started elsewhere means what it meant where it was typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillwire.install.servers import portable_words

if TYPE_CHECKING:
    from pathlib import Path

EXISTING = ("skills", "serve", "acme", "servers.json", "conf/policy.toml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in EXISTING:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "whole"),
    [
        (".venv/bin/skillwire serve skills", "@/.venv/bin/skillwire serve @/skills"),
        ("bin/other skills servers.json", "@/bin/other skills @/servers.json"),
        ("./other ../up ./missing missing", "@/other ^/up @/missing missing"),
        ("python -m skillwire serve skills", "python -m skillwire serve @/skills"),
        ("skillwire gateway --config=servers.json", "skillwire gateway --config=@/servers.json"),
        ("other --policy=conf/policy.toml --x=skills", "other --policy=@/conf/policy.toml --x=skills"),
        ("other --x= --y=a=b --url=http://a/b -", "other --x= --y=a=b --url=http://a/b -"),
        ("skillwire serve skills --prefix acme", "skillwire serve @/skills --prefix acme"),
        ("skillwire serve skills --name=skills", "skillwire serve @/skills --name=skills"),
        ("skillwire serve .", "skillwire serve @"),
        ("/usr/bin/../bin/x /usr/../etc", "/usr/bin/../bin/x /usr/../etc"),
    ],
    ids=[
        "program",
        "other-program",
        "dots",
        "module",
        "option",
        "option-of-another",
        "no-path",
        "prefix",
        "name",
        "this-folder",
        "absolute",
    ],
)
def test_words_that_name_a_file_of_the_folder_become_absolute(typed: str, whole: str, folder: Path) -> None:
    expected = [word.replace("@", str(folder)).replace("^", str(folder.parent)) for word in whole.split()]
    assert portable_words(typed.split(), folder) == expected


def test_an_empty_word_and_no_words_stay(folder: Path) -> None:
    assert portable_words(["skillwire", "serve", "--prefix", "", ""], folder) == [
        "skillwire", "serve", "--prefix", "", "",
    ]  # fmt: skip
    assert portable_words([], folder) == []
