"""Without its framework an adapter says which extra it needs; and each extra there is has an adapter."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDS = {
    "agent_framework": ("agent_framework", "agent-framework"),
    "langchain": ("langchain", "langchain"),
    "openai_agents": ("agents", "openai-agents"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}


@pytest.mark.parametrize("adapter", sorted(NEEDS))
def test_an_adapter_without_its_framework_names_the_extra(adapter: str) -> None:
    package, extra = NEEDS[adapter]
    code = f"import sys; sys.modules[{package!r}] = None\nimport skillwire.adapters.{adapter}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError:")
    assert f"pip install 'skillwire[{extra}]'" in done.stderr.splitlines()[-1]


def test_importing_the_package_imports_no_framework() -> None:
    packages = {package for package, _ in NEEDS.values()}
    code = f"import sys, skillwire.adapters, skillwire.host.state; print({packages} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


def test_every_adapter_has_its_extra_and_is_small() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    files = {path.stem: path for path in (ROOT / "src/skillwire/adapters").glob("*.py") if path.stem[0] != "_"}
    assert sorted(files) == sorted(NEEDS)
    for adapter, path in files.items():
        assert NEEDS[adapter][1] in extras
        assert len(path.read_text().splitlines()) < 150


def test_it_all_works_beside_the_mcp_sdk_that_we_need() -> None:
    assert version("mcp").startswith("2.")
