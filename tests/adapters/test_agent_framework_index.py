"""Microsoft Agent Framework's own reader of the index, against our server over HTTP: I1, I2.

It discovers by ``skill://index.json``: single files are read when they are wanted, archives are unpacked at once.
"""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import MCPSkillsSource
from mcp import Client

from archives import pack_tar_gz, pack_zip
from http_server import serving_http
from rules import rule
from skillwire import CombinedCatalog, MemoryCatalog, Mount, Skill, Skills
from skillwire.catalog.archive import local_catalog
from skillwire.catalog.functions import TemplateCatalog
from skillwire.server.skills import build_server
from skillwire.skill.archive import pack
from trees import SMALL_TREE_SKILLS, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_framework import Skill as TheirSkill

    from skillwire import Catalog

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # how the framework says "experimental"
]
ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
NOBODY: Any = None  # the framework passes its agent along; the source does not look at it
FILES = {
    "SKILL.md": skill_md("packed"),
    "references/a.md": b"# More\n",
    "top.json": b"{}",
    "run.py": b"print(1)\n",
}


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine only."""
    connect = socket.socket.connect

    def to_here(self: socket.socket, address: Any) -> None:
        assert address[0] == "127.0.0.1"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", to_here)


@asynccontextmanager
async def discovered(source: Path | Catalog, mode: str = "auto") -> AsyncIterator[dict[str, TheirSkill]]:
    async with (
        serving_http(build_server(Skills(source))) as url,
        Client(url, mode=mode) as client,
    ):
        skills = await MCPSkillsSource(client=client).get_skills(NOBODY)
        found = {skill.frontmatter.name: skill for skill in skills}
        assert len(found) == len(skills)
        yield found


async def contents(skill: TheirSkill, name: str) -> Any:
    resource = await skill.get_resource(name)
    assert resource is not None
    return await resource.read()


@rule("I1")
@ERAS
async def test_every_skill_of_a_folder_is_discovered_loaded_and_read(tmp_path: Path, mode: str) -> None:
    """Name, description, instructions, supporting files of every kind."""
    tree = small_tree()
    async with discovered(write_tree(tmp_path, tree), mode) as skills:
        paths = {path.rpartition("/")[2]: path for path in SMALL_TREE_SKILLS}
        assert skills.keys() == paths.keys()
        for name, skill in skills.items():
            assert (await skill.get_content()).encode() == tree[f"{paths[name]}/SKILL.md"]
        assert skills["refunds"].frontmatter.description == "Does one thing well."
        assert await contents(skills["refunds"], "templates/reply.md") == "Dear customer,\n"
        assert await contents(skills["odd-names"], "assets/100%25.bin") == bytes(range(256))


@rule("R1")
@ERAS
async def test_a_missing_resource_is_none_and_no_failure(tmp_path: Path, mode: str) -> None:
    """-32602 with the URI and nothing else as data."""
    async with discovered(write_tree(tmp_path, small_tree()), mode) as skills:
        for name in ("templates/none.md", "none", "SKILL.md/none", "../flat/none.md"):
            assert await skills["refunds"].get_resource(name) is None


@rule("I2")
@ERAS
@pytest.mark.parametrize("form", ["zip", "tar.gz", "ours"])
async def test_a_packed_skill_is_unpacked(tmp_path: Path, form: str, mode: str) -> None:
    """By a reader that knows ZIP only, whichever came, and checks its digest."""
    data = {"zip": pack_zip, "tar.gz": pack_tar_gz, "ours": lambda files: pack(files, "zip")}[form](FILES)
    path = tmp_path / f"packed.{'zip' if form == 'ours' else form}"
    path.write_bytes(data)
    beside = MemoryCatalog([Skill("plain", {"SKILL.md": skill_md("plain")})])
    catalog = CombinedCatalog([Mount(local_catalog(path), path.name, "acme"), Mount(beside, "own")])
    async with discovered(catalog, mode) as skills:
        assert list(skills) == ["plain", "packed"]  # archives come last with it
        assert type(skills["packed"]).__name__ == "FileSkill"
        assert FILES["SKILL.md"].decode().strip() in await skills["packed"].get_content()
        assert await contents(skills["packed"], "references/a.md") == "# More\n"
        assert await contents(skills["packed"], "top.json") == "{}"
        assert await skills["packed"].get_resource("references/none.md") is None


@rule("I1", "I2")
async def test_a_packed_skill_that_it_would_not_unpack_is_read_file_by_file(tmp_path: Path) -> None:
    """It takes 20 files and a mebibyte; larger ones are not lost to it."""
    many = {"SKILL.md": skill_md("many"), **{f"{number}.md": b"x" for number in range(20)}}
    text = "\n".join(str(number) for number in range(180_000))  # packs to less than a mebibyte
    large = {"SKILL.md": skill_md("large"), "large.txt": text.encode()}
    assert len(pack_zip(large)) < 1 << 20 < len(text)
    (tmp_path / "many.zip").write_bytes(pack_zip(many))
    (tmp_path / "large.zip").write_bytes(pack_zip(large))
    mounts = [Mount(local_catalog(tmp_path / f"{name}.zip"), f"{name}.zip") for name in ("many", "large")]
    async with discovered(CombinedCatalog(mounts)) as skills:
        assert sorted(skills) == ["large", "many"]
        assert await contents(skills["many"], "19.md") == "x"
        assert await contents(skills["large"], "large.txt") == text


@rule("I1")
@ERAS
async def test_template_skills_beside_the_others_are_no_failure(mode: str) -> None:
    """It passes over the entry of a template and reads the rest."""
    plain = MemoryCatalog([Skill("plain", {"SKILL.md": skill_md("plain")})])
    docs = TemplateCatalog()
    docs.add(
        "docs/{product}",
        lambda product: {"SKILL.md": skill_md(product)},
        values={"product": ["pump"]},
        description="D",
    )
    async with discovered(CombinedCatalog([Mount(docs, "made"), Mount(plain, "own")]), mode) as skills:
        assert list(skills) == ["plain"]
        assert "Do it." in await skills["plain"].get_content()


@rule("I1")
async def test_no_skills_are_no_failure() -> None:
    """An empty index."""
    async with discovered(MemoryCatalog()) as skills:
        assert skills == {}


@rule("I2")
async def test_an_archive_of_ours_is_what_it_takes(tmp_path: Path) -> None:
    """Names that are not ASCII, and empty files."""
    files = {"SKILL.md": skill_md("packed"), "R\u00e9sum\u00e9.md": "na\u00efve\n".encode(), "empty.txt": b""}
    (tmp_path / "packed.tgz").write_bytes(pack_tar_gz(files))
    async with discovered(tmp_path / "packed.tgz") as skills:
        assert await contents(skills["packed"], "R\u00e9sum\u00e9.md") == "na\u00efve\n"
        assert await contents(skills["packed"], "empty.txt") == ""
