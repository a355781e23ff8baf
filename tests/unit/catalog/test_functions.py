"""Skills that functions make: stable ones with digests, dynamic ones without (E2)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire import CombinedCatalog, Limits, MemoryCatalog, Mount, Skill, SkillMeta
from skillwire.errors import FormatError, NotFoundError, UpstreamError
from skillwire.lowlevel import GeneratedCatalog
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from skillwire.catalog.functions import Files

pytestmark = pytest.mark.anyio


async def test_a_stable_skill_is_made_once() -> None:
    catalog = GeneratedCatalog()
    calls: list[int] = []

    @catalog.skill("acme/status")
    def status() -> Files:
        calls.append(1)
        return {"SKILL.md": skill_md("status"), "data/now.txt": f"call {len(calls)}"}

    entry = await catalog.get_skill("skill://acme/status/SKILL.md")
    assert not entry.is_dynamic
    for _ in range(3):
        assert (await catalog.read_file("skill://acme/status/data/now.txt")).data == b"call 1"
    await catalog.regenerate("acme/status")
    assert (await catalog.read_file("skill://acme/status/data/now.txt")).data == b"call 2"
    assert await catalog.get_skill(entry.uri) != entry


@rule("E2")
async def test_a_dynamic_skill_is_made_on_every_read_and_claims_nothing() -> None:
    catalog = GeneratedCatalog()
    calls: list[int] = []

    @catalog.skill("status", dynamic=True)
    async def status() -> Files:
        calls.append(1)
        return {"SKILL.md": skill_md("status", f"call {len(calls)}"), "data/now.txt": f"call {len(calls)}"}

    entry = await catalog.get_skill("skill://status/SKILL.md")
    assert entry.resources == "dynamic"
    assert entry.to_json()["resources"] == "dynamic"
    first = (await catalog.read_file("skill://status/data/now.txt")).data
    second = (await catalog.read_file("skill://status/data/now.txt")).data
    assert first != second
    assert [child.name async for child in catalog.children("skill://status")] == ["SKILL.md", "data"]
    fresh = await catalog.get_skill("skill://status/SKILL.md")
    assert fresh.description == f"call {len(calls)}"
    for ask in (catalog.read_file, catalog.read_directory):
        with pytest.raises(NotFoundError):
            await ask("skill://status/nothing")


async def test_listing_calls_each_function_once() -> None:
    catalog = GeneratedCatalog()
    calls: list[str] = []
    for name in ("a", "b"):
        catalog.add(
            name, lambda name=name: calls.append(name) or {"SKILL.md": skill_md(name)}, dynamic=name == "b"
        )
    for _ in range(3):
        assert [entry.path async for entry in catalog.entries()] == ["a", "b"]
    assert calls == ["a", "b"]


@rule("E2")
async def test_listing_beside_another_source_calls_no_function_again() -> None:
    """To know that a dynamic skill exists, it is not made."""
    generated, calls = GeneratedCatalog(), list[int]()
    generated.add("now", lambda: calls.append(1) or {"SKILL.md": skill_md("now")}, dynamic=True)
    catalog = CombinedCatalog([Mount(MemoryCatalog(), "files"), Mount(generated, "code")])
    for _ in range(3):
        assert [entry.path async for entry in catalog.entries()] == ["now"]
    assert calls == [1]


@rule("S1")
async def test_a_skill_discarded_while_it_is_generated_does_not_come_back() -> None:
    """Neither back in the listing, nor a foreign error."""
    catalog, begun, go_on = GeneratedCatalog(), anyio.Event(), anyio.Event()
    calls: list[int] = []

    async def make() -> Files:
        calls.append(1)
        if len(calls) > 1:
            begun.set()
            await go_on.wait()
        return {"SKILL.md": skill_md("now")}

    catalog.add("now", make, dynamic=True)
    await catalog.list_skills()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(catalog.read_file, "skill://now/SKILL.md")
            await begun.wait()
            catalog.discard("now")
            go_on.set()
    assert [entry async for entry in catalog.entries()] == []
    with pytest.raises(NotFoundError):
        await catalog.get_skill("skill://now/SKILL.md")


@rule("B4")
async def test_a_request_for_an_unknown_skill_generates_nothing() -> None:
    """However deep below a dynamic skill it points."""
    catalog, calls = GeneratedCatalog(), list[int]()
    catalog.add("now", lambda: calls.append(1) or {"SKILL.md": skill_md("now")}, dynamic=True)
    await catalog.list_skills()
    for depth in range(1, 50):
        with pytest.raises(NotFoundError):
            await catalog.get_skill(f"skill://now/{'a/' * depth}SKILL.md")
    assert calls == [1]


@rule("L2", "G1")
async def test_an_unlisted_skill_is_served_and_absent_from_the_listing() -> None:
    catalog = GeneratedCatalog()
    catalog.add("hidden", lambda: {"SKILL.md": skill_md("hidden")}, meta=SkillMeta(listed=False))
    assert [entry async for entry in catalog.entries()] == []
    assert (await catalog.get_skill("skill://hidden/SKILL.md")).name == "hidden"


def explode() -> Files:
    raise ValueError("a secret in the message")


async def hang() -> Files:
    await anyio.sleep_forever()
    raise AssertionError


BAD = {
    "raises": (explode, "ValueError"),
    "no-skill-md": (lambda: {"README.md": b""}, "SKILL.md"),
    "not-files": (lambda: ["SKILL.md"], "list"),
    "no-folder": (lambda: Path("no/such/folder"), "folder"),
    "not-bytes": (lambda: {"SKILL.md": 7}, "int"),
}


@rule("F7")
@pytest.mark.parametrize(("make", "detail"), BAD.values(), ids=BAD)
async def test_a_function_that_fails_costs_only_its_own_skill(make: Any, detail: str) -> None:
    """And its message, which may hold secrets, goes nowhere."""
    catalog = GeneratedCatalog()
    catalog.add("good", lambda: {"SKILL.md": skill_md("good")})
    catalog.add("bad", make)
    assert [entry.path async for entry in catalog.entries()] == ["good"]
    (problem,) = await catalog.problems()
    assert (problem.reference, problem.skill) == ("generator-failed", "bad")
    assert detail in problem.message
    assert "secret" not in problem.message
    with pytest.raises(UpstreamError):
        await catalog.regenerate("bad")


@rule("B4", "F7")
async def test_a_function_that_hangs_is_given_up_after_the_time_limit() -> None:
    catalog = GeneratedCatalog(limits=Limits(max_generate_seconds=0.01))
    catalog.add("slow", hang)
    assert [entry async for entry in catalog.entries()] == []
    (problem,) = await catalog.problems()
    assert problem.reference == "generator-failed"
    assert "0.01" in problem.message


@rule("F7")
async def test_a_generated_skill_that_breaks_a_rule_is_reported() -> None:
    catalog = GeneratedCatalog()
    catalog.add("bad", lambda: {"SKILL.md": skill_md("other")})
    assert [entry async for entry in catalog.entries()] == []
    assert [problem.reference for problem in await catalog.problems()] == ["name-mismatch"]


@rule("U7")
async def test_an_unsafe_path_is_refused_at_once() -> None:
    with pytest.raises(FormatError) as caught:
        GeneratedCatalog().add("../x", dict)
    assert caught.value.reference == "path-invalid"


@rule("F1")
async def test_a_function_may_return_a_folder_a_skill_or_the_text_of_one(tmp_path: Path) -> None:
    """The folder may have any name; links and litter stay out of it."""
    write_tree(tmp_path / "any-name", {"SKILL.md": skill_md("a"), "refs/x.md": b"x", ".git/config": b""})
    (tmp_path / "any-name/link").symlink_to("/etc/passwd")
    catalog = GeneratedCatalog()
    catalog.add("team/a", lambda: tmp_path / "any-name")
    catalog.add("team/b", lambda: Skill("elsewhere", {"SKILL.md": skill_md("b")}))
    catalog.add("team/c", lambda: skill_md("c").decode())
    assert [entry.path async for entry in catalog.entries()] == ["team/a", "team/b", "team/c"]
    entry = await catalog.get_skill("skill://team/a/SKILL.md")
    assert [file.uri for file in entry.files] == ["skill://team/a/SKILL.md", "skill://team/a/refs/x.md"]
