"""The documents are correct: their commands print what they show, their examples run, and their links work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skillwire
from docs.sessions import FENCE, Session, blocks_of, shows
from rules import rule
from skillwire.cli.main import VERBS
from skillwire.gateway.config import UpstreamPolicy, parse_policy
from skillwire.skill.markdown import read_markdown
from skillwire.skill.uri import reference_kind
from skillwire.wire import meta as provenance
from starting import python_command, skillwire_script

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
GENERATED = {"agents", "command-line", "conformance-rules", "limits", "messages", "problems"}  # docs/website.py
PATIENCE = 240  # a dozen commands, each a new process; on a busy machine that takes a while
pytestmark = pytest.mark.timeout(300)
STRICT = "import warnings; warnings.simplefilter('error')\n"
PUBLIC = re.compile(r"skillwire(\.(types|errors|lowlevel|testing|adapters(\.\w+)?))?\Z")
TESTING = ROOT / "docs/how-to/testing.md"
SESSIONS = [page for page in sorted(ROOT.glob("docs/**/*.md")) if "```sh\n" in page.read_text()]
# Each has a plain equivalent: see "How we write" in CONTRIBUTING.md.
STILTED = re.compile(
    r"\b(whoever|somebody|nobody|anew|mend(?:s|ed)?|everybody|at hand|left out|a yes|says yes|as it is)\b",
    re.IGNORECASE,
)


def python_blocks(page: Path) -> list[str]:
    return [block.code for block in blocks_of(page.read_text()) if block.language == "python"]


EXAMPLES = [
    pytest.param(code, id=f"{page.relative_to(ROOT)}:{number}")
    for page in PAGES
    if page != TESTING
    for number, code in enumerate(python_blocks(page))
]


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_the_commands_of_a_page_show_what_it_says(page: Path, tmp_path: Path) -> None:
    Session(tmp_path).run(page.read_text())


def test_a_screen_is_compared_with_gaps() -> None:
    assert shows("one\n two three four", "one … four")
    assert shows("one two", "one\ntwo")
    assert shows("one two three", "…\ntwo\n…")
    assert not shows("one two", "one … three")
    assert not shows("one two", "one")
    assert not shows("two one", "one … two")
    assert not shows("one", "one … one")


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_python_example_runs_and_prints_something(code: str) -> None:
    done = subprocess.run(
        [*python_command(), "-c", STRICT + code], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_python_examples_import_only_public_modules() -> None:
    imported = {
        name
        for page in PAGES
        for code in python_blocks(page)
        for name in re.findall(r"^\s*(?:from|import) (skillwire[\w.]*)", code, re.MULTILINE)
    }
    assert [name for name in sorted(imported) if not PUBLIC.match(name)] == []


@pytest.mark.parametrize("plugin", ["anyio", "asyncio"])
def test_the_tests_of_the_page_on_testing_run(plugin: str, tmp_path: Path) -> None:
    examples = python_blocks(TESTING)
    fixture = next(code for code in examples if "def anyio_backend" in code)
    tests = [code for code in examples if code != fixture]
    (tmp_path / "conftest.py").write_text(fixture if plugin == "anyio" else "")
    for number, code in enumerate(tests):
        is_for_anyio = "@pytest.fixture\nasync def" in code
        marked = code if is_for_anyio else code.replace("pytest.mark.anyio", f"pytest.mark.{plugin}")
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
    """Also in the repository, without a site. ``make docs`` checks anchors too."""
    generated = {ROOT / "docs/reference" / f"{name}.md" for name in GENERATED}
    broken = [
        f"{page.relative_to(ROOT)}: {link.target}"
        for page in PAGES
        for link in read_markdown(page.read_text()).links
        if reference_kind(link.target) == "relative"
        and not (target := (page.parent / link.target.partition("#")[0]).resolve()).exists()
        and target not in generated
    ]
    assert broken == []


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"- ((?:[\w-]+/)?[\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    here = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
    assert {page for page in here if not re.match(r"adr/\d", page)} <= listed
    assert {f"reference/{name}.md" for name in GENERATED} <= listed


def test_every_decision_is_in_their_index() -> None:
    index = (ROOT / "docs/adr/index.md").read_text()
    for page in ROOT.glob("docs/adr/0*.md"):
        title = page.read_text().splitlines()[0].removeprefix("# ")
        assert f"- [{title}]({page.name})" in index


def test_pictures_are_used_and_small() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for picture in (ROOT / "docs/pictures").iterdir():
        assert f"pictures/{picture.name})" in text, picture.name
        assert picture.stat().st_size <= 150 * 1024, picture.name


def test_documents_are_in_plain_english() -> None:
    pages = [*PAGES, ROOT / "tests/README.md"]
    found = [
        f"{page.relative_to(ROOT)}: {match[0]}"
        for page in pages
        for match in STILTED.finditer(FENCE.sub("", page.read_text()))
    ]
    assert found == []


def test_the_readmes_examples_print_what_it_shows(tmp_path: Path) -> None:
    """As in a clone after ``make serve``: the command is in .venv, and nothing is on the PATH."""
    shutil.copytree(ROOT / "examples", tmp_path / "project/examples")
    (tmp_path / "project/.venv/bin").mkdir(parents=True)
    os.symlink(skillwire_script(), tmp_path / "project/.venv/bin/skillwire")
    (tmp_path / "home").mkdir()
    hidden = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    environment["HOME"] = str(tmp_path / "home")
    examples = [
        block for block in blocks_of((ROOT / "README.md").read_text()) if block.code.startswith(".venv/bin")
    ]
    assert 5 <= len(examples) <= 6
    for block in examples:
        done = subprocess.run(
            ["sh", "-ec", block.code],
            cwd=tmp_path / "project",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout
        assert block.shown is not None, block.code
        assert shows(done.stdout, block.shown), done.stdout


CONFIGURATIONS = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
}


@pytest.mark.parametrize("agent", CONFIGURATIONS)
def test_the_readmes_configurations_are_those_that_connect_writes(agent: str, tmp_path: Path) -> None:
    file = CONFIGURATIONS[agent]
    [shown] = [block.code for block in blocks_of((ROOT / "README.md").read_text()) if block.title == file]
    command = [skillwire_script(), "connect", "http://127.0.0.1:8000/mcp", "--agent", agent, "--yes", "--force"]
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    parse = tomllib.loads if file.endswith(".toml") else json.loads
    assert parse(shown) == parse((tmp_path / file).read_text())


def test_the_readmes_commands_exist_in_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        named = set(re.findall(r"^make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE))
        assert named
        assert named <= targets


def test_every_verb_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    for verb in VERBS:
        assert f"`{verb}`" in changelog


def test_the_policy_of_the_gateway_shows_every_key() -> None:
    page = (ROOT / "docs/how-to/gateway.md").read_text()
    [policy] = [block.code for block in blocks_of(page) if block.title == "gateway.toml"]
    parse_policy(policy)
    for name in UpstreamPolicy.model_fields:
        assert re.search(rf"^{name.replace('_', '-')} = ", policy, re.MULTILINE), name


@rule("R4")
def test_everything_that_a_gateway_adds_to_a_skill_is_named() -> None:
    page = (ROOT / "docs/how-to/gateway.md").read_text()
    for name in ("ORIGIN", "UPSTREAM_URI", "DIALECT", "STALE_SINCE", "NOT_PROMISED", "SNAPSHOT"):
        prefix, _, key = getattr(provenance, name).partition("/")
        assert f"`{prefix}/`" in page
        assert f"`{key}`" in page, name


def test_every_key_of_the_desk_is_documented() -> None:
    page = (ROOT / "docs/how-to/approve.md").read_text()
    templates = ROOT / "src/skillwire/web/templates"
    keys = {key for path in templates.rglob("*.html") for key in re.findall(r"<dt>(.*?)</dt>", path.read_text())}
    named = {name for key in keys for name in re.findall(r"<kbd>(.*?)</kbd>", key)} - {"Esc", "Enter"}
    assert named >= {"/", "j", "k", "a", "?"}
    for name in named:
        assert f"`{name}`" in page, name


def test_every_public_name_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    for name in set(skillwire.__all__) - {"__version__"}:
        assert f"::: skillwire.{name}\n" in page, name
    for module in ("types", "errors", "lowlevel"):
        assert f"::: skillwire.{module}\n" in page


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
