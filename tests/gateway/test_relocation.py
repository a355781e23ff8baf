"""Files of skills that an upstream knows by name, wherever it has them: served inside the skill."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import HostileServer
from adversarial.named_servers import speak_native, speak_sep2076
from gateway.stage import client_of, flat_skill, gateway_of, source, until
from rules import rule
from skillwire import MemoryCatalog
from skillwire.catalog.verification import verify_catalog
from skillwire.errors import NotFoundError, VerificationError
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.skill import parse_skill_md
from skillwire.skill.uri import skill_md_uri
from skillwire.wire import meta as provenance
from skillwire.wire.meta import DIGEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio
FLAT, NOTES = "skill://acme/flat/SKILL.md", "skill://acme/flat/docs/notes.md"


def named_server(*files: dict[str, Any]) -> HostileServer:
    """A server of sep-2076 that has the files of its one skill anywhere."""
    server = HostileServer()
    server.capabilities = {"resources": {}, "skills": {}, "experimental": {"skills": {}}}
    server.answers["skills/list"] = {"skills": [{"name": "flat", "description": "Does one thing well."}]}
    server.answers["skills/get"] = {"instructions": "See docs/notes.md.\n", "files": list(files)}
    server.files = {file["uri"]: file["uri"].encode() for file in files}
    return server


def file(name: str, uri: str, **said: Any) -> dict[str, Any]:
    return {"name": name, "uri": uri, **({"_meta": said} if said else {})}


SPEAKS = '[upstream.acme]\ndialect = "sep-2076"\n'


@rule("P2", "P4", "U5", "U6")
async def test_files_are_where_the_instructions_look_for_them(state: Path) -> None:
    """Under their names, and read by the upstream's own URIs."""
    server = named_server(file("docs/notes.md", "wiki://pages/17"))
    async with gateway_of(state, {"acme": server}, SPEAKS) as gateway, client_of(gateway) as client:
        assert (await client.read_unverified(NOTES)).data == b"wiki://pages/17"
        children = await client.read_directory("skill://acme/flat/docs")
        assert [child.uri for child in children] == [NOTES]
        assert server.read_uris() == ["wiki://pages/17"]
        with pytest.raises(NotFoundError):
            await gateway.catalog.read_file("skill://acme/flat/docs/other.md")
        with pytest.raises(NotFoundError):
            await gateway.catalog.read_file("skill://acme/wiki:/pages/17")
        assert server.read_uris() == ["wiki://pages/17"]


@rule("N1", "U7", "B5")
async def test_no_file_is_lost_whatever_it_is_called(state: Path) -> None:
    """A name that is not a path, or is taken, is replaced."""
    server = named_server(
        file("a.md", "wiki://one/x"),
        file("A.md", "wiki://two/y"),
        file("../out", "wiki://three/z.md"),
        file("SKILL.md", "wiki://four/SKILL.md"),
        file("a.md", "wiki://five/a.md"),
    )
    async with gateway_of(state, {"acme": server}, SPEAKS) as gateway:
        entry = await gateway.catalog.get_skill(FLAT)
        paths = [each.uri.removeprefix("skill://acme/flat/") for each in entry.files]
        assert paths == ["a.md", "y", "z.md", "wiki:/four/SKILL.md", "wiki:/five/a.md"]
        read = [(await gateway.catalog.read_file(each.uri)).data.decode() for each in entry.files]
        assert read == list(server.files)


@rule("O3")
async def test_a_file_of_the_machine_is_none_of_the_skill(state: Path) -> None:
    server = named_server(file("passwd", "file:///etc/passwd"), file("ok", "wiki://ok/ok"))
    async with gateway_of(state, {"acme": server}, SPEAKS) as gateway:
        entry = await gateway.catalog.get_skill(FLAT)
        assert [each.uri for each in entry.files] == ["skill://acme/flat/ok"]
        with pytest.raises(NotFoundError):
            await gateway.catalog.read_file("skill://acme/flat/passwd")
        assert server.read_uris() == []


@rule("V1")
async def test_what_is_promised_about_a_file_is_verified(state: Path) -> None:
    """Servers of ours promise digests, also here; and a lie about one is not passed on."""
    upstream = build_server(Skills(MemoryCatalog([flat_skill()]), dialects=Dialects("sep-2076", "never")))
    async with gateway_of(state, {"acme": upstream}) as gateway:
        entry = await gateway.catalog.get_skill(FLAT)
        [skill_md, notes] = entry.files
        assert (skill_md.uri, notes.uri) == (FLAT, "skill://acme/flat/notes.md")
        assert notes.digest is not None
        assert (await gateway.catalog.read_file(notes.uri)).data == b"notes\n"
    lying = named_server(file("notes", "wiki://notes/1", **{DIGEST: f"sha256:{'0' * 64}"}))
    async with gateway_of(state / "lying", {"acme": lying}, SPEAKS) as gateway:
        with pytest.raises(VerificationError):
            await gateway.catalog.read_file("skill://acme/flat/notes")


@rule("V7", "E2", "V1")
async def test_a_snapshot_has_all_of_it(state: Path) -> None:
    """Then it is a skill like any other."""
    server = named_server(file("docs/notes.md", "wiki://pages/17"))
    async with gateway_of(state, {"acme": server}, f'{SPEAKS}materialize = ["flat"]') as gateway:

        async def is_taken() -> bool:
            return provenance.SNAPSHOT in (await gateway.catalog.get_skill(FLAT)).meta.meta

        await until(gateway.catalog, is_taken)
        entry = await gateway.catalog.get_skill(FLAT)
        assert sorted(each.uri for each in entry.files) == [FLAT, NOTES]
        assert (await verify_catalog(gateway.catalog)).failures == []
        assert source(gateway, "acme").dialect == "sep-2076"


@rule("U3", "V4", "N1")
@pytest.mark.parametrize("name", ["acme/refunds", "Refunds Helper/refunds"], ids=["path", "odd prefix"])
@pytest.mark.parametrize("speak", [speak_sep2076, speak_native], ids=["sep-2076", "native"])
async def test_the_last_segment_is_the_name_whatever_the_upstream_uses(
    speak: Callable[[HostileServer], Any], name: str, state: Path
) -> None:
    """The ``SKILL.md`` has exactly the fields of its entry, so that a host of the gateway can load it."""
    server = HostileServer()
    speak(server)
    odd = 'Pays "back": {}\u2028\x7f\N{PILE OF POO}---'
    fields = {"title": "T", "description": odd, "version": "1", "_meta": {"com.example/a": 1}}
    server.answers["skills/list"] = {"skills": [{"name": name, **fields}]}
    method = "skills/get" if speak is speak_sep2076 else "skills/activate"
    server.answers[method] = {"instructions": "---\n\nPay back."}
    async with gateway_of(state, {"acme": server}) as gateway:
        [entry] = [entry async for entry in gateway.catalog.entries()]
        got = await gateway.catalog.get_skill(entry.uri)
        assert entry.path == f"acme/{name}"
        assert entry.name == got.name == name.rpartition("/")[2]
        document = parse_skill_md((await gateway.catalog.read_file(entry.uri)).data)
        assert document.frontmatter == entry.frontmatter == got.frontmatter
        assert document.body.endswith("---\n\nPay back.")


@rule("F2", "F7")
@pytest.mark.parametrize(
    "name", ["Refunds Helper", "refünds", "a:b", "x" * 65], ids=["blank", "umlaut", "colon", "long"]
)
@pytest.mark.parametrize("speak", [speak_sep2076, speak_native], ids=["sep-2076", "native"])
async def test_a_name_that_no_skill_may_have_is_reported_and_not_published(
    speak: Callable[[HostileServer], Any], name: str, state: Path
) -> None:
    server = HostileServer()
    speak(server)
    good = {"name": "refunds", "description": "Pays back."}
    server.answers["skills/list"] = {"skills": [good, {"name": name, "description": "Pays back."}]}
    async with gateway_of(state, {"acme": server}) as gateway:
        assert [entry.path async for entry in gateway.catalog.entries()] == ["acme/refunds"]
        [problem] = await gateway.catalog.problems()
        assert (problem.reference, problem.broken) == ("entry-invalid", "F2")
        with pytest.raises(NotFoundError):
            await gateway.catalog.get_skill(skill_md_uri(f"acme/{name}"))


@rule("P2")
async def test_a_skill_that_needs_arguments_is_reported_and_not_published(state: Path) -> None:
    """A client of a gateway cannot pass them."""
    server = HostileServer()
    speak_sep2076(server)
    async with gateway_of(state, {"acme": server}) as gateway:
        assert [entry.path async for entry in gateway.catalog.entries()] == ["acme/refunds"]
        assert [problem.broken for problem in await gateway.catalog.problems()] == ["P2"]
