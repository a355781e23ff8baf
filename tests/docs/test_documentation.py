"""The documents say what is true: examples run, and every public name, verb and problem is described."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skillwire
from docs import messages
from docs.options import check_options
from e2e.talking import Talking
from skillwire.cli.main import VERBS
from skillwire.install.agents import AGENTS, CONFIGS
from skillwire.skill import KINDS
from skillwire.skill.markdown import read_markdown
from skillwire.skill.uri import reference_kind
from starting import folder_for_path, python_command, skillwire_script

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
PATIENCE = 240  # a dozen commands, each a new process; on a busy machine that takes a while
pytestmark = pytest.mark.timeout(300)
STRICT = "import warnings; warnings.simplefilter('error')\n"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


VERBS_OF = {
    "serve": ("serve",),
    "client": ("diff", "list", "read", "search", "show", "verify"),
    "add": ("add", "connect", "remove", "update"),
}


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{index}", code)
        for page in PAGES
        for index, (tongue, code) in enumerate(FENCE.findall(page.read_text()))
        if tongue == language
    ]


EXAMPLES = [(name, code) for name, code in blocks("python") if not name.startswith("docs/testing.md")]


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in EXAMPLES])
def test_a_python_example_runs_and_prints_something(code: str) -> None:
    done = subprocess.run(
        [*python_command(), "-c", STRICT + code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("plugin", ["anyio", "asyncio"])
def test_the_tests_of_the_page_on_testing_run(plugin: str, tmp_path: Path) -> None:
    examples = [code for name, code in blocks("python") if name.startswith("docs/testing.md")]
    fixture = next(code for code in examples if "def anyio_backend" in code)
    tests = [code for code in examples if code != fixture]
    (tmp_path / "conftest.py").write_text(fixture if plugin == "anyio" else "")
    for number, code in enumerate(tests):
        marked = code.replace("pytest.mark.anyio", f"pytest.mark.{plugin}")
        (tmp_path / f"test_page_{number}.py").write_text(marked)
    shutil.copytree(ROOT / "examples/skills", tmp_path / "examples/skills")
    options = ["-o", "asyncio_default_fixture_loop_scope=function", "-o", "filterwarnings=error"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *options, "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    for number in range(len(tests)):
        assert f"PASSED test_page_{number}.py" in done.stdout
    assert "[trio]" in done.stdout


def test_links_between_documents_resolve() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {link.target}"
        for page in PAGES
        for link in read_markdown(page.read_text()).links
        if reference_kind(link.target) == "relative" and not (page.parent / link.target.partition("#")[0]).exists()
    ]
    assert broken == []


def test_the_readmes_examples_print_what_it_shows(tmp_path: Path) -> None:
    """As in a clone after ``make serve``: the command is in .venv, and nothing is on the PATH."""
    shutil.copytree(ROOT / "examples", tmp_path / "project/examples")
    (tmp_path / "project/.venv/bin").mkdir(parents=True)
    os.symlink(skillwire_script(), tmp_path / "project/.venv/bin/skillwire")
    (tmp_path / "home").mkdir()
    hidden = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment["HOME"] = str(tmp_path / "home")
    examples = re.findall(
        r"```sh\n(\.venv/bin/.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert len(examples) >= 5
    for command, shown in examples:
        done = subprocess.run(
            ["sh", "-ec", command],
            cwd=tmp_path / "project",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout
        pattern = "".join(".*" if part == "…\n" else re.escape(part) for part in shown.splitlines(keepends=True))
        assert re.fullmatch(pattern, done.stdout, re.DOTALL), done.stdout


def test_the_readmes_commands_exist_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"^make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE))
        assert named
        assert named <= targets


def serve_commands() -> list[str]:
    """The shell blocks of docs/serve.md, each run as one session of a newcomer's."""
    return [code for name, code in blocks("sh") if name.startswith("docs/serve.md")]


@pytest.mark.parametrize(
    "code", [pytest.param(code, id=code.splitlines()[0].removeprefix("skillwire ")) for code in serve_commands()]
)
def test_a_serve_example_starts_a_server(code: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    for line in code.splitlines():
        if " serve " not in line:
            command = line.replace("skillwire", skillwire_script(), 1)
            subprocess.run(command, shell=True, check=True, cwd=tmp_path, timeout=60, capture_output=True)
            continue
        name, *words = line.replace("--http 8000", "--http 0").split()
        assert name == "skillwire"
        with Talking(*words, folder=tmp_path) as process:
            process.wait_for_talk(r"(?s) 7 skills.*(listening at|serving MCP)")
            assert process.end() == 0


@pytest.mark.parametrize("page", VERBS_OF)
def test_every_option_is_documented(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in VERBS_OF[page]:
        check_options([verb], (ROOT / f"docs/{page}.md").read_text(), capsys)


def test_every_problem_is_documented_with_its_rule_and_severity() -> None:
    page = (ROOT / "docs/check.md").read_text()
    for reference, kind in KINDS.items():
        served = "no" if kind.refuses else "yes"
        assert f"| `{reference}` | {kind.rule} | {kind.severity} | {served} |" in page


def test_no_problem_is_documented_that_does_not_exist() -> None:
    page = (ROOT / "docs/check.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == set(KINDS)


def test_every_verb_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    for verb in VERBS:
        assert f"`skillwire {verb}`" in changelog


def test_the_public_names_are_the_lazy_ones_and_all_load() -> None:
    source = Path(skillwire.__file__).read_text()
    typed = set(re.findall(r"import (\w+) as \1", source))
    lazy = set(skillwire.__all__) - {"__version__"}
    assert typed == lazy
    for name in lazy:
        assert getattr(skillwire, name) is not None
    with pytest.raises(AttributeError):
        skillwire.no_such_name  # noqa: B018 - the lookup is the test


def test_the_rules_and_the_help_load_without_heavy_libraries() -> None:
    code = "import sys, skillwire.skill, skillwire.cli.main; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert {"mcp", "anyio", "rich", "watchfiles", "pydantic"} & set(done.stdout.split()) == set()


def client_commands() -> str:
    """The lines of docs/client.md that look at skills, run in a folder with some."""
    lines = [
        line for name, code in blocks("sh") if name.startswith("docs/client.md") for line in code.splitlines()
    ]
    verbs = re.compile(r"skillwire (list|search|show|read|add|verify|diff)")
    return "\n".join(filter(verbs.match, lines))


def test_the_examples_of_the_client_run(tmp_path: Path) -> None:
    code = client_commands()
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    shutil.copytree(ROOT / "examples/skills", tmp_path / "examples" / "skills")
    environment = {
        **os.environ,
        "PATH": f"{folder_for_path()}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        ["sh", "-ec", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert code.count("\n") > 8
    assert (tmp_path / "copied/refunds/SKILL.md").is_file()


def test_the_examples_of_the_host_lead_from_nothing_to_a_loaded_skill(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    environment = {
        **os.environ,
        "PATH": f"{folder_for_path()}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    [code] = [code for name, code in blocks("sh") if name.startswith("docs/host.md")]
    # A reader has a terminal, which shows the review and asks. A script names what it reviewed.
    look = '$(skillwire approvals show \\2 --json | sed -n \'s/.*"fingerprint": "\\([^"]*\\)".*/\\\\1/p\')'
    code = re.sub(r"skillwire (approve|approvals enable) (\S+)", f'skillwire \\1 \\2 --fingerprint "{look}"', code)
    done = subprocess.run(
        ["sh", "-ec", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert 'origin="mcp:everything"' in done.stdout
    assert 'origin="mcp:billing"' in done.stdout


def test_the_examples_of_add_install_and_remove_and_leave_nothing(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/skills", tmp_path / "project/skills")
    (tmp_path / "home").mkdir()
    moving = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
    environment = {
        **{key: value for key, value in os.environ.items() if key not in moving},
        "PATH": f"{folder_for_path()}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
    }
    code = "\n".join(code for name, code in blocks("sh") if name.startswith("docs/add.md"))
    done = subprocess.run(
        ["sh", "-ec", code],
        cwd=tmp_path / "project",
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert " .claude/skills/refunds\n" in done.stdout
    assert " ~/.cursor/skills/refunds\n" in done.stdout
    assert '+    "skillwire": {' in done.stderr
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file() or path.is_symlink()}
    locks = {"project/skills.lock.json", "home/.config/skillwire/skills.lock.json"}
    # What was there, and what a server that was started may keep.
    theirs = ("project/skills/", "home/.cache/", "home/.local/state/skillwire/host.sqlite3")
    assert {path for path in left if not path.startswith(theirs)} == locks


def test_every_agent_is_documented_with_its_folders() -> None:
    page = (ROOT / "docs/add.md").read_text()
    rows = [f"| `{agent.id}` | `{agent.project}` | `{agent.everywhere}` |" for agent in AGENTS.values()]
    assert [line for line in page.splitlines() if line in rows] == rows
    assert ", ".join(f"`{agent}`" for agent in CONFIGS) in page
    for agent, config in CONFIGS.items():
        places = (
            ", ".join(f"`{place}`" for place in each) or "none" for each in (config.project, config.everywhere)
        )
        assert f"| `{agent}` | {' | '.join(places)} | `{'.'.join(config.keys)}` |" in page


@pytest.mark.anyio
async def test_the_messages_in_the_comparison_of_dialects_are_what_our_server_sends() -> None:
    page = messages.PAGE.read_text()
    shown = await messages.capture()
    assert {match[1] for match in messages.MARKED.findall(page)} <= shown.keys()
    assert messages.filled(page, shown) == page, "run: python tests/docs/messages.py"
