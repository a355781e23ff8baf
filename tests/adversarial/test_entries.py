"""Entries that break a rule: each is reported and spoils nothing else (E1–E6, E2b, U1, U3, U7, O3, G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import HostileServer
from adversarial.expecting import listed, only, refused
from rules import rule
from skillwire import Limits
from skillwire.errors import FormatError, ProtocolError, VerificationError
from skillwire.skill import digest_of
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

Entry = dict[str, Any]
DATA = skill_md("bad")
BAD = "skill://acme/bad/SKILL.md"


def bad(**changed: Any) -> Entry:
    """An honest entry with fields changed; ``...`` leaves one out."""
    entry = {
        "uri": BAD,
        "frontmatter": {"name": "bad", "description": "Does one thing well."},
        "resources": [resource()],
        **changed,
    }
    return {field: value for field, value in entry.items() if value is not ...}


def resource(**changed: Any) -> Entry:
    fields = {"uri": BAD, "digest": digest_of(DATA), "size": len(DATA), **changed}
    return {field: value for field, value in fields.items() if value is not ...}


def beside(uri: str) -> Entry:
    """An entry that lists its ``SKILL.md`` and something else."""
    return bad(resources=[resource(), resource(uri=uri)])


LIES: dict[str, tuple[str, Any]] = {
    # E1: the three fields
    "not an object": ("E1", "skill://acme/bad/SKILL.md"),
    "no uri": ("E1", bad(uri=...)),
    "no frontmatter": ("E1", bad(frontmatter=...)),
    "frontmatter that is text": ("E1", bad(frontmatter="name: bad")),
    "no name": ("E1", bad(frontmatter={"description": "D"})),
    "no description": ("E1", bad(frontmatter={"name": "bad"})),
    "a description that is a list": ("E1", bad(frontmatter={"name": "bad", "description": ["D"]})),
    # E2: resources
    "no resources": ("E2", bad(resources=...)),
    "resources that are null": ("E2", bad(resources=None)),
    "resources that are other text": ("E2", bad(resources="Dynamic")),
    "no resource at all": ("E2", bad(resources=[])),
    "a file listed twice": ("E2", bad(resources=[resource(), resource()])),
    "a file listed twice in two spellings": (
        "E2",
        bad(resources=[resource(), resource(uri="skill://acme/bad/SKILL%2Emd")]),
    ),
    "no SKILL.md among the resources": ("E2", bad(resources=[resource(uri="skill://acme/bad/notes.md")])),
    "SKILL.md in other letters": ("E2", bad(resources=[resource(uri="skill://acme/bad/skill.md")])),
    "a resource that is text": ("E1", bad(resources=[BAD])),
    # E3: digests and sizes
    "no digest": ("E3", bad(resources=[resource(digest=...)])),
    "an uppercase digest": ("E3", bad(resources=[resource(digest=digest_of(DATA).upper())])),
    "another algorithm": ("E3", bad(resources=[resource(digest="md5:" + "a" * 32)])),
    "no size beside files that have one": ("E3", bad(resources=[resource(size=...)])),
    "a negative size": ("E3", bad(resources=[resource(size=-1)])),
    "a size that is text": ("E3", bad(resources=[resource(size="12")])),
    # E4: everything inside the skill
    "a file of another skill": ("E4", beside("skill://acme/other/SKILL.md")),
    "a file above": ("E4", beside("skill://acme/notes.md")),
    "a file of a longer name": ("E4", beside("skill://acme/badly/notes.md")),
    "the folder itself": ("E4", beside("skill://acme/bad")),
    "a file of another scheme": ("E4", beside("https://acme/bad/notes.md")),
    # E6: how many
    "more files than we look at": ("E6", bad(resources=[resource(uri=f"{BAD}/{n}") for n in range(51)])),
    # U3: the name
    "a name that is not the last segment": ("U3", bad(frontmatter={"name": "good", "description": "D"})),
    "a name in other letters": ("U3", bad(frontmatter={"name": "Bad", "description": "D"})),
    # U1: the address
    "no SKILL.md in the uri": ("U1", bad(uri="skill://acme/bad")),
    "a SKILL.md without a skill": ("U1", bad(uri="skill://SKILL.md")),
    "a uri with a query": ("U1", bad(uri="skill://acme/bad/SKILL.md?x=1")),
    "a uri without a scheme": ("U1", bad(uri="acme/bad/SKILL.md")),
    "a uri of a mile": ("U1", bad(uri=f"skill://{'a/' * 3000}bad/SKILL.md")),
    # O3: files of a machine
    **{f"the uri {uri}": ("O3", bad(uri=uri)) for uri in ("file:///etc/bad/SKILL.md", "FILE:///bad/SKILL.md")},
    "a file of the machine": ("O3", beside("file:///etc/passwd")),
    "a file of the machine in capitals": ("O3", beside("File://acme/bad/x")),
    "a file of the machine without slashes": ("O3", beside("file:/etc/passwd")),
    # U7: ways out
    **{
        f"the way out {way}": ("U7", beside(f"skill://acme/bad/{way}"))
        for way in (
            "../other/x",
            "%2e%2e/other/x",
            "a%2F..%2F..%2Fx",
            "a\\..\\x",
            "a//x",
            "x%00",
            "x%ff",
            "x%zz",
        )
    },
}


@rule("E1", "E2", "E3", "E4", "E6", "U1", "U3", "U7", "O3")
async def test_an_invalid_entry_is_reported_and_its_page_is_listed(server: HostileServer) -> None:
    """One bad entry in the middle of a page, each of them in turn; more are in ``unit/skill/test_entry.py``."""
    server.add("last", {"SKILL.md": skill_md("last")})
    first, last = server.entries
    rules: dict[str, str] = {}
    async with server.connect() as client:
        for lie, (_, entry) in LIES.items():
            server.entries[:] = [first, entry, last]
            assert [entry.name for entry in await listed(client)] == ["flat", "last"], lie
            [problem] = client.problems
            rules[lie] = problem.rule
            assert (problem.severity, problem.refuses) == ("error", True), lie
            assert problem.message, lie
            assert problem.hint, lie
            assert problem.file, lie
    assert rules == {lie: rule for lie, (rule, _) in LIES.items()}
    assert server.read_uris() == []


@rule("E2", "G1")
async def test_an_invalid_answer_to_get_is_refused_with_its_rule(server: HostileServer) -> None:
    del server.entries[0]["resources"]
    server.entries.append(bad())
    async with server.connect() as client:
        assert [entry.name for entry in await listed(client)] == ["bad"]
        with refused(FormatError, "entry-invalid", "E2"):
            await client.get_skill("skill://flat/SKILL.md")


@rule("G1", "E1")
@pytest.mark.parametrize("answer", [{}, {"skill": "flat"}], ids=["no-skill", "text"])
async def test_an_answer_without_a_skill_is_refused(server: HostileServer, answer: Entry) -> None:
    server.answers["skills/get"] = answer
    async with server.connect(dialect="extension") as client:
        with refused(FormatError, "entry-invalid", "E1"):
            await client.get_skill("skill://flat/SKILL.md")


@rule("G1")
async def test_an_answer_about_another_skill_is_refused(server: HostileServer) -> None:
    """Asked for one, given another, however honest that one is."""
    server.answers["skills/get"] = {"skill": server.entries[0]}
    async with server.connect() as client:
        assert (await client.get_skill("skill://flat/SKILL.md")).name == "flat"
        with refused(ProtocolError, "entry-other", "G1"):
            await client.get_skill("skill://acme/flat/SKILL.md")


@rule("O3", "U7")
@pytest.mark.parametrize("uri", ["FILE://flat/SKILL.md", "skill://a/../flat/SKILL.md"], ids=["file", "way-up"])
async def test_a_skill_of_the_machine_is_not_even_asked_for(server: HostileServer, uri: str) -> None:
    async with server.connect(dialect="extension") as client:
        with pytest.raises(FormatError):
            await client.get_skill(uri)
    assert server.methods() == []


@rule("E5")
async def test_a_uri_that_is_listed_twice_counts_once(server: HostileServer) -> None:
    """The first one, and the second is reported; spelled in another way it is the same."""
    twice = {**server.entries[0], "frontmatter": {"name": "flat", "description": "another"}}
    again = {**twice, "uri": "skill://fl%61t/SKILL.md"}
    server.entries += [twice, again]
    async with server.connect() as client:
        assert (await only(client)).description == "Does one thing well."
        assert [(problem.reference, problem.rule) for problem in client.problems] == [("entry-repeated", "E5")] * 2


@rule("E2b", "V1", "V7")
async def test_the_generation_without_sizes_is_read_and_says_what_is_missing(server: HostileServer) -> None:
    """Digests still hold."""
    for item in server.entries[0]["resources"]:
        del item["size"]
    async with server.connect() as client:
        flat = await only(client)
        assert flat.gaps == {"size"}
        assert (await client.read_skill(flat)).uri == flat.uri
        server.files[flat.uri] += b"more"
        with refused(VerificationError, "digest-mismatch", "V1"):
            await client.read_skill(flat)


@rule("E2", "F2")
@pytest.mark.parametrize("sized", [True, False], ids=["sizes", "no sizes"])
@pytest.mark.parametrize(
    ("spoiled", "broken"),
    [
        ({"resources": ...}, "E2"),
        ({"uri": "skill://Bad/SKILL.md", "frontmatter": {"name": "Bad", "description": "d"}}, "F2"),
        ({"uri": "skill://b%20d/SKILL.md", "frontmatter": {"name": "b d", "description": "d"}}, "F2"),
        ({"uri": f"skill://{'b' * 65}/SKILL.md", "frontmatter": {"name": "b" * 65, "description": "d"}}, "F2"),
    ],
    ids=["no resources", "a capital", "a blank", "a long name"],
)
async def test_an_invalid_entry_is_never_loadable_whatever_the_others_look_like(
    server: HostileServer, sized: bool, spoiled: Entry, broken: str
) -> None:
    """Neither from a listing nor by its URI."""
    if not sized:
        for item in server.entries[0]["resources"]:
            del item["size"]
    entry = bad(**({"resources": "dynamic"} | spoiled))
    server.entries.append(entry)
    async with server.connect(dialect="extension") as client:
        assert (await only(client)).name == "flat"
        assert [problem.rule for problem in client.problems] == [broken]
        with refused(FormatError, "entry-invalid", broken):
            await client.get_skill(entry["uri"])


SIZELESS: dict[str, Callable[[Entry], object]] = {
    "a file without a size": lambda entry: entry["resources"][0].pop("size"),
    "an entry without resources": lambda entry: entry.pop("resources"),
}


@rule("E2", "E2b")
@pytest.mark.parametrize("lie", SIZELESS)
@pytest.mark.parametrize("page", [0, 1], ids=["same-page", "later-page"])
async def test_generations_are_not_mixed(server: HostileServer, lie: str, page: int) -> None:
    """Who has given sizes owes them, on the same page and on later ones, and to get."""
    spoiled = bad()
    SIZELESS[lie](spoiled)
    pages = {None: {"skills": server.entries, "nextCursor": "1"}, "1": {"skills": []}}
    pages[None if page == 0 else "1"]["skills"].append(spoiled)
    server.answers["skills/list"] = lambda params: pages[params.get("cursor")]
    server.answers["skills/get"] = {"skill": spoiled}
    async with server.connect(dialect="extension") as client:
        assert (await only(client)).gaps == frozenset()
        assert [problem.rule for problem in client.problems] == ["E3" if "file" in lie else "E2"]
        with refused(FormatError, "entry-invalid", "E3" if "file" in lie else "E2"):
            await client.get_skill(BAD)


@rule("E1")
async def test_unknown_fields_are_ignored(server: HostileServer) -> None:
    """Except in the frontmatter, which has everything that the author wrote."""
    entry = server.entries[0]
    entry["com.example/rating"] = {"stars": [5, None, True, 1.5]}
    entry["resources"][1]["mimeType"] = "text/markdown"
    entry["frontmatter"]["x-thing"] = {"deep": [1, "two"]}
    async with server.connect() as client:
        assert (await only(client)).frontmatter["x-thing"] == {"deep": [1, "two"]}
        assert await client.get_skill(entry["uri"]) == await only(client)
        assert await client.read_resource(await only(client), "skill://flat/notes.md")


@rule("E6")
async def test_a_host_accepts_what_the_extension_promises() -> None:
    """512 files and 16 MiB are no reason to decline."""
    server = HostileServer()
    entry = server.add("flat", {"SKILL.md": skill_md("flat"), **{f"{n:03}": b"" for n in range(511)}})
    entry["resources"][1]["size"] = 16 * 1024 * 1024
    async with server.connect(limits=Limits()) as client:
        skill = await only(client)
        assert len(skill.files) == 512
        assert skill.size > 16 * 1024 * 1024
        assert not client.problems
