"""Skills made from values in their path, in every dialect (I1, T1, G1)."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from http_server import serving_http
from interaction.conftest import Wire
from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.client.skills import SkillsClient
from skillwire.errors import FormatError
from skillwire.server.skills import Skills, build_server
from skillwire.types import Dialects
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.server.dialect import Endpoint

pytestmark = pytest.mark.anyio
DOCS, ORDERS = "skill://docs/{product}/SKILL.md", "skill://acme/orders/{order}/SKILL.md"


def declared(*prefixes: str, endpoint: Endpoint = "extension") -> Skills:
    source = MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat")})])
    visible = (lambda _: prefixes) if prefixes else None
    skills = Skills(source, visible=visible, dialects=Dialects(endpoint, fallback="always"))

    @skills.template("docs/{product}", values={"product": ["pump", "valve", "wrong"]}, description="A manual.")
    def manual(product: str) -> dict[str, Any]:
        name = "other" if product == "wrong" else product
        return {"SKILL.md": skill_md(name, body="Turn it.\n"), "parts/list.md": f"parts of {product}"}

    async def orders(beginning: str) -> list[str]:
        return [f"{beginning}{number}" for number in range(120)]

    @skills.template("acme/orders/{order}", values={"order": orders}, description="One order.")
    async def order(order: str) -> Skill | None:
        return Skill(order, {"SKILL.md": skill_md(order)}) if order.startswith("o") else None

    return skills


@asynccontextmanager
async def opened(
    mode: str, place: str = "memory", *prefixes: str, endpoint: Endpoint = "extension"
) -> AsyncIterator[Wire]:
    if place == "memory":
        async with Client(build_server(declared(*prefixes, endpoint=endpoint)), mode=mode) as client:
            yield Wire(client, "modern")
    else:
        async with serving_http(build_server(declared(*prefixes))) as url:
            path = "" if endpoint == "extension" else f"/{endpoint}"
            async with Client(url + path, mode=mode) as client:
                yield Wire(client, "modern")


async def completed(wire: Wire, uri: str, name: str, value: str) -> dict[str, Any]:
    reference, argument = {"type": "ref/resource", "uri": uri}, {"name": name, "value": value}
    return (await wire.call("completion/complete", ref=reference, argument=argument))["completion"]


async def index_of(wire: Wire) -> list[dict[str, Any]]:
    [content] = (await wire.call("resources/read", uri="skill://index.json"))["contents"]
    return json.loads(content["text"])["skills"]


@rule("G1", "E2", "R1", "D1", "L2")
async def test_a_skill_of_a_template_is_got_and_read_and_not_listed(mode: str) -> None:
    async with opened(mode) as wire:
        listed = (await wire.call("skills/list"))["skills"]
        assert [entry["uri"] for entry in listed] == ["skill://flat/SKILL.md"]
        got = (await wire.call("skills/get", uri="skill://docs/pump/SKILL.md"))["skill"]
        assert (got["frontmatter"]["name"], got["resources"]) == ("pump", "dynamic")
        read = await wire.call("resources/read", uri="skill://docs/valve/parts/list.md")
        assert read["contents"][0]["text"] == "parts of valve"
        children = (await wire.call("resources/directory/read", uri="skill://docs/pump"))["resources"]
        assert [child["name"] for child in children] == ["SKILL.md", "parts"]
        assert (await wire.call("skills/get", uri="skill://acme/orders/o7/SKILL.md"))["skill"]


@rule("G1")
async def test_what_no_value_makes_is_unknown_and_a_wrong_name_is_the_servers_fault(mode: str) -> None:
    """-32602. U3: -32603, which names both."""
    async with opened(mode) as wire:
        for path in ("docs/lever", "acme/orders/x", "docs", "docs/pump/parts"):
            with pytest.raises(MCPError) as caught:
                await wire.call("skills/get", uri=f"skill://{path}/SKILL.md")
            assert caught.value.error.code == INVALID_PARAMS, path
            with pytest.raises(MCPError) as caught:
                await wire.call("resources/read", uri=f"skill://{path}/SKILL.md")
            assert caught.value.error.code == INVALID_PARAMS, path
        with pytest.raises(MCPError, match=r"'other'.*'wrong'") as caught:  # both names
            await wire.call("skills/get", uri="skill://docs/wrong/SKILL.md")
        assert caught.value.error.code == INTERNAL_ERROR


@rule("T1")
async def test_templates_are_listed_and_completed(mode: str) -> None:
    """After the one for every file; from a list, or from a function, at most 100."""
    async with opened(mode) as wire:
        first, docs, orders = (await wire.call("resources/templates/list"))["resourceTemplates"]
        assert first["uriTemplate"] == "skill://{+path}"
        assert docs == {
            "uriTemplate": DOCS,
            "name": "docs",
            "description": "A manual.",
            "mimeType": "text/markdown",
        }
        assert (orders["uriTemplate"], orders["name"]) == (ORDERS, "acme-orders")
        assert await completed(wire, DOCS, "product", "pu") == {"values": ["pump"], "hasMore": False}
        assert (await completed(wire, DOCS, "order", "pu"))["values"] == []
        many = await completed(wire, ORDERS, "order", "o")
        assert (len(many["values"]), many["values"][0], many["hasMore"]) == (100, "o0", True)
        assert (await completed(wire, first["uriTemplate"], "path", "docs/v"))["values"] == ["docs/valve/SKILL.md"]


@rule("I1")
async def test_the_index_ends_with_the_templates_and_our_client_says_so(mode: str) -> None:
    """A warning, and every skill beside them."""
    async with opened(mode) as wire:
        flat, docs, orders = await index_of(wire)
        assert flat["name"] == "flat"
        kind = "mcp-resource-template"
        assert docs == {"name": "docs", "type": kind, "description": "A manual.", "url": DOCS}
        assert (orders["type"], orders["url"]) == (kind, ORDERS)
        client = SkillsClient(wire.client, dialect="index")
        assert [entry.path async for entry in client.list_skills()] == ["flat"]
        assert [(problem.reference, problem.severity) for problem in client.problems] == [
            ("entry-template", "warning")
        ] * 2


@rule("P1", "M1")
@pytest.mark.parametrize("place", ["memory", "http"])
async def test_other_dialects_have_them_by_path(mode: str, place: str) -> None:
    """A path always works."""
    async with opened(mode, place) as wire:
        answer = await wire.call("tools/call", name="load_skill", arguments={"skill": "docs/pump"})
        assert "Turn it." in json.dumps(answer)
    async with opened(mode, place, endpoint="sep-2076") as wire:
        assert "Turn it." in json.dumps(await wire.call("skills/get", name="docs/pump"))
    async with opened(mode, place, endpoint="native") as wire:
        answer = await wire.call("skills/activate", name="docs/pump")
        assert "Turn it." in json.dumps(answer)


@rule("I1", "T1", "G1")
async def test_there_is_no_trace_of_a_template_that_one_may_not_see(mode: str) -> None:
    """It answers like what does not exist."""
    async with opened(mode, "memory", "flat", "docs") as wire:
        listed = (await wire.call("resources/templates/list"))["resourceTemplates"]
        assert [item["uriTemplate"] for item in listed] == ["skill://{+path}", DOCS]
        assert [item["url"] for item in await index_of(wire)] == ["skill://flat/SKILL.md", DOCS]
        assert (await completed(wire, DOCS, "product", "v"))["values"] == ["valve"]
        errors = list[Any]()
        for template in (ORDERS, "skill://nothing/{order}/SKILL.md"):
            with pytest.raises(MCPError) as caught:
                await completed(wire, template, "order", "o")
            errors.append(caught.value.error)
        assert errors[0] == errors[1]
        for uri in ("skill://acme/orders/o7/SKILL.md", "skill://acme/orders/o7"):
            for method in ("skills/get", "resources/read", "resources/directory/read"):
                with pytest.raises(MCPError):
                    await wire.call(method, uri=uri)


@rule("G1")
async def test_templates_alone_beside_skills_and_declared_later_are_served() -> None:
    """Whatever else a server has."""
    skills = Skills()
    assert skills.catalog.templates() == ()
    add = skills.template("docs/{product}", values={"product": ["pump"]}, description="A manual.")
    add(lambda product: {"SKILL.md": skill_md(product)})
    assert (await skills.catalog.get_skill("skill://docs/pump/SKILL.md")).is_dynamic
    skills.skill("flat")(lambda: {"SKILL.md": skill_md("flat")})
    for path in ("docs/pump", "flat"):
        assert (await skills.catalog.get_skill(f"skill://{path}/SKILL.md")).path == path
    assert skills.catalog is skills.catalog
    with pytest.raises(FormatError):
        skills.template("docs", values={}, description="")(lambda: None)
