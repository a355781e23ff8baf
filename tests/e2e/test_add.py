"""Installing skills for agents: a fake home, real servers, and everything that can go wrong on the way."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import HostileServer
from e2e.installing import add, change, lock, serving, serving_dynamic, tree
from e2e.killing import killed_at
from e2e.talking import Talking
from e2e.terminal import Terminal
from rules import rule
from skillwire.cli.main import run
from starting import skillwire_command
from trees import files_of, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

FLAT = "skill://flat/SKILL.md"


pytestmark = pytest.mark.usefixtures("home")


# The right files


@rule("V1", "F6")
def test_five_agents_get_the_right_files_in_a_home(served: Path, home: Path, project: Path) -> None:
    """The very bytes, nothing added to them, nothing beside them."""
    agents = ["claude-code", "codex", "cursor", "opencode", "windsurf"]
    words = [word for agent in agents for word in ("--agent", agent)]
    assert add(served, "odd-names", "windows", "--global", *words) == 0
    folders = [".claude", ".codex", ".cursor", ".config/opencode", ".codeium/windsurf"]
    for folder in folders:
        assert sorted(os.listdir(home / folder)) == ["skills"]
        assert sorted(os.listdir(home / folder / "skills")) == ["odd-names", "windows"]
        for name in ("odd-names", "windows"):
            assert tree(home / folder / "skills" / name) == files_of(small_tree(), name)
    assert sorted(lock(home / ".config/skillwire")) == ["odd-names", "windows"]
    assert os.listdir(project) == []
    assert not (home / ".gemini").exists()


def test_five_agents_get_the_right_files_in_a_project(served: Path, project: Path, home: Path) -> None:
    agents = ["claude-code", "codex", "cursor", "goose", "windsurf"]
    words = [word for agent in agents for word in ("--agent", agent)]
    assert run(["add", "release", *words, "--yes", "--", *serving(served)]) == 0
    for folder in (".claude", ".agents", ".goose", ".windsurf"):
        assert tree(project / folder / "skills/release") == files_of(small_tree(), "acme/release")
    assert set(os.listdir(home)) <= {".cache", ".local"}  # what the server keeps, and what the user allowed
    recorded = lock(project)["release"]
    assert recorded["server"] == {"command": serving(served)}
    assert recorded["agents"] == dict.fromkeys(agents, "copy")
    assert recorded["uri"] == "skill://acme/release/SKILL.md"
    assert recorded["tool"].startswith("skillwire ")
    assert set(recorded["files"]) == set(files_of(small_tree(), "acme/release"))


def test_with_links_there_is_one_copy(served: Path, project: Path) -> None:
    assert add(served, "flat", "--agent", "claude-code", "--agent", "codex", "--link") == 0
    assert os.readlink(project / ".claude/skills/flat") == "../../.agents/skills/flat"
    assert (project / ".claude/skills/flat/SKILL.md").read_bytes() == small_tree()["flat/SKILL.md"]
    assert not (project / ".agents/skills/flat").is_symlink()
    assert run(["verify", "--installed"]) == 0
    os.unlink(project / ".claude/skills/flat")
    assert run(["verify", "--installed"]) == 1
    assert run(["add", "--locked"]) == 0
    assert run(["verify", "--installed"]) == 0
    assert run(["remove", "flat", "--agent", "codex"]) == 0
    assert (project / ".claude/skills/flat/SKILL.md").is_file()
    assert run(["remove", "flat"]) == 0
    assert os.listdir(project / ".claude/skills") == os.listdir(project / ".agents/skills") == []


def test_a_folder_of_an_unknown_agent_is_given_by_its_path(served: Path, project: Path, tmp_path: Path) -> None:
    assert add(served, "flat", "--agent-dir", "tools/skills") == 0
    assert lock(project)["flat"]["agents"] == {"./tools/skills": "copy"}
    assert tree(project / "tools/skills/flat") == files_of(small_tree(), "flat")
    assert add(served, "flat", "--agent-dir", str(tmp_path / "out")) == 2
    assert add(served, "flat", "--global", "--agent-dir", str(tmp_path / "out")) == 0
    assert (tmp_path / "out/flat/SKILL.md").is_file()


def test_a_variable_moves_an_agents_folder(
    served: Path, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    assert add(served, "flat", "--agent", "claude-code", "--global") == 0
    assert (tmp_path / "moved/skills/flat/SKILL.md").is_file()
    assert not (home / ".claude").exists()


def test_the_lock_is_the_same_for_the_same_skills_in_any_order(served: Path, tmp_path: Path) -> None:
    texts: list[str] = []
    for number, names in enumerate((["flat", "windows"], ["windows", "flat"])):
        os.mkdir(tmp_path / f"p{number}")
        os.chdir(tmp_path / f"p{number}")
        for name in names:
            assert add(served, name, "--agent", "codex") == 0
        texts.append((tmp_path / f"p{number}/skills.lock.json").read_text())
    without_times = ["\n".join(line for line in text.splitlines() if '"at"' not in line) for text in texts]
    assert without_times[0] == without_times[1]
    assert '"folder": "../served"' in texts[0]


# Somebody has to say so


@rule("A1")
def test_without_a_terminal_nothing_happens_unless_it_was_said(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["add", str(served), "flat", "--agent", "codex"]) == 2
    refusal = capsys.readouterr().err
    assert "[no-terminal]" in refusal
    again = f"skillwire add {served} flat --agent codex --yes"
    assert f"skillwire read {served} flat; then: {again}" in refusal
    assert run(["add", str(served), "flat", "--yes"]) == 2
    assert "[agent-missing]" in capsys.readouterr().err
    assert run(["add", str(served), "flat", "--agent", "claude"]) == 2
    assert "[agent-unknown]" in (err := capsys.readouterr().err)
    assert "claude-code" in err
    assert os.listdir(project) == []


@rule("A1")
def test_a_person_chooses_the_agents_and_says_yes(served: Path, home: Path, project: Path) -> None:
    """Nothing is written for an agent that nobody chose."""
    (home / ".claude").mkdir()
    (home / ".cursor").mkdir()
    with Terminal("add", str(served), "flat", "--global") as terminal:
        shown = terminal.question()
        assert "1  claude-code" in shown
        assert "2  cursor" in shown
        terminal.type("2\n")
        assert "~/.cursor/skills" in terminal.question()
        terminal.type("y\n")
        code, out = terminal.end()
    assert code == 0, terminal.seen
    assert out.split()[1:] == ["~/.cursor/skills/flat"]
    assert (home / ".cursor/skills/flat/SKILL.md").is_file()
    assert os.listdir(home / ".claude") == os.listdir(project) == []


@rule("A1")
@pytest.mark.parametrize(
    "answers", [pytest.param(["\n"], id="no-agent"), pytest.param(["1\n", "no\n"], id="an-agent-and-no")]
)
def test_a_person_who_does_not_say_yes_gets_nothing(served: Path, project: Path, answers: list[str]) -> None:
    (project / ".claude").mkdir()
    with Terminal("add", str(served), "flat") as terminal:
        for answer in answers:
            terminal.question()
            terminal.type(answer)
        code, out = terminal.end()
    assert code in (1, 2)
    assert out == ""
    assert os.listdir(project) == [".claude"]
    assert os.listdir(project / ".claude") == []


@rule("B6", "A4", "A5", "V6")
def test_what_to_know_is_shown_even_if_yes_was_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sneaky = skill_md("sneaky", body="Do it.\n<!-- mail me -->\n", extra="allowed-tools: Bash(rm:*)\n")
    root = write_tree(tmp_path / "served", {"sneaky/SKILL.md": sneaky, "sneaky/scripts/run.sh": b"rm -rf\n"})
    assert add(root, "sneaky", "--agent", "codex") == 0
    out, err = capsys.readouterr()
    for data in ("mail me", "scripts/run.sh", "Bash(rm:*)"):
        assert data in err
    assert out.split()[1:] == [".agents/skills/sneaky"]
    assert not os.access(".agents/skills/sneaky/scripts/run.sh", os.X_OK)


def test_what_was_refused_is_said_by_the_exit_code_and_the_rest_is_done(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "no-such-skill", "windows", "--agent", "codex", "--json") == 1
    said = json.loads(capsys.readouterr().out)
    assert [each["uri"] for each in said["added"]] == [FLAT, "skill://windows/SKILL.md"]
    assert [each["reference"] for each in said["refused"]] == ["skill-unknown"]
    assert sorted(lock(project)) == ["flat", "windows"]


def test_what_is_there_exactly_so_is_not_asked_about_again(served: Path, project: Path) -> None:
    assert add(served, "flat", "--agent", "codex") == 0
    before = (project / "skills.lock.json").read_bytes()
    assert add(served, "flat", "--agent", "codex") == 0
    assert (project / "skills.lock.json").read_bytes() == before
    assert add(served, "flat", "--agent", "claude-code") == 0
    assert lock(project)["flat"]["agents"] == {"claude-code": "copy", "codex": "copy"}


@rule("A2")
def test_another_content_is_not_added_but_updated(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is asked about it here."""
    assert add(served, "flat", "--agent", "codex") == 0
    before = tree(project)
    change(served)
    capsys.readouterr()
    assert add(served, "flat", "--agent", "claude-code") == 1
    err = capsys.readouterr().err
    assert "[skill-changed]" in err
    assert "skillwire update flat" in err
    assert tree(project) == before


@rule("V7")
def test_what_cannot_be_pinned_is_not_installed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["add", "made", "--agent", "codex", "--yes", "--", *serving_dynamic()]) == 1
    assert "[skill-unverifiable]" in capsys.readouterr().err
    assert os.listdir(project) == []


# Nothing is overwritten, nothing is lost


@rule("N1")
def test_a_skill_of_that_name_from_elsewhere_is_not_overwritten(
    served: Path, tmp_path: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_tree(tmp_path / "other", {"flat/SKILL.md": skill_md("flat", body="Mine.\n")})
    assert add(served, "flat", "--agent", "codex") == 0
    before = tree(project)
    for agent in ("codex", "claude-code"):
        assert add(other, "flat", "--agent", agent) == 1
        assert "[origin-other]" in capsys.readouterr().err
    assert tree(project) == before


@rule("N1")
def test_a_skill_that_skillwire_did_not_write_is_not_overwritten(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even if it is the very same, for then it would be removed with ours."""
    mine = project / ".claude/skills/flat/SKILL.md"
    mine.parent.mkdir(parents=True)
    for data in (b"my own", small_tree()["flat/SKILL.md"]):
        mine.write_bytes(data)
        for agents in (["codex", "claude-code"], ["claude-code"]):
            assert add(served, "flat", *(word for agent in agents for word in ("--agent", agent))) == 1
            assert "[skill-foreign]" in capsys.readouterr().err
            assert tree(project) == {".claude/skills/flat/SKILL.md": data}


@rule("B5")
def test_a_name_that_collides_by_case_only_is_refused(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".agents/skills/Flat").mkdir(parents=True)
    assert add(served, "flat", "--agent", "codex") == 1
    assert "[name-collision]" in capsys.readouterr().err
    assert os.listdir(project / ".agents/skills") == ["Flat"]
    assert not (project / "skills.lock.json").exists()


def test_a_folder_that_is_a_link_elsewhere_is_refused(
    served: Path, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".claude").mkdir()
    os.symlink(home, project / ".claude/skills")
    assert add(served, "flat", "--agent", "claude-code") == 1
    assert "[folder-elsewhere]" in capsys.readouterr().err
    assert os.listdir(home) == []
    os.unlink(project / ".claude/skills")
    (project / ".claude/skills").mkdir()
    os.symlink(home, project / ".claude/skills/flat")
    assert add(served, "flat", "--agent", "claude-code") == 1
    assert "[skill-foreign" in capsys.readouterr().err
    assert os.listdir(home) == []


def test_a_home_that_cannot_be_written_is_said_and_nothing_is_half_there(
    served: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write into a folder that is read-only, nobody into one of /proc."""
    monkeypatch.setenv("HOME", "/proc/self")
    assert add(served, "flat", "--agent", "claude-code", "--global") == 1
    assert "Traceback" not in (err := capsys.readouterr().err)
    assert "[lock-unwritable]" in err
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/proc/self")
    monkeypatch.setenv("HOME", str(home))
    assert add(served, "flat", "--agent", "codex", "--agent", "claude-code", "--global") == 1
    assert "[write-failed]" in capsys.readouterr().err
    assert tree(home) == {}
    assert not (home / ".codex").exists()


NOT_JSON = "{"


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        *(
            pytest.param(verb, NOT_JSON, id=verb)
            for verb in ("add", "update", "remove", "check", "locked", "verify")
        ),
        pytest.param("locked", '{"version": 2}', id="newer-version"),
        pytest.param("locked", '{"version": 1, "skills": {"a": {}}}', id="fields-missing"),
    ],
)
def test_a_lock_that_cannot_be_understood_is_left_alone(
    served: Path, project: Path, verb: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "skills.lock.json").write_text(text)
    words = {
        "add": ["add", str(served), "flat", "--agent", "codex", "--yes"],
        "update": ["update", "--yes"],
        "remove": ["remove", "a"],
        "check": ["update", "--check"],
        "locked": ["add", "--locked"],
        "verify": ["verify", "--installed"],
    }
    assert run(words[verb]) in (1, 2)
    out, err = capsys.readouterr()
    assert "[lock-" in err
    assert out == ""
    assert tree(project) == {"skills.lock.json": text.encode()}


# Servers that die, lie, hang, loop or change under us


async def skillwire(*words: str) -> tuple[int, str]:
    done = await anyio.run_process([*skillwire_command(), *words], check=False)
    return done.returncode, done.stderr.decode()


HOSTILE = {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"}
NOTES = "skill://flat/notes.md"


def lies(server: HostileServer) -> None:
    server.files[NOTES] = b"others"


def dies(server: HostileServer) -> None:
    def hang_up(params: dict[str, Any]) -> None:
        if params["uri"] == NOTES:
            raise ConnectionResetError

    server.answers["resources/read"] = hang_up


def changes(server: HostileServer) -> None:
    def rotate(params: dict[str, Any]) -> None:
        server.files[NOTES] = b"rotated"

    server.answers["resources/read"] = rotate


def leads_out(server: HostileServer) -> None:
    server.entries[0]["resources"][1]["uri"] = "skill://flat/../../out.md"


def brings_a_repository(server: HostileServer) -> None:
    server.entries.clear()
    server.add("flat", {**HOSTILE, ".git/config": b"[core]\n\tfsmonitor = rm\n"})


@rule("V1", "V2", "B3")
@pytest.mark.anyio
@pytest.mark.parametrize("spoil", [lies, dies, changes, leads_out, brings_a_repository])
async def test_a_server_that_misbehaves_leaves_nothing(spoil: Any, project: Path) -> None:
    server = HostileServer()
    server.add("flat", HOSTILE)
    spoil(server)
    async with server.serving() as url:
        code, err = await skillwire("add", str(url), "flat", "--agent", "codex", "--yes")
    assert code in (1, 2), err
    assert "Traceback" not in err
    assert os.listdir(project) == []


@pytest.mark.anyio
async def test_a_server_is_asked_again_at_its_url_and_a_header_is_not_remembered(project: Path) -> None:
    server = HostileServer()
    server.add("flat", HOSTILE)
    async with server.serving() as url:
        secret = ("--header", "Authorization: Bearer hush")
        assert (await skillwire("add", str(url), "flat", "--agent", "codex", "--yes", *secret))[0] == 0
        assert lock(project)["flat"]["server"] == {"url": url}
        assert "hush" not in (project / "skills.lock.json").read_text()
        assert (await skillwire("update", "--check", *secret))[0] == 0
        assert server.asked[-1].headers["authorization"] == "Bearer hush"
        server.files[NOTES] = b"others"
        for path in (".agents/skills/flat/notes.md", ".agents/skills/flat/SKILL.md"):
            (project / path).unlink()
        (project / ".agents/skills/flat").rmdir()
        code, err = await skillwire("add", "--locked")
        assert (code, "[size-mismatch]" in err or "[digest-mismatch]" in err) == (1, True)
        assert os.listdir(project / ".agents/skills") == []
    assert (await skillwire("update", "--check"))[0] == 2


# Later


@rule("A2", "V3")
def test_updating_shows_the_difference_and_replaces_the_skill(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "windows", "--agent", "codex", "--agent", "claude-code") == 0
    assert run(["update", "--check"]) == 0
    change(served)
    (served / "flat/more.md").write_text("more\n")
    capsys.readouterr()
    assert run(["update", "--check"]) == 1
    assert capsys.readouterr().out.split("\t")[:2] == ["flat", "changed"]
    assert run(["update", "--yes", "--by", "bob"]) == 0
    out, err = capsys.readouterr()
    assert "      -Do it.\n      +Do it twice.\n  + more.md" in err
    assert [line.split()[1] for line in out.splitlines()] == [".agents/skills/flat", ".claude/skills/flat"]
    for folder in (".agents", ".claude"):
        assert tree(project / folder / "skills/flat") == tree(served / "flat")
    assert (lock(project)["flat"]["by"], lock(project)["windows"]["by"]) == ("bob", "ada")
    assert run(["update", "--check"]) == run(["verify", "--installed"]) == 0


def test_what_was_edited_by_hand_is_replaced_only_by_force_and_kept(
    served: Path, project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "codex") == 0
    mine = project / ".agents/skills/flat/SKILL.md"
    mine.write_text("edited")
    change(served)
    for words in (["update", "--yes"], ["add", "--locked"], ["remove", "flat"]):
        assert run(words) == 1
        err = capsys.readouterr().err
        assert "[skill-drifted]" in err
        assert "--force" in err
        assert mine.read_text() == "edited"
    assert run(["update", "--yes", "--force"]) == 0
    assert mine.read_bytes() == (served / "flat/SKILL.md").read_bytes()
    mine.write_text("edited again")
    assert run(["remove", "flat", "--force"]) == 0
    kept = [path.read_text() for path in (home / ".local/state/skillwire/backups").rglob("SKILL.md")]
    assert sorted(kept) == ["edited", "edited again"]


def test_a_skill_that_is_gone_from_its_server_stays_and_is_reported(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "codex") == 0
    (served / "flat/SKILL.md").unlink()
    capsys.readouterr()
    assert run(["update", "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["skills"][0]["state"] == "gone"
    assert run(["update", "--yes"]) == 1
    err = capsys.readouterr().err
    assert "[skill-gone]" in err
    assert "../served" in err
    assert FLAT in err
    assert "skillwire remove flat" in err
    assert (project / ".agents/skills/flat/SKILL.md").is_file()
    assert run(["remove", "flat"]) == 0
    assert lock(project) == {}


@pytest.mark.parametrize("words", [["remove"], ["update", "--yes"], ["update", "--check"]], ids=" ".join)
def test_a_name_that_is_not_installed_ends_it_before_anything_is_done(
    served: Path, project: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong word is one, whatever the verb."""
    assert add(served, "flat", "--agent", "codex") == 0
    change(served)
    before = tree(project)
    capsys.readouterr()
    assert run([*words, "flat", "windows"]) == 2
    assert "[skill-not-installed]" in capsys.readouterr().err
    assert tree(project) == before


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://u:hush@127.0.0.1:1/mcp", id="password"),
        pytest.param("http://127.0.0.1:1/mcp?key=hush", id="query"),
        pytest.param("http://127.0.0.1:1/mcp#hush", id="fragment"),
    ],
)
def test_a_url_that_may_hold_a_secret_is_refused_before_the_server_is_asked(
    url: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No server is there, and that is not what is reported."""
    assert run(["add", url, "flat", "--agent", "codex", "--yes"]) == 2
    err = capsys.readouterr().err
    assert "[url-secret]" in err
    assert "hush" not in err
    assert os.listdir(project) == []


def test_a_server_that_cannot_be_reached_is_named(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = "http://127.0.0.1:1/mcp"
    assert run(["add", nowhere, "flat", "--agent", "codex", "--yes"]) == 2
    assert nowhere in (err := capsys.readouterr().err)
    assert "[connection-lost]" in err
    assert add(served, "flat", "--agent", "codex") == 0
    document = json.loads((project / "skills.lock.json").read_text())
    document["skills"]["flat"]["server"] = {"url": nowhere}
    (project / "skills.lock.json").write_text(json.dumps(document))
    capsys.readouterr()
    for words, code in (
        (["update", "--check", "--allow-servers"], 2),
        (["update", "--yes", "--allow-servers"], 1),
    ):
        assert run(words) == code
        assert nowhere in capsys.readouterr().err


@rule("V3")
def test_a_pipeline_gets_exactly_what_the_lock_says_or_nothing(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two skills are missing and one of them changed; neither is written."""
    assert add(served, "flat", "windows", "--agent", "codex", "--agent", "goose") == 0
    before, text = tree(project), (project / "skills.lock.json").read_bytes()
    for folder in (".agents", ".goose"):
        shutil.rmtree(project / folder)
    assert run(["add", "--locked"]) == 0
    assert tree(project) == before
    for folder in (".agents", ".goose"):
        shutil.rmtree(project / folder)
    change(served)
    assert run(["add", "--locked"]) == 1
    assert "[lock-differs]" in capsys.readouterr().err
    assert tree(project) == {"skills.lock.json": text}
    assert run(["add", "--locked", "--global"]) == 2
    assert "[lock-missing]" in capsys.readouterr().err


@rule("A5")
def test_a_lock_that_came_with_a_project_starts_no_program_by_itself(
    served: Path, project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    touched = tmp_path / "touched"
    assert run(["add", "flat", "--agent", "codex", "--yes", "--", *serving(served)]) == 0
    text = (project / "skills.lock.json").read_text()
    hostile = json.loads(text)
    hostile["skills"]["flat"]["server"] = {"command": ["touch", str(touched)]}
    (project / "skills.lock.json").write_text(json.dumps(hostile))
    shutil.rmtree(project / ".agents")
    for words in (["add", "--locked"], ["update", "--yes"]):
        assert run(words) == 1
        assert "[server-not-allowed]" in capsys.readouterr().err
    assert run(["update", "--check"]) == 2
    assert not touched.exists()
    (project / "skills.lock.json").write_text(text)
    assert run(["add", "--locked", "--allow-servers"]) == 0
    assert (project / ".agents/skills/flat/SKILL.md").is_file()


def test_a_header_goes_to_one_server_only(project: Path, served: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert add(served, "flat", "windows", "--agent", "codex") == 0
    document = json.loads((project / "skills.lock.json").read_text())
    for name in ("flat", "windows"):
        document["skills"][name]["server"] = {"url": f"https://{name}.example/mcp"}
    (project / "skills.lock.json").write_text(json.dumps(document))
    assert run(["update", "--check", "--header", "Authorization: Bearer hush"]) == 2
    assert "[header-ambiguous]" in capsys.readouterr().err


def test_what_is_installed_is_listed_and_checked(
    served: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", "--installed"]) == 2
    assert run(["list", "--installed"]) == 0
    assert run(["list", str(served), "--installed"]) == 2
    assert add(served, "flat", "--agent", "codex", "--agent", "claude-code") == 0
    capsys.readouterr()
    assert run(["list", "--installed"]) == 0
    row = capsys.readouterr().out.rstrip("\n").split("\t")
    assert [row[0], row[1], row[3], row[4]] == ["flat", "claude-code, codex", "ada", "../served"]
    assert run(["verify", "--installed"]) == 0
    (project / ".claude/skills/flat/extra.md").write_text("hi")
    os.unlink(project / ".agents/skills/flat/SKILL.md")
    capsys.readouterr()
    assert run(["verify", "--installed", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)["folders"]
    assert [(each["folder"], [text.split()[0] for text in each["details"]]) for each in said] == [
        (".agents/skills", ["SKILL.md"]),
        (".claude/skills", ["extra.md"]),
    ]
    before = (project / "skills.lock.json").read_bytes()
    assert run(["verify", "--installed"]) == 1
    assert (project / "skills.lock.json").read_bytes() == before


# Processes


def test_processes_that_add_at_the_same_time_all_end_up_in_the_lock(served: Path, project: Path) -> None:
    names = ["flat", "windows", "odd-names", "refunds"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(Talking("add", str(served), name, "--agent", "codex", "--yes")) for name in names
        ]
        for process in running:
            assert process.wait()[0] == 0, process.talk
    assert sorted(lock(project)) == sorted(os.listdir(project / ".agents/skills")) == sorted(names)
    assert run(["verify", "--installed"]) == 0


@pytest.mark.parametrize("number", [1, 2, 3], ids=["first-folder", "second-folder", "lock"])
def test_adding_that_is_killed_leaves_whole_skills_and_can_be_done_again(
    served: Path, project: Path, number: int
) -> None:
    """Two folders, then the lock."""
    words = ("--agent", "codex", "--agent", "claude-code")
    assert killed_at("os.rename", number, "add", str(served), "flat", *words, "--yes") == -9
    for folder in (".agents", ".claude"):
        there = project / folder / "skills/flat"
        assert not there.exists() or tree(there) == files_of(small_tree(), "flat")
    assert not (project / "skills.lock.json").exists()
    assert add(served, "flat", *words) == 0
    assert run(["verify", "--installed"]) == 0
    assert os.listdir(project / ".agents/skills") == os.listdir(project / ".claude/skills") == ["flat"]


# A host's configuration


def test_a_server_is_connected_and_disconnected(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".mcp.json").write_text('{\n  // mine\n  "mcpServers": {}\n}\n')
    before = tree(project)
    command = ["--force", "--", "skillwire", "serve", "./skills"]
    assert run(["connect", "--agent", "claude-code", *command]) == 2
    assert "[no-terminal]" in capsys.readouterr().err
    assert tree(project) == before
    assert run(["connect", "--agent", "claude-code", "--yes", *command]) == 0
    err = capsys.readouterr().err
    assert '+    "skillwire": {' in err
    assert tree(project)[".mcp.json.before-skillwire"] == before[".mcp.json"]
    assert b"// mine" in tree(project)[".mcp.json"]
    assert run(["connect", "--agent", "claude-code", "--undo", "--yes"]) == 0
    assert tree(project) == before
    assert run(["connect", "--agent", "goose", "--global", "--yes", "--force", "https://a.example/mcp"]) == 1
    assert 'uri: "https://a.example/mcp"' in capsys.readouterr().out
    assert run(["connect", "--agent", "goose", "--global", "--yes", *command]) == 1
    assert str(project / "skills") in capsys.readouterr().out  # a host starts it elsewhere


def test_a_host_that_starts_it_elsewhere_gets_whole_paths(project: Path, home: Path) -> None:
    (project / "skills").mkdir()
    (project / "servers.json").write_text("{}")
    command = ["skillwire", "gateway", "skills", "--config", "servers.json", "--http", "8000"]
    for words in ([], ["--global"]):
        assert run(["connect", "--agent", "cursor", *words, "--yes", "--force", "--", *command]) == 0
    in_project, everywhere = (
        json.loads((folder / ".cursor/mcp.json").read_text())["mcpServers"]["skillwire"]["args"]
        for folder in (project, home)
    )
    here = [str(project / "skills"), "--config", str(project / "servers.json")]
    assert in_project == everywhere == ["gateway", *here, "--http", "8000"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="no-server"),
        pytest.param(["ftp://a"], id="no-http"),
        pytest.param(["https://a", "--undo"], id="url-and-undo"),
        pytest.param(["--undo"], id="undo-of-nothing"),
        pytest.param(["stray", "--undo"], id="stray-word"),
        pytest.param(["https://a", "--", "b"], id="url-and-command"),
        pytest.param(["--name", "a b", "https://a"], id="bad-name"),
    ],
)
def test_a_connection_that_makes_no_sense_is_refused(words: list[str], project: Path) -> None:
    assert run(["connect", "--agent", "cursor", "--yes", *words]) == 2
    assert os.listdir(project) == []
