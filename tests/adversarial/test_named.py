"""Servers that know skills by name: what works, and what they cannot talk us into (P1–P5, M1–M4, V7, O3, B1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.expecting import listed, only, refused
from adversarial.named_servers import GUIDE, speak_native, speak_sep2076
from rules import rule
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, VerificationError
from skillwire.skill.entry import digest_of
from skillwire.types import RemoteCatalog
from skillwire.wire.meta import DIGEST, SIZE

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

REFUNDS, WEATHER = "named://refunds/SKILL.md", "named://weather/SKILL.md"


@rule("P1")
async def test_skills_are_listed_by_name_with_all_their_fields(server: HostileServer) -> None:
    """Page by page; nothing is promised, and every field survives."""
    speak_sep2076(server)
    async with server.connect(dialect="sep-2076") as client:
        refunds, weather = await listed(client)
        assert (refunds.uri, weather.uri) == (REFUNDS, WEATHER)
        assert refunds.frontmatter["version"] == "1.2"
        assert weather.frontmatter["tags"] == ["sky"]
        assert refunds.gaps == {"manifest", "digest", "size", "frontmatter"}


@rule("P2")
async def test_a_skill_is_got_by_name_with_arguments(server: HostileServer) -> None:
    speak_sep2076(server)
    async with server.connect(dialect="sep-2076") as client:
        refunds = await client.get_named("refunds")
        assert (refunds.instructions, refunds.dependencies) == ("Pay back.\n", {"tools": ["pay"]})
        weather = await client.get_named("weather", {"city": "Bern"})
        assert (weather.instructions, weather.description) == ("The weather in Bern.\n", "Tells it.")
        with refused(NotFoundError, "not-served") as caught:
            await client.get_named("weather")
        assert "missing required argument: city" in caught.value.message  # the server's words
        with refused(NotFoundError, "not-served"):
            await client.get_named("nothing")


@rule("P4", "V7")
async def test_files_of_a_named_skill_are_read_unverified_only(server: HostileServer) -> None:
    """They are in no listing, and nothing is promised about them."""
    speak_sep2076(server)
    async with server.connect(dialect="sep-2076") as client:
        entry = await client.get_skill(REFUNDS)
        assert [file.uri for file in entry.files] == [GUIDE]
        for ask in (client.read_skill(entry), client.read_resource(entry, GUIDE)):
            with pytest.raises(VerificationError):
                await ask
        assert server.read_uris() == []
        assert (await client.read_unverified(GUIDE)).data == b"# Guide\n"
        assert (await client.read_unverified(REFUNDS)).data == b"Pay back.\n"


@rule("P4", "V1", "R4")
async def test_a_file_is_verified_where_the_server_says_its_digest(server: HostileServer) -> None:
    """What is no digest promises nothing."""
    speak_sep2076(server)
    honest = {DIGEST: digest_of(b"# Guide\n"), SIZE: 8}
    said: dict[str, Any] = {"_meta": honest}
    server.answers["skills/get"] = lambda _: {"instructions": "Do.", "files": [{"uri": GUIDE, **said}]}
    lies = {"digest-mismatch": {DIGEST: digest_of(b"x"), SIZE: 8}, "size-mismatch": {**honest, SIZE: 9}}
    async with server.connect(dialect="sep-2076") as client:
        entry = await client.get_skill(REFUNDS)
        assert (await client.read_resource(entry, GUIDE)).data == b"# Guide\n"
        for reference, lie in lies.items():
            said["_meta"] = lie
            with refused(VerificationError, reference, "V1"):
                await client.read_resource(await client.get_skill(REFUNDS), GUIDE)
        for nothing in ({}, [], None, {DIGEST: "md5:1"}, {DIGEST: 7, SIZE: -1}):
            said["_meta"] = nothing
            with refused(VerificationError, "digest-unpromised", "V1"):
                await client.read_resource(await client.get_skill(REFUNDS), GUIDE)


@rule("P1", "N1")
async def test_a_name_may_be_a_path(server: HostileServer) -> None:
    asked: list[Any] = []

    def get(params: dict[str, Any]) -> Any:
        asked.append(params["name"])
        return {"instructions": "Do."}

    server.capabilities = {"skills": {}}
    server.answers["skills/list"] = {"skills": [{"name": "acme/refunds", "description": "D"}]}
    server.answers["skills/get"] = get
    async with server.connect(dialect="sep-2076") as client:
        assert (await only(client)).uri == "named://acme/refunds/SKILL.md"
        assert (await client.get_skill("named://acme/refunds/SKILL.md")).name == "acme/refunds"
        assert (await client.read_unverified("named://acme/refunds/SKILL.md")).data == b"Do."
    assert set(asked) == {"acme/refunds"}


@rule("P2")
async def test_a_skill_that_needs_arguments_is_got_without_asking_for_it(server: HostileServer) -> None:
    """Its files depend on arguments that nobody has given."""
    speak_sep2076(server)
    async with server.connect(dialect="sep-2076") as client:
        assert (await client.get_skill(WEATHER)).name == "weather"
    assert "skills/get" not in server.methods()


@rule("P2", "P4")
async def test_a_skill_that_needs_arguments_is_got_with_them(server: HostileServer) -> None:
    """Its files are those of these arguments."""
    speak_sep2076(server)
    asked: list[Any] = []

    def get(params: dict[str, Any]) -> Any:
        asked.append(params.get("arguments"))
        return {"instructions": "Do.", "files": [{"uri": GUIDE, "name": "guide"}]}

    server.answers["skills/get"] = get
    async with server.connect(dialect="sep-2076") as client:
        entry = await client.get_skill(WEATHER, {"city": "Bern"})
        assert [file.uri for file in entry.files] == [GUIDE]
        assert (entry.arguments, asked) == ({"city": "Bern"}, [{"city": "Bern"}])
        with refused(ProtocolError, "argument-missing", "P2"):
            await client.get_skill(WEATHER, {"town": "Bern"})


@rule("P4", "O3")
@pytest.mark.parametrize("uri", ["FILE:/etc/passwd", "no uri"], ids=["file", "no-uri"])
async def test_a_file_of_the_machine_is_left_out(server: HostileServer, uri: str) -> None:
    """The honest files stay, also in a catalog."""
    speak_sep2076(server)
    files = [{"name": "x", "uri": uri}, {"name": "y"}, {"name": "guide", "uri": GUIDE}]
    server.answers["skills/get"] = {"instructions": "Do.", "files": [*files, 7]}
    async with server.connect(dialect="sep-2076") as client:
        assert [file.uri for file in (await client.get_skill(REFUNDS)).files] == [GUIDE]
        catalog = RemoteCatalog(client, allow_unverified=True)
        assert (await catalog.read_file(REFUNDS)).data.endswith(b"---\n\nDo.")
    assert server.read_uris() == []


NAMES: list[Any] = [
    "",
    "a/../b",
    "a//b",
    "x" * 5000,
    "a/" * 200 + "a",
    "a\\b",
    "a\x00b",
    7,
]


@rule("P1", "M1", "U7")
@pytest.mark.parametrize("dialect", ["sep-2076", "native"])
async def test_names_that_cannot_be_names_are_reported_and_left_out(server: HostileServer, dialect: Any) -> None:
    """The other skills are listed."""
    wrong = [*({"name": name} for name in NAMES), "text", {"name": "no-words", "description": 7}]
    server.answers["skills/list"] = {"skills": [*wrong, {"name": "good", "description": "D"}]}
    async with server.connect(dialect=dialect) as client:
        assert (await only(client)).name == "good"
        assert len(client.problems) == len(wrong)
        assert all(problem.rule and problem.hint for problem in client.problems)


@rule("P2")
@pytest.mark.parametrize("answer", [{}, {"instructions": ["a"]}], ids=["none", "no-text"])
async def test_an_answer_without_instructions_is_refused(server: HostileServer, answer: Any) -> None:
    speak_sep2076(server)
    server.answers["skills/get"] = answer
    async with server.connect(dialect="sep-2076") as client:
        with refused(ProtocolError, "answer-invalid", "P2"):
            await client.get_named("refunds")


@rule("B1")
async def test_instructions_above_the_bound_are_refused(server: HostileServer) -> None:
    speak_sep2076(server)
    server.answers["skills/get"] = {"instructions": "x" * 70_000}
    async with server.connect(dialect="sep-2076") as client:
        with refused(LimitError, "file-too-large", "B1"):
            await client.read_unverified(REFUNDS)


@rule("M1", "M2", "M3")
async def test_an_activated_skill_is_callable(server: HostileServer) -> None:
    """Its tool, its prompt and its resource; before and after they are not there."""
    active = speak_native(server)
    async with server.connect(dialect="native") as client:
        assert (await only(client)).name == "refunds"
        assert not active
        skill = await client.activate("refunds")
        assert skill.instructions == "Pay back."
        assert skill.tools[0]["inputSchema"] == {"type": "object"}
        assert [nested["name"] for nested in skill.skills] == ["nested"]
        assert (await skill.call_tool("pay", {"amount": 1}))["content"][0]["text"] == "paid"
        assert (await skill.get_prompt("apologise", {"to": "you"}))["messages"][0]["content"]["text"] == "Sorry"
        assert (await skill.read_resource("rules://refunds"))["contents"][0]["text"] == "No refunds on Sundays."
        [call] = [ask for ask in server.asked if ask.method == "tools/call"]
        assert (call.params["name"], call.params["arguments"]) == ("pay", {"amount": 1})
        await client.deactivate("refunds")
        assert not active
        with refused(NotFoundError, "not-served"):
            await skill.call_tool("pay")


@rule("M3")
async def test_what_a_skill_does_not_name_is_not_even_asked_for(server: HostileServer) -> None:
    """Another tool of the same server, or a file of the machine."""
    speak_native(server)
    async with server.connect(dialect="native") as client:
        skill = await client.activate("refunds")
        for ask in (
            skill.call_tool("delete_everything"),
            skill.get_prompt("pay"),
            skill.read_resource("rules://other"),
            skill.read_resource("file:///etc/passwd"),
        ):
            with refused(NotFoundError, "not-scoped", "M3"):
                await ask
    assert not {"tools/call", "prompts/get", "resources/read"} & set(server.methods())


@rule("M3", "O3")
async def test_a_file_of_the_machine_is_not_read_though_a_skill_names_it(server: HostileServer) -> None:
    uri = "File:/etc/passwd"
    speak_native(server)
    server.answers["skills/activate"] = {"instructions": "Read.", "resources": [{"uri": uri}]}
    async with server.connect(dialect="native") as client:
        skill = await client.activate("refunds")
        with refused(FormatError, "uri-invalid", "O3"):
            await skill.read_resource(uri)
    assert server.read_uris() == []


@rule("M2")
@pytest.mark.parametrize(
    "answer",
    [{"instructions": 7, "tools": "all"}, {"messages": [7], "tools": [7, {}]}],
    ids=["no-lists", "lists-of-other-things"],
)
async def test_an_activation_of_another_shape_names_nothing(server: HostileServer, answer: Any) -> None:
    """Nothing is called, nothing breaks."""
    speak_native(server)
    server.answers["skills/activate"] = answer
    async with server.connect(dialect="native") as client:
        skill = await client.activate("refunds")
        assert skill.instructions == ""
        with refused(NotFoundError, "not-scoped", "M3"):
            await skill.call_tool("pay")


@rule("K2")
async def test_the_words_of_another_dialect_are_refused(server: HostileServer) -> None:
    """A server is asked for what its dialect has."""
    async with server.connect(dialect="extension") as client:
        for ask in (client.get_named("flat"), client.activate("flat"), client.deactivate("flat")):
            with refused(ProtocolError, "dialect-other", "K2"):
                await ask
    assert server.methods() == []


@rule("P5", "M4")
@pytest.mark.parametrize("dialect", ["sep-2076", "native"])
async def test_a_server_that_says_that_its_skills_changed_is_asked_again(
    process: HostileServer, dialect: Any
) -> None:
    process.answers["skills/list"] = {"skills": [{"name": "old"}]}
    async with process.connect(dialect=dialect) as client:
        catalog = RemoteCatalog(client)
        async with anyio.create_task_group() as group:
            with catalog.changes() as changes:
                group.start_soon(catalog.follow)
                await process.until(lambda: process.methods().count("skills/list") == 2)
                process.answers["skills/list"] = {"skills": [{"name": "old"}, {"name": "new"}]}
                await process.notify("notifications/skills/list_changed")
                with anyio.fail_after(20):
                    added = set[str]()
                    while "named://new/SKILL.md" not in added:
                        added |= (await anext(changes)).added
            group.cancel_scope.cancel()
    assert added == {"named://old/SKILL.md", "named://new/SKILL.md"}


ALIKE = {
    "blank-behind": "pay ",
    "blank-before": " pay",
    "two-blanks": "pay  now",
    "tab": "pay\tnow",
    "long": "p" * 65,
    "long in a folder": "acme/" + "p" * 65,
    "longest": "a/" * 128 + "pay",
}


@rule("N1", "B1", "F2", "F7", "P1", "M1")
@pytest.mark.parametrize("dialect", ["sep-2076", "native"])
@pytest.mark.parametrize("name", ALIKE.values(), ids=ALIKE)
async def test_a_name_that_looks_like_another_or_is_too_long_is_reported_and_not_listed(
    server: HostileServer, dialect: Any, name: str
) -> None:
    """No prompt grows by it, and nobody takes it for the other. Other names that F2 forbids are listed (F7)."""
    lenient = ["p" * 64, "acme/" + "p" * 64, "Pay", "pay now", "-pay"]
    server.answers["skills/list"] = {"skills": [{"name": each} for each in ("pay", name, *lenient)]}
    async with server.connect(dialect=dialect) as client:
        assert [entry.name for entry in await listed(client)] == ["pay", *lenient]
        assert [problem.reference for problem in client.problems] == ["entry-invalid"]
