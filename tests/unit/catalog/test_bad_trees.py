"""Bad input on disk: one clear diagnostic each, bounded work, and the rest of the catalog is served (F7, B1)."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import DirectoryCatalog, Limits, check_path
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def served(catalog: DirectoryCatalog) -> list[str]:
    return [path for path, _ in catalog.snapshot().records()]


def problems(catalog: DirectoryCatalog) -> list[tuple[str, str]]:
    return [(problem.reference, problem.file) for problem in catalog.snapshot().problems()]


def load(root: Path, **limits: int) -> DirectoryCatalog:
    catalog = DirectoryCatalog(root, limits=Limits(**limits))
    catalog.load()
    return catalog


def huge(folder: Path) -> None:
    with (folder / "SKILL.md").open("wb") as file:
        file.write(skill_md("bad"))
        file.truncate(1 << 30)


def bomb(folder: Path) -> None:
    lines = ["---", "name: bad", "description: boom", "a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    (folder / "SKILL.md").write_text("\n".join([*lines, "---", ""]))


def write(data: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        (folder / "SKILL.md").write_bytes(data)

    return make


def pipe_as_skill_md(folder: Path) -> None:
    os.mkfifo(folder / "SKILL.md")


BAD = {
    "encoding-invalid": write(b"---\nname: bad\ndescription: x\n---\n\xff\xfe"),
    "frontmatter-missing": write(b"# Just Markdown\n"),
    "frontmatter-unclosed": write(b"---\nname: bad\n"),
    "frontmatter-empty": write(b"---\n---\n"),
    "frontmatter-not-mapping": write(b"---\n- a\n---\n"),
    "yaml-alias": bomb,
    "yaml-duplicate-key": write(b"---\nname: bad\nname: bad\ndescription: x\n---\n"),
    "yaml-invalid": write(b"---\nname: bad\ndescription: a: b\n---\n"),
    "name-missing": write(b"---\ndescription: x\n---\n"),
    "name-invalid": write(b"---\nname: Bad_Name\ndescription: x\n---\n"),
    "name-mismatch": write(b"---\nname: other\ndescription: x\n---\n"),
    "description-missing": write(b"---\nname: bad\n---\n"),
    "too-large": huge,
    "skill-file-kind": pipe_as_skill_md,
}


@rule("F1", "F2", "F3", "F4", "U3", "B1", "F7")
def test_each_bad_skill_gives_one_diagnostic_and_spoils_no_other(tmp_path: Path) -> None:
    write_tree(tmp_path, {"good/SKILL.md": skill_md("good")})
    for reference, make in BAD.items():
        (tmp_path / reference / "bad").mkdir(parents=True)
        make(tmp_path / reference / "bad")
    catalog = load(tmp_path)
    assert served(catalog) == ["good"]
    found = catalog.snapshot().problems()
    assert sorted((problem.file.split("/")[0], problem.reference) for problem in found) == [
        (reference, reference) for reference in sorted(BAD)
    ]
    assert all(problem.hint for problem in found)
    assert [problem for problem in found if str(tmp_path) in problem.message + problem.hint] == []


@rule("F3", "F7")
def test_minor_violations_are_served_and_reported(tmp_path: Path) -> None:
    """Public skills are full of it."""
    extra = "license: 3\nmetadata: {version: 1}\nallowed-tools: [Read]\ncompatibility: ''\n"
    write_tree(
        tmp_path, {"a/SKILL.md": skill_md("a", "x" * 1025, extra=extra), "b/SKILL.md": skill_md("b", "' '")}
    )
    catalog = load(tmp_path)
    assert served(catalog) == ["a", "b"]
    assert {reference for reference, _ in problems(catalog)} == {
        "description-too-long",
        "description-blank",
        "license-invalid",
        "metadata-invalid",
        "allowed-tools-invalid",
        "compatibility-invalid",
    }


@rule("B1")
def test_pipes_devices_and_sockets_are_left_out_without_blocking(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a")})
    os.mkfifo(tmp_path / "a/pipe")
    listener = socket.socket(socket.AF_UNIX)
    short = Path(tempfile.mkdtemp()) / "s"
    listener.bind(str(short))
    short.rename(tmp_path / "a/socket")
    short.parent.rmdir()
    listener.close()
    if os.geteuid() == 0:
        os.mknod(tmp_path / "a/zero", 0o600 | 0o020000, os.makedev(1, 5))
    catalog = load(tmp_path)
    assert served(catalog) == ["a"]
    assert {reference for reference, _ in problems(catalog)} == {"special-file"}
    record = catalog.snapshot().record("a")
    assert record is not None
    assert list(record.files) == ["SKILL.md"]


@pytest.fixture
def unprivileged_root() -> Iterator[Path]:
    """A folder that an ordinary user can reach; the process is that user inside the test."""
    root = Path(tempfile.mkdtemp(dir="/tmp"))
    root.chmod(0o755)
    was_root = os.geteuid() == 0
    yield root
    if was_root:
        os.seteuid(0)
    subprocess.run(["chmod", "-R", "u+rwx", str(root)], check=True)
    subprocess.run(["rm", "-rf", str(root)], check=True)


def become_ordinary() -> None:
    if os.geteuid() == 0:
        os.seteuid(65534)


@rule("F7", "R2")
def test_a_folder_or_file_without_permission_refuses_its_skill_only(unprivileged_root: Path) -> None:
    """A skill is served whole or not at all."""
    root = unprivileged_root
    write_tree(
        root,
        {
            "good/SKILL.md": skill_md("good"),
            "half/SKILL.md": skill_md("half"),
            "half/refs/a.md": b"a",
            "locked/x/SKILL.md": skill_md("x"),
            "unread/SKILL.md": skill_md("unread"),
        },
    )
    for name in ("half/refs", "locked"):
        (root / name).chmod(0)
    (root / "unread/SKILL.md").chmod(0)
    become_ordinary()
    catalog = load(root)
    assert served(catalog) == ["good"]
    assert problems(catalog) == [
        ("unreadable", "locked"),
        ("unreadable", "half/refs"),
        ("unreadable", "unread/SKILL.md"),
    ]


@rule("R2")
def test_a_file_that_vanishes_during_the_scan_is_told_and_the_rest_served(tmp_path: Path) -> None:
    """The folder was listed, then the file went away."""
    write_tree(
        tmp_path, {"outer/SKILL.md": skill_md("outer"), "outer/a/SKILL.md": skill_md("a"), "outer/z.txt": b"z"}
    )
    catalog = DirectoryCatalog(tmp_path)
    catalog.load(lambda count: (tmp_path / "outer/z.txt").unlink() if count == 1 else None)
    assert served(catalog) == ["outer", "outer/a"]
    assert problems(catalog) == [("vanished", "outer/z.txt")]
    catalog.load()
    assert problems(catalog) == []


@rule("B1")
def test_a_tree_is_read_down_to_the_deepest_folder_allowed(tmp_path: Path) -> None:
    write_tree(tmp_path, {"1/2/three/SKILL.md": skill_md("three"), "1/2/3/four/SKILL.md": skill_md("four")})
    catalog = load(tmp_path, max_depth=3)
    assert served(catalog) == ["1/2/three"]
    assert problems(catalog) == [("too-deep", "1/2/3/four")]


@rule("B1")
@pytest.mark.slow
def test_a_path_longer_than_the_system_allows_costs_one_diagnostic(tmp_path: Path) -> None:
    write_tree(tmp_path, {"good/SKILL.md": skill_md("good")})
    try:
        make_deep(tmp_path, 2100)  # 4096 characters are allowed
        catalog = load(tmp_path)
        assert served(catalog) == ["good"]
        assert [reference for reference, _ in problems(catalog)] == ["too-deep"]
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def make_deep(root: Path, depth: int) -> None:
    here = os.open(root, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


@rule("U7")
@pytest.mark.parametrize(
    "name", [b"a\x1b[31mb", b"a\\b", b"bad\xff\xfename"], ids=["control", "backslash", "not-utf-8"]
)
def test_a_name_that_no_uri_can_carry_refuses_its_skill(tmp_path: Path, name: bytes) -> None:
    """Control characters, backslashes, bytes that are not UTF-8."""
    write_tree(tmp_path, {"good/SKILL.md": skill_md("good"), "bad/SKILL.md": skill_md("bad")})
    Path(os.fsdecode(os.fsencode(tmp_path / "bad") + b"/" + name)).write_bytes(b"x")
    catalog = load(tmp_path)
    assert served(catalog) == ["good"]
    problem = catalog.snapshot().problems()[0]
    assert problem.reference == "file-name-invalid"
    assert (problem.file + problem.message).isprintable()


@rule("B5")
@pytest.mark.parametrize(
    "names",
    [("Notes.md", "notes.md"), ("caf\u00e9.md", "cafe\u0301.md"), ("STRASSE.md", "stra\u00dfe.md"), ("x", "X/y")],
    ids=["case", "normal-form", "case-fold", "folder"],
)
def test_names_that_collide_on_another_disk_refuse_the_skill(tmp_path: Path, names: tuple[str, str]) -> None:
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a"), **{f"a/{name}": b"x" for name in names}})
    catalog = load(tmp_path)
    assert served(catalog) == []
    assert [reference for reference, _ in problems(catalog)] == ["path-collision"]


@rule("B5", "F2")
def test_skills_whose_folders_differ_only_in_case_are_both_refused(tmp_path: Path) -> None:
    write_tree(tmp_path, {"Foo/SKILL.md": skill_md("foo"), "foo/SKILL.md": skill_md("foo")})
    catalog = load(tmp_path)
    assert served(catalog) == []
    assert [reference for reference, _ in problems(catalog)].count("path-collision") == 2


@rule("F1")
def test_skill_md_in_another_case_is_pointed_out(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/skill.md": skill_md("a"), "b/Skill.MD": skill_md("b"), "c/SKILL.md": skill_md("c")})
    catalog = load(tmp_path)
    assert served(catalog) == ["c"]
    assert problems(catalog) == [("skill-file-case", "a/skill.md"), ("skill-file-case", "b/Skill.MD")]


@rule("E6")
def test_a_skill_over_the_promised_size_is_served_with_a_warning(tmp_path: Path) -> None:
    write_tree(tmp_path, {"a/SKILL.md": skill_md("a"), **{f"a/f{n}": b"x" for n in range(3)}})
    catalog = load(tmp_path, skill_resources=3)
    assert served(catalog) == ["a"]
    assert problems(catalog) == [("over-limit", "a")]


@rule("B1", "E6")
@pytest.mark.parametrize(
    "bound", [{"max_resources": 5}, {"max_skill_bytes": 900}], ids=["too many files", "too many bytes"]
)
def test_a_skill_over_our_own_bounds_is_refused_and_a_nested_one_is_not(
    bound: dict[str, int], tmp_path: Path
) -> None:
    """No single file is too large."""
    write_tree(
        tmp_path,
        {
            "big/SKILL.md": skill_md("big"),
            **{f"big/f{n}": b"x" * 100 for n in range(9)},
            "big/nested/SKILL.md": skill_md("nested"),
        },
    )
    catalog = load(tmp_path, **bound)
    assert served(catalog) == ["big/nested"]
    assert problems(catalog) == [("too-large", "big")]


@rule("B1")
def test_a_tree_with_too_many_entries_is_read_up_to_the_bound(tmp_path: Path) -> None:
    write_tree(tmp_path, {f"s{n}/SKILL.md": skill_md(f"s{n}") for n in range(9)})
    catalog = load(tmp_path, max_tree_entries=12)
    assert 0 < len(served(catalog)) < 9
    assert "too-many-entries" in {reference for reference, _ in problems(catalog)}


@rule("F7")
def test_checking_bad_trees_never_raises(tmp_path: Path) -> None:
    """Check goes through all of it at once."""
    for name, make in BAD.items():
        (tmp_path / name).mkdir()
        make(tmp_path / name)
    report = check_path(tmp_path)
    assert report.errors >= len(BAD)
