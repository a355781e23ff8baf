"""Skills that are made from the values in their path (I1, T1, G1, E2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire import CombinedCatalog, MemoryCatalog, Mount, Skill
from skillwire.catalog.functions import TemplateCatalog
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import FormatError, NotFoundError, ProtocolError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.catalog.functions import Files, Values

pytestmark = pytest.mark.anyio

PUMP = "skill://docs/pump/SKILL.md"
PRODUCTS = {"product": ["pump", "valve"]}
calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


def manual(product: str) -> Files | None:
    calls.append(product)
    if product == "none":
        return None
    if product == "broken":
        raise ValueError(product)
    return {"SKILL.md": skill_md(product, f"call {len(calls)}"), "parts/list.md": f"parts of {product}"}


def catalog_of(
    values: Values = ("pump", "valve"),
    make: Any = manual,
    path: str = "docs/{product}",
    limits: Limits = DEFAULT_LIMITS,
) -> TemplateCatalog:
    catalog = TemplateCatalog(limits=limits)
    catalog.add(path, make, values={"product": values}, description="How to operate a product.")
    return catalog


def few(beginning: str) -> list[str]:
    return [f"{beginning}x", "not/one", ".."]


@rule("G1", "L2", "D1")
async def test_a_skill_is_made_for_each_of_its_values_and_none_is_listed() -> None:
    """By every method, though no listing has it."""
    catalog = catalog_of()
    assert (await catalog.list_skills()).items == []
    assert [entry async for entry in catalog.entries()] == []
    for name in ("pump", "valve"):
        entry = await catalog.get_skill(f"skill://docs/{name}/SKILL.md")
        assert (entry.name, entry.path) == (name, f"docs/{name}")
        file = await catalog.read_file(f"skill://docs/{name}/parts/list.md")
        assert (file.uri, file.data) == (f"skill://docs/{name}/parts/list.md", f"parts of {name}".encode())
        children = [child.name async for child in catalog.children(f"skill://docs/{name}")]
        assert children == ["SKILL.md", "parts"]
    with pytest.raises(ProtocolError):
        await catalog.list_skills("garbage")


@rule("E2")
async def test_a_skill_is_generated_on_every_read_and_has_no_digests() -> None:
    """To peek makes nothing."""
    catalog = catalog_of()
    expected = await catalog.peek_skill(PUMP)
    assert expected is not None
    assert (expected.name, expected.description) == ("pump", "How to operate a product.")
    assert calls == []
    assert (await catalog.get_skill(PUMP)).resources == "dynamic"
    assert b"call 2" in (await catalog.read_file(PUMP)).data
    known = await catalog.peek_skill(PUMP)
    assert known is not None
    assert (known.description, known.is_dynamic) == ("call 2", True)
    assert calls == ["pump", "pump"]


UNKNOWN = [
    "skill://docs/lever/SKILL.md",
    "skill://docs/SKILL.md",
    "skill://other/pump/SKILL.md",
    "skill://docs/pump/parts/SKILL.md",
    "skill://docs/pump/none.md",
    "skill://docs/%7Bproduct%7D/SKILL.md",
    "skill://SKILL.md",
    "other://docs/pump/SKILL.md",
]


@rule("G1", "U7")
async def test_any_other_uri_is_unknown() -> None:
    catalog = catalog_of()
    for uri in UNKNOWN:
        assert await catalog.peek_skill(uri) is None, uri
        for ask in (catalog.get_skill, catalog.read_file, catalog.read_directory):
            with pytest.raises(NotFoundError):
                await ask(uri)


@rule("G1", "T1")
async def test_where_values_are_a_function_the_maker_decides_which_skills_exist() -> None:
    """Any segment may be a value; ``None`` is "there is none"."""
    catalog = catalog_of(few)
    assert (await catalog.get_skill("skill://docs/lever/SKILL.md")).name == "lever"
    for uri in ("skill://docs/none/SKILL.md", "skill://docs/none/parts/list.md"):
        with pytest.raises(NotFoundError):
            await catalog.read_file(uri)
    assert await catalog.peek_skill("skill://docs/none/SKILL.md") is None
    assert await catalog.peek_skill("skill://docs/broken/SKILL.md") is None
    [template] = catalog.templates()
    assert await template.complete("product", "le") == ["lex"]
    assert await catalog.suggest("docs/") == []


@rule("T1")
async def test_values_are_completed_from_their_list() -> None:
    """For a variable, and for people who type a path."""
    catalog = catalog_of(["valve", "pump", "pulley"])
    [template] = catalog.templates()
    assert (template.path, template.name, template.stem) == ("docs/{product}", "docs", "docs")
    assert template.uri("skill") == "skill://docs/{product}/SKILL.md"
    assert await template.complete("product", "pu") == ["pump", "pulley"]
    assert await template.complete("other", "pu") == []
    assert await catalog.suggest("docs/pu") == ["docs/pulley", "docs/pump"]
    assert await catalog.suggest("do", 1) == ["docs/pulley"]
    assert await catalog.suggest("x") == []
    assert calls == []


@rule("T1")
async def test_a_coroutine_function_makes_and_completes_and_a_folder_is_a_skill(tmp_path: Path) -> None:
    """Two variables, and a literal at the end (U3)."""
    write_tree(tmp_path, {"SKILL.md": skill_md("manual")})
    catalog = TemplateCatalog()

    async def languages(beginning: str) -> list[str]:
        return [name for name in ("de", "en") if name.startswith(beginning)]

    async def make(lang: str, team: str) -> Path:
        assert (team, lang) == ("b", "en")
        return tmp_path

    catalog.add("{team}/{lang}/manual", make, values={"team": ["a", "b"], "lang": languages}, description="One.")
    assert (await catalog.get_skill("skill://b/en/manual/SKILL.md")).name == "manual"
    [template] = catalog.templates()
    assert (template.stem, template.name) == ("", "manual")
    assert await template.complete("lang", "d") == ["de"]


@rule("U3")
async def test_a_name_that_is_not_the_last_segment_is_refused() -> None:
    """The author's fault, said as such."""
    catalog = catalog_of(make=lambda product: {"SKILL.md": skill_md("other")})
    for ask in (catalog.get_skill, catalog.read_file):
        with pytest.raises(UpstreamError) as caught:
            await ask(PUMP)
        assert caught.value.reference == "generator-failed"
        assert "docs/pump" in caught.value.message
        assert "other" in caught.value.message


async def sleeps(product: str) -> Files:
    await anyio.sleep_forever()
    raise AssertionError


@rule("B4")
async def test_a_function_that_hangs_is_given_up_after_the_time_limit() -> None:
    catalog = catalog_of(make=sleeps, limits=Limits(max_generate_seconds=0.01))
    with pytest.raises(UpstreamError) as caught:
        await catalog.get_skill(PUMP)
    assert caught.value.reference == "generator-failed"
    assert "0.01" in caught.value.message


@rule("F7")
@pytest.mark.parametrize(("made", "detail"), [({}, "SKILL.md"), (7, "int")], ids=["no-skill-md", "not-files"])
async def test_a_function_that_fails_costs_its_own_skill(made: object, detail: str) -> None:
    with pytest.raises(UpstreamError) as caught:
        await catalog_of(make=lambda product: made).get_skill(PUMP)
    assert caught.value.reference == "generator-failed"
    assert detail in caught.value.message


@rule("T1")
@pytest.mark.parametrize("answer", [7, "pump"], ids=["number", "text"])
async def test_a_completion_that_is_no_list_is_an_error(answer: Any) -> None:
    [template] = catalog_of(lambda beginning: answer).templates()
    with pytest.raises(UpstreamError) as caught:
        await template.complete("product", "p")
    assert caught.value.reference == "generator-failed"
    assert type(answer).__name__ in caught.value.message


WRONG: dict[str, tuple[str, Any, Any]] = {
    "no-variable": ("docs/pump", {}, manual),
    "part-of-a-segment": ("docs/a-{product}", PRODUCTS, manual),
    "variable-twice": ("{product}/{product}", PRODUCTS, manual),
    "empty-segment": ("docs//{product}", PRODUCTS, manual),
    "values-missing": ("docs/{product}", {}, manual),
    "values-of-another": ("docs/{product}", {**PRODUCTS, "other": ["a"]}, manual),
    "values-text": ("docs/{product}", {"product": "pump"}, manual),
    "values-empty": ("docs/{product}", {"product": []}, manual),
    "value-unsafe": ("docs/{product}", {"product": ["a/b"]}, manual),
    "takes-nothing": ("docs/{product}", PRODUCTS, lambda: None),
    "no-signature": ("docs/{product}", PRODUCTS, dict),
    "takes-another": ("docs/{product}", PRODUCTS, lambda product, name: {}),
}


@rule("I1", "U7")
@pytest.mark.parametrize(("path", "values", "make"), WRONG.values(), ids=WRONG)
def test_a_wrong_template_is_refused_when_it_is_declared(path: str, values: Any, make: Any) -> None:
    catalog = TemplateCatalog()
    with pytest.raises(FormatError):
        catalog.add(path, make, values=values, description="")
    assert catalog.templates() == []


@rule("N1", "E4")
def test_no_two_templates_can_make_one_path() -> None:
    """Nor one inside the other's."""
    catalog = catalog_of()
    for path in ("docs/{product}", "{product}/pump", "docs/{product}/more", "{product}"):
        with pytest.raises(FormatError) as caught:
            catalog.add(path, manual, values=PRODUCTS, description="")
        assert (caught.value.reference, caught.value.rule) == ("template-invalid", "N1")
    catalog.add("other/{product}", manual, values=PRODUCTS, description="")
    assert [template.name for template in catalog.templates()] == ["docs", "other"]


@rule("N1", "I1")
async def test_a_mount_puts_its_prefix_before_a_template() -> None:
    """And its label, where the first name is another source's."""
    mounts = [Mount(catalog_of(), "a", "acme"), Mount(catalog_of(), "docs", "docs"), Mount(catalog_of(few), "b")]
    catalog = CombinedCatalog(mounts)
    paths = ["acme/docs/{product}", "docs/docs/{product}", "b/docs/{product}"]
    assert [template.path for template in catalog.templates()] == paths
    for path in paths:
        path = path.replace("{product}", "pump")
        assert (await catalog.get_skill(f"skill://{path}/SKILL.md")).path == path
        assert (await catalog.read_file(f"skill://{path}/parts/list.md")).data == b"parts of pump"
    assert await catalog.suggest("acme/") == ["acme/docs/pump", "acme/docs/valve"]


@rule("N1")
async def test_a_name_of_a_template_and_of_a_folder_collide_like_any_other() -> None:
    """Nothing is shadowed, and to list makes nothing."""
    folder = MemoryCatalog([Skill(f"docs/{name}", {"SKILL.md": skill_md(name)}) for name in ("pump", "lever")])
    catalog = CombinedCatalog([Mount(folder, "files"), Mount(catalog_of(), "made")])
    assert [entry.path async for entry in catalog.entries()] == ["docs/lever", "files/docs/pump"]
    assert calls == []
    with pytest.raises(NotFoundError) as caught:
        await catalog.get_skill(PUMP)
    assert caught.value.reference == "skill-ambiguous"
    assert (await catalog.get_skill("skill://made/docs/pump/SKILL.md")).is_dynamic


@rule("I1", "G1")
async def test_a_template_is_visible_only_to_callers_who_may_see_all_its_skills() -> None:
    inner = catalog_of()
    assert len(VisibleCatalog(inner, ["docs"]).templates()) == 1
    for prefixes in (["other"], ["docs/pump"], ["doc"]):
        assert VisibleCatalog(inner, prefixes).templates() == []
    part = VisibleCatalog(inner, ["docs/pump"])
    assert (await part.get_skill(PUMP)).name == "pump"
    for ask in (part.get_skill, part.read_file):
        with pytest.raises(NotFoundError):
            await ask("skill://docs/valve/SKILL.md")
    assert VisibleCatalog(catalog_of(path="{product}"), ["pump"]).templates() == []


@rule("B2")
async def test_the_number_of_remembered_entries_is_bounded() -> None:

    async def make(product: str) -> Files | None:  # a coroutine function needs no thread
        return manual(product)

    catalog = catalog_of(few, make)
    for number in range(257):
        await catalog.get_skill(f"skill://docs/p{number}/SKILL.md")
    assert len(calls) == 257
    await catalog.peek_skill("skill://docs/p1/SKILL.md")
    assert len(calls) == 257
    await catalog.peek_skill("skill://docs/p0/SKILL.md")
    assert len(calls) == 258
