"""The examples are short, use public names only, and run, also where an event loop is already running."""

from __future__ import annotations

import asyncio
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from starting import python_command

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("**/*.py") if "skills" not in path.parts)
SHARED = "offline.py"  # the stand-in for a model, which the examples of agents share
PUBLIC = re.compile(r"skillwire(\.(types|errors|lowlevel|testing|adapters\.\w+))?$")
RUN = ["connect_and_download.py", "sync_use.py", "agents/plain_loop.py"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_short_and_uses_public_names_only(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) < 40 or path.name == SHARED
    imported = re.findall(r"^\s*(?:from|import) (skillwire[\w.]*)", text, re.MULTILINE)
    assert [name for name in imported if not PUBLIC.match(name)] == []


@pytest.mark.parametrize("name", RUN)
def test_an_example_runs(name: str) -> None:
    command = [*python_command(), str(ROOT / "examples" / name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_example_of_tests_passes() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "examples/test_skills.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_the_synchronous_recipe_works_inside_a_running_event_loop(capsys: pytest.CaptureFixture[str]) -> None:
    """As in a notebook: the cell blocks its loop, and the portal has another one."""
    main = runpy.run_path(str(ROOT / "examples/sync_use.py"))["main"]

    async def cell() -> None:
        assert asyncio.get_running_loop().is_running()
        main()

    asyncio.run(cell())
    assert '<skill name="refunds"' in capsys.readouterr().out
