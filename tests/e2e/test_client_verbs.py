"""The verbs that look at a TARGET, on folders and on real servers: what they print, write and return."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e.installing import serving, serving_dynamic
from rules import rule
from skillwire.cli.main import run
from starting import python_command, skillwire_command
from trees import SMALL_TREE_SKILLS, files_of, skill_md, small_tree, write_tree

HERE = Path(__file__).parent
LYING = str(HERE / "lying_server.py")
REFUNDS = "acme/billing/refunds"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of the person who runs the tests, and modules of the tests for the servers we start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", small_tree())


def configured(path: Path, servers: dict[str, Any], key: str = "mcpServers") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({key: servers}))
    return path


def lying_entry() -> dict[str, Any]:
    command, *words = python_command()
    return {"command": command, "args": [*words, LYING], "env": {"PYTHONPATH": str(HERE.parent)}}


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return json.loads(capsys.readouterr().out)


def test_a_folder_and_its_server_list_the_same(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(root), "--json"]) == 0
    of_folder = document(capsys)
    assert run(["list", "--json", "--", *serving(root)]) == 0
    assert document(capsys) == of_folder
    assert [skill["uri"] for skill in of_folder["skills"]] == [
        f"skill://{path}/SKILL.md" for path in SMALL_TREE_SKILLS
    ]
    assert not any(skill["notPromised"] for skill in of_folder["skills"])


def test_a_listing_in_a_pipe_has_one_line_per_skill(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", str(root)]) == 0
    out, err = capsys.readouterr()
    assert [line.split("\t")[0] for line in out.splitlines()] == SMALL_TREE_SKILLS
    assert err.startswith("6 ")


@pytest.mark.parametrize(
    "word",
    [
        pytest.param("refunds", id="name"),
        pytest.param(REFUNDS, id="path"),
        pytest.param(f"skill://{REFUNDS}/SKILL.md", id="uri"),
        pytest.param(f"skill://{REFUNDS}/", id="root"),
    ],
)
def test_a_skill_is_found_by_name_path_or_uri(root: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(root), word, "--json"]) == 0
    shown = document(capsys)
    assert shown["uri"] == f"skill://{REFUNDS}/SKILL.md"
    assert len(shown["resources"]) == 3
    assert shown["risk"]["tokens"]["loaded"] > 0


def test_an_ambiguous_name_lists_the_candidates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skill = small_tree()["flat/SKILL.md"]
    write_tree(tmp_path / "twice", {"a/flat/SKILL.md": skill, "b/flat/SKILL.md": skill})
    assert run(["show", str(tmp_path / "twice"), "flat"]) == 2
    err = capsys.readouterr().err
    assert "skill://a/flat/SKILL.md" in err
    assert "skill://b/flat/SKILL.md" in err
    assert "[skill-ambiguous]" in err


def test_an_unknown_skill_gets_a_suggestion(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", str(root), "refund"]) == 2
    err = capsys.readouterr().err
    assert "[skill-unknown]" in err
    assert "refunds" in err


@rule("G1", "L2")
def test_an_unlisted_skill_is_found_by_its_path(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", REFUNDS, "--json", "--", *serving(root), "--unlisted", "acme/*"]) == 0
    assert document(capsys)["frontmatter"]["name"] == "refunds"


@rule("R2", "V1")
def test_a_path_may_begin_with_the_name_of_a_skill(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["read", str(root), f"{REFUNDS}/references/limits.csv"]) == 0
    whole = capsys.readouterr().out
    assert run(["read", str(root), "refunds/references/limits.csv"]) == 0
    assert capsys.readouterr().out == whole
    assert run(["show", str(root), "refunds/references"]) == 0
    assert "limits.csv" in capsys.readouterr().out
    assert run(["read", str(root), "refunds/nothing"]) == 2
    assert f"skillwire list --tree {root}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["false 'a b'", "cat -"], ids=["ends", "is-no-server"])
def test_a_command_that_is_no_server_can_be_run_to_see_why(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", "--", *shlex.split(command)]) == 2
    assert f": {command}\n" in capsys.readouterr().err
    assert run(["origins", "add", "mine", "--state", str(tmp_path), "--", *shlex.split(command)]) == 2
    assert f": {command}\n" in capsys.readouterr().err


def test_the_arguments_of_a_configured_server_are_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured(tmp_path / "mine.json", {"x": {"command": "false", "args": ["a-secret"]}})
    assert run(["list", "x", "--config", str(config)]) == 2
    err = capsys.readouterr().err
    assert ": false\n" in err
    assert "a-secret" not in err


def test_reading_writes_the_very_bytes(root: Path) -> None:
    for path in ("odd-names/assets/100%.bin", "odd-names/assets/empty"):
        command = [*skillwire_command(), "read", path, "--", *serving(root)]
        done = subprocess.run(command, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout == small_tree()[path]


def test_reading_as_json_says_what_was_verified(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["read", str(root), "odd-names/assets/100%.bin", "--json"]) == 0
    read = document(capsys)
    assert (read["size"], read["verified"]) == (256, True)
    assert "base64" in read


@rule("D1")
def test_a_directory_is_listed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = "acme/billing/refunds/templates"
    for words in ([str(root), folder], [folder, "--", *serving(root)]):
        assert run(["show", *words]) == 0
        files = [path for path in files_of(small_tree(), "acme/billing/refunds") if path.startswith("templates/")]
        shown = [line.split("\t")[0] for line in capsys.readouterr().out.splitlines()]
        assert shown == sorted(path.removeprefix("templates/") for path in files)
    assert run(["show", str(root), "acme/billing/none"]) == 2
    assert "[skill-unknown]" in capsys.readouterr().err


@rule("V1", "V4")
def test_pulling_writes_the_whole_skill(root: Path, tmp_path: Path) -> None:
    """Nested skills come with the one around them."""
    assert run(["add", "release", "--to", str(tmp_path / "copied"), "--", *serving(root)]) == 0
    copied = tmp_path / "copied" / "release"
    files = {str(path.relative_to(copied)): path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    assert files == files_of(small_tree(), "acme/release")
    assert os.listdir(tmp_path / "copied") == ["release"]


def test_pulling_does_not_touch_what_is_there(root: Path, tmp_path: Path) -> None:
    """A folder of that name stays as it is, unless it is to be replaced; then it is replaced as a whole."""
    mine = tmp_path / "copied" / "flat" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    assert run(["add", str(root), "flat", "--to", str(tmp_path / "copied")]) == 2
    assert mine.read_text() == "mine"
    assert run(["add", str(root), "flat", "--to", str(tmp_path / "copied"), "--force"]) == 0
    assert os.listdir(mine.parent) == ["SKILL.md"]


@rule("V1")
@rule("Z2")
@pytest.mark.parametrize("folder", [".git/hooks", ".sl", ".venv/lib", "web/node_modules", ".husky", "linked/x"])
def test_pulling_into_folders_that_tools_run_is_refused(
    root: Path, tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also through a link, and with --force."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "linked").symlink_to(".git")
    for words in ([], ["--force"]):
        assert run(["add", str(root), REFUNDS, "--to", str(tmp_path / folder), *words]) == 2
        assert "[folder-forbidden]" in capsys.readouterr().err
    assert list((tmp_path / ".git").iterdir()) == []


@rule("Z2")
def test_a_skill_called_like_such_a_folder_is_not_pulled(root: Path, tmp_path: Path) -> None:
    write_tree(root, {"venv/SKILL.md": skill_md("venv")})
    assert run(["add", str(root), "venv", "--to", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_pulling_a_lie_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Either the whole verified skill or nothing, not even the folder around it."""
    configured(tmp_path / ".mcp.json", {"liar": lying_entry()})
    assert run(["add", "liar", "lying", "--to", str(tmp_path / "copied"), "--yes"]) == 1
    assert "[size-mismatch]" in capsys.readouterr().err
    assert not (tmp_path / "copied").exists()


@rule("V1")
def test_verifying_a_liar_names_the_rule_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configured(tmp_path / ".vscode" / "mcp.json", {"liar": lying_entry()}, "servers")
    assert run(["verify", "liar", "--json", "--yes"]) == 1
    report = document(capsys)
    assert [(lie["rule"], lie["uri"]) for lie in report["failures"]] == [("V1", "skill://team/lying/notes.md")]
    assert report["checked"]["V1"] == 3
    assert report["skills"] == 2


@rule("V1", "V4", "G1", "D1", "E6")
def test_verifying_an_honest_server_checks_everything(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", "--strict", "--", *serving(root)]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert ["SKILL.md has the claimed fields", "6", "ok"] in rows
    assert len(rows) == 6
    assert {row[2] for row in rows} == {"ok"}


@rule("V7")
def test_verifying_says_what_was_not_promised(capsys: pytest.CaptureFixture[str]) -> None:
    """A generated skill passes, and fails where all must be promised."""
    assert run(["verify", "--", *serving_dynamic()]) == 0
    assert "not stated skill://made/SKILL.md" in capsys.readouterr().out
    assert run(["verify", "--strict", "--", *serving_dynamic()]) == 1
    capsys.readouterr()
    assert run(["read", "made/SKILL.md", "--", *serving_dynamic()]) == 1
    assert "[skill-dynamic]" in capsys.readouterr().err
    assert run(["read", "made/SKILL.md", "--unverified", "--json", "--", *serving_dynamic()]) == 0
    assert document(capsys)["verified"] is False


def test_a_difference_is_shown_by_skill_file_and_line(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = small_tree()
    tree["flat/SKILL.md"] = tree["flat/SKILL.md"].replace(b"Do it.", b"Do it twice.")
    tree["flat/more.md"] = b"more\n"
    tree["odd-names/assets/100%.bin"] = b"\xff\xfe other"
    del tree["windows/SKILL.md"]
    other = write_tree(tmp_path / "other", tree)
    assert run(["diff", str(root), "--", *serving(other)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "~ flat",
        "  ~ SKILL.md",
        "      @@ -4,3 +4,3 @@",
        "       ---",
        "       ",
        "      -Do it.",
        "      +Do it twice.",
        "  + more.md",
        "~ odd-names",
        "  ~ assets/100%.bin  (not text)",
        "- windows",
    ]


def test_a_saved_listing_is_a_moment_to_compare_with(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", str(root), "--json"]) == 0
    (tmp_path / "before.json").write_text(capsys.readouterr().out)
    assert run(["diff", "before.json", str(root)]) == 0
    (root / "flat" / "SKILL.md").write_bytes(small_tree()["flat/SKILL.md"] + b"More.\n")
    capsys.readouterr()
    assert run(["diff", "before.json", str(root), "--json"]) == 1
    [changed] = document(capsys)["skills"]
    assert (changed["path"], changed["kind"]) == ("flat", "changed")
    assert changed["files"][0]["note"] == "not read: file-unknown"


def test_two_commands_are_compared(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["diff", "--", *serving(root), "--", *serving(root)]) == 0
    assert capsys.readouterr().out == ""


def test_a_label_is_looked_up_where_it_is_said(
    tmp_path: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *words = serving(root)
    config = configured(tmp_path / "elsewhere" / "mine.json", {"skills": {"command": command, "args": words}})
    assert run(["list", "skills", "--config", str(config)]) == 0  # although there is a folder of that name
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert run(["list", "other", "--config", str(config)]) == 2
    assert "[server-unknown]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param(["./nothing"], "target-unknown", id="no-folder"),
        pytest.param(["nobody"], "server-unknown", id="no-label"),
        pytest.param(["http://127.0.0.1:1/mcp"], "connection-lost", id="no-server"),
        pytest.param(["ftp://example.com/mcp"], "url-invalid", id="no-http"),
        pytest.param(
            ["http://127.0.0.1:1/mcp", "--header", "secret-without-colon"], "header-invalid", id="no-header"
        ),
        pytest.param(["--"], "command-missing", id="no-command"),
        pytest.param(["--", "no-such-command-anywhere"], "command-failed", id="unknown-command"),
    ],
)
def test_what_cannot_be_reached_is_said_in_a_line(
    words: list[str], reference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["list", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"[{reference}]" in err
    assert "Traceback" not in err
    assert "secret" not in err


def test_a_url_is_opened_without_what_reads_folders() -> None:
    code = (
        "import sys; from skillwire.cli.main import run; run(['list', 'http://127.0.0.1:1/mcp']);"
        "print(*[name for name in sys.modules if name.startswith('skillwire.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert "[connection-lost]" in done.stderr
    loaded = {name.removeprefix("skillwire.") for name in done.stdout.split()}
    assert "client.remote" in loaded
    unneeded = {"catalog.archive", "catalog.directory", "catalog.git", "catalog.union", "web"}
    assert loaded & {*unneeded, "server.skills", "host.host", "skill.markdown"} == set()


def test_the_last_output_of_a_server_that_ends_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list", "--", "sh", "-c", "echo cannot read my settings >&2; exit 1"]) == 2
    err = capsys.readouterr().err
    assert "[connection-lost]" in err
    assert "cannot read my settings" in err


def test_a_port_of_this_machine_is_a_server_and_its_path_need_not_be_written(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", str(root), "--http", "0", "--json"]
    with subprocess.Popen([*skillwire_command(), *words], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            ready = "".join(iter(server.stdout.readline, "}\n"))
            url = str(json.loads(f"{ready}}}")["url"])
            place = url.removeprefix("http://").removesuffix("/mcp")
            assert run(["list", place]) == 0
            assert run(["conform", "server", place, "--rule", "K1", "--era", "modern"]) == 0
            assert run(["origins", "add", "here", place]) == 0
            capsys.readouterr()
            assert run(["origins", "--json"]) == 0
            assert [origin["where"] for origin in document(capsys)["origins"]] == [url]
            assert run(["approve", "no-such-skill"]) == 2
            assert "skillwire list --origins" in capsys.readouterr().err
        finally:
            server.terminate()


def test_without_origins_the_hint_says_how_to_add_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["approve", "refunds"]) == 2
    assert "skillwire origins add" in capsys.readouterr().err
