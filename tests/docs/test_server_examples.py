"""The examples of servers are short, and serve what they say. ``make types`` checks their types."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from http_server import serving_app
from skillwire import connect
from skillwire.server.access import new_token

if TYPE_CHECKING:
    from types import ModuleType

    from skillwire.types import SkillsClient

pytestmark = pytest.mark.anyio

EXAMPLES = Path(__file__).parents[2] / "examples"
SKILLS = 7  # in examples/skills


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def paths(client: SkillsClient) -> list[str]:
    return [entry.path async for entry in client.list_skills()]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_an_example_has_fewer_than_40_lines(file: Path) -> None:
    assert len(file.read_text().splitlines()) < 40


@pytest.mark.parametrize(
    ("name", "more"),
    [("attach_to_mcpserver", 0), ("attach_to_lowlevel_server", 1), ("native_server", -1)],  # one is inside another
)
async def test_a_server_with_skills(name: str, more: int) -> None:
    async with connect(load(name).server) as client:
        assert len(await paths(client)) == SKILLS + more


async def test_each_user_sees_their_part(tmp_path: Path) -> None:
    tokens = {name: new_token() for name in ("ada", "grace", "unknown")}
    file = tmp_path / "access.toml"
    file.write_text(
        "".join(
            f'[[token]]\nsubject = "{name}"\nsha256 = "{each[1]}"\nsee = ["*"]\n' for name, each in tokens.items()
        )
    )
    seen: dict[str, set[str]] = {}
    async with serving_app(load("per_user_visibility").app(str(file))) as address:
        for name, (token, _) in tokens.items():
            async with connect(f"{address}/mcp", headers={"Authorization": f"Bearer {token}"}) as client:
                seen[name] = {path.partition("/")[0] for path in await paths(client)}
    assert seen == {"ada": {"acme"}, "grace": {"acme", "release"}, "unknown": set()}


@pytest.mark.parametrize("name", ["mount_in_fastapi", "mount_gateway_in_starlette"])
async def test_skills_in_a_web_application(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    app: Any = load(name).app
    async with serving_app(app) as address, connect(f"{address}/skills/mcp") as client:
        assert len(await paths(client)) == SKILLS
