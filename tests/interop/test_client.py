"""Our own client and six servers, five of which we did not write: the same tests for all, in both eras.

What differs between them stands in ``FACTS`` and ``DISPUTES``, and nowhere else. What they are does not depend on
the transport: a test of the flat tree runs over one of the two, unless it is marked ``@every_setting``.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import pytest

from interop.cells import DIAGONAL
from interop.explained import NOTES, hurt
from interop.honest import LARGE, TRAITS, by_path, files_by_skill, hashes, path_of, skills_of
from interop.running import Era, Transport
from rotation import every_setting
from rules import rule
from skillwire.client.connect import connect, list_many
from skillwire.client.remote import RemoteCatalog
from skillwire.errors import NotFoundError, ProtocolError, SkillwireError, VerificationError
from skillwire.skill import format_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from interop.cells import Record
    from interop.running import PeerServer, Serve, Served
    from skillwire.catalog.contract import Change
    from skillwire.client.dialects import DialectName
    from skillwire.client.skills import SkillsClient
    from skillwire.skill import SkillEntry
    from skillwire.skill.entry import Gap
    from trees import Tree

    ServedBy = Callable[[str, str], Served]

pytestmark = pytest.mark.anyio

Peer = Literal["skillwire", "typescript", "ext-skills", "ext-skills-0.12", "fastmcp", "fastmcp-old"]
PEERS: tuple[Peer, ...] = get_args(Peer)
OTHERS = PEERS[1:]
ERAS: tuple[Era, ...] = get_args(Era)
TRANSPORTS: tuple[Transport, ...] = get_args(Transport)

NOTHING: frozenset[Gap] = frozenset({"manifest", "digest", "size", "frontmatter"})
NO_SIZE: frozenset[Gap] = frozenset({"size"})


@dataclass(frozen=True)
class Facts:
    """What a peer is to our client: what it does not promise in its listing, and of a skill that was got."""

    dialect: DialectName = "extension"
    reads_directories: bool = True
    listed: frozenset[Gap] = frozenset()
    got: frozenset[Gap] = frozenset()
    describes: bool = True  # whether its listing has the authors' descriptions
    lists_files: bool = True  # whether its listing names files beside each SKILL.md


FACTS: dict[tuple[Peer, Era], Facts] = {
    **{(peer, era): Facts() for peer in ("skillwire", "typescript", "ext-skills") for era in ERAS},
    **{("ext-skills-0.12", era): Facts(listed=NO_SIZE, got=NO_SIZE) for era in ERAS},
    ("fastmcp", "modern"): Facts(reads_directories=False),
    # Without the extension there are plain resources, and a manifest beside each skill.
    ("fastmcp", "legacy"): Facts("fallback", reads_directories=False, listed=NOTHING, describes=False),
    **{
        ("fastmcp-old", era): Facts("fallback", reads_directories=False, listed=NOTHING, lists_files=False)
        for era in ERAS
    },
}


class Setting(NamedTuple):
    peer: Peer
    transport: Transport
    era: Era

    def __str__(self) -> str:
        return "-".join(self)


SETTINGS = [
    pytest.param(setting, id=str(setting), marks=pytest.mark.setting(setting.transport, "quick"))
    for setting in (Setting(peer, transport, era) for peer in PEERS for transport in TRANSPORTS for era in ERAS)
]


@dataclass(frozen=True)
class Meeting:
    """Our client, connected to a peer that serves the flat tree."""

    client: SkillsClient
    tree: Tree
    facts: Facts
    setting: Setting

    @property
    def era(self) -> Era:
        return self.setting.era

    @property
    def skills(self) -> list[str]:
        """The URIs of all skills."""
        return [format_uri(f"{skill}/SKILL.md") for skill in skills_of(self.tree)]

    @property
    def files(self) -> list[str]:
        """The URIs of all files."""
        return [format_uri(path) for path in self.tree]

    async def listed(self) -> list[SkillEntry]:
        return [entry async for entry in self.client.list_skills()]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """For the whole module, as connections are."""
    return "asyncio"


@pytest.fixture(scope="session")
def served_by(serve: Serve, peer_server: PeerServer) -> ServedBy:
    """``served_by("typescript", "flat")``: a tree by name, served by any of the six."""
    return lambda peer, tree: serve(tree) if peer == "skillwire" else peer_server(peer, tree)


@pytest.fixture(scope="module", params=SETTINGS)
async def meeting(request: pytest.FixtureRequest, served_by: ServedBy) -> AsyncIterator[Meeting]:
    """One connection for all tests of a setting: FastMCP takes seconds to start."""
    setting: Setting = request.param
    served = served_by(setting.peer, "flat")
    async with connected(served, setting.transport, setting.era) as client:
        yield Meeting(client, served.tree, FACTS[setting.peer, setting.era], setting)


def connected(
    served: Served, transport: Transport, era: Era, **options: Any
) -> AbstractAsyncContextManager[SkillsClient]:
    target = served.url if transport == "http" else served.command
    return connect(target, mode="legacy" if era == "legacy" else "auto", **options)


def digest(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


@rule("K1", "I4")
@every_setting
async def test_the_dialect_is_found(meeting: Meeting) -> None:
    """From what the server declares, else from what it lists."""
    assert meeting.client.connection.is_modern == (meeting.era == "modern")
    assert await meeting.client.dialect() == meeting.facts.dialect
    assert meeting.client.supports_skills == (meeting.facts.dialect == "extension")
    assert meeting.client.supports_directory_read == meeting.facts.reads_directories


@rule("L1", "L2", "E1", "E2", "E2b", "E3")
async def test_every_skill_is_listed(meeting: Meeting) -> None:
    """With its fields and files, and with what was not promised."""
    entries = await meeting.listed()
    assert not meeting.client.problems
    assert sorted(entry.uri for entry in entries) == meeting.skills
    files = files_by_skill(meeting.tree)
    for entry in entries:
        assert entry.name == entry.path
        assert entry.gaps == meeting.facts.listed
        description = {"pixels": "Größe, 大小, \U0001f40d."}.get(entry.name, "Does one thing well.")
        assert (entry.description == description) == meeting.facts.describes
        named = files[entry.path] if meeting.facts.lists_files else [f"{entry.path}/SKILL.md"]
        assert sorted(path_of(file.uri) for file in entry.files) == named
        check_promises(entry, meeting.tree)


@rule("G1", "E1", "E2", "E2b", "E3")
async def test_a_skill_that_is_got_promises_what_its_server_can(meeting: Meeting) -> None:
    """What was listed, or more where a listing says less."""
    listed = {entry.uri: entry for entry in await meeting.listed()}
    for uri in meeting.skills:
        entry = await meeting.client.get_skill(uri)
        if meeting.facts.listed == meeting.facts.got:
            assert entry == listed[uri]
        assert entry.is_complete
        assert entry.gaps == meeting.facts.got
        assert sorted(path_of(file.uri) for file in entry.files) == files_by_skill(meeting.tree)[entry.path]
        check_promises(entry, meeting.tree)
    assert (await meeting.client.get_skill("skill://refunds/SKILL.md")).frontmatter == {
        "name": "refunds",
        "description": "Does one thing well.",
        "license": "MIT",
        "metadata": {"owner": "billing"},
    }


def check_promises(entry: SkillEntry, tree: Tree) -> None:
    """What is promised is true, and what is not promised is absent."""
    for file in entry.files:
        data = tree[path_of(file.uri)]
        assert file.digest == (None if "digest" in entry.gaps else digest(data))
        assert file.size == (None if "size" in entry.gaps else len(data))


@rule("V1", "V4")
async def test_a_skill_is_read_and_verified(meeting: Meeting) -> None:
    """The very bytes on disk."""
    for uri in meeting.skills:
        file = await meeting.client.read_skill(await meeting.client.get_skill(uri))
        data = meeting.tree[path_of(uri)]
        assert (file.uri, file.data, file.digest) == (uri, data, digest(data))


@rule("V1", "V7")
async def test_a_listed_skill_is_read_if_its_listing_has_a_digest(meeting: Meeting) -> None:
    """And else not, though getting it first would help."""
    for entry in await meeting.listed():
        if "digest" in meeting.facts.listed:
            with pytest.raises(VerificationError) as caught:
                await meeting.client.read_skill(entry)
            assert caught.value.reference == "digest-unpromised"
        else:
            assert (await meeting.client.read_skill(entry)).data == meeting.tree[path_of(entry.uri)]


def notes_of(setting: Setting) -> dict[str, str]:
    """What the matrix says about listing, getting and reading there."""
    return {"skills": "fastmcp-modern-only"} if (setting.peer, setting.era) == ("fastmcp", "legacy") else {}


@rule("R1", "V1")
@every_setting
async def test_every_file_is_read_and_verified(cell: Record, meeting: Meeting) -> None:
    """However it was sent, as text or as base64."""
    if meeting.setting.peer != "skillwire":
        cell("client", *meeting.setting, "skills", notes=notes_of(meeting.setting))
    read: dict[str, bytes] = {}
    for uri in meeting.skills:
        entry = await meeting.client.get_skill(uri)
        for file in entry.files:
            verified = await meeting.client.read_resource(entry, file.uri)
            read[path_of(verified.uri)] = verified.data
    assert read == meeting.tree


@rule("G1", "V1")
async def test_every_file_is_read_by_its_uri_alone(meeting: Meeting) -> None:
    """The skill around it is found by asking."""
    files = [await meeting.client.read_skill_uri(uri) for uri in meeting.files]
    assert {path_of(file.uri): file.data for file in files} == meeting.tree


@rule("V2")
async def test_a_file_that_is_not_listed_is_refused(meeting: Meeting) -> None:
    """Whether it exists or not, it is not even asked for."""
    entry = await meeting.client.get_skill("skill://refunds/SKILL.md")
    for uri, reference in (
        ("skill://refunds/nothing.md", "file-unlisted"),
        ("skill://refunds/templates", "file-unlisted"),
        ("skill://pixels/assets/empty", "file-outside"),
        ("skill://refunds", "file-outside"),
    ):
        with pytest.raises(VerificationError) as caught:
            await meeting.client.read_resource(entry, uri)
        assert caught.value.reference == reference
    with pytest.raises(VerificationError) as caught:
        await meeting.client.read_skill_uri("skill://refunds/templates/nothing.md")
    assert caught.value.reference == "file-unlisted"


@rule("G1", "U5")
async def test_what_is_not_a_skill_is_not_found(meeting: Meeting) -> None:
    for path in (
        "skill://nothing/SKILL.md",
        "nothing://here/SKILL.md",
        "skill://refunds/data.json",
        "skill://alone",
    ):
        with pytest.raises(NotFoundError):
            await meeting.client.get_skill(path)
        with pytest.raises(NotFoundError):
            await RemoteCatalog(meeting.client).get_skill(path)


@rule("G1")
async def test_a_file_of_no_skill_is_not_found(meeting: Meeting) -> None:
    for uri in ("skill://nothing/SKILL.md", "skill://nothing/a/b/c.md"):
        with pytest.raises(NotFoundError):
            await meeting.client.read_skill_uri(uri)


@rule("D1", "K2")
async def test_directories_are_read_where_declared(cell: Record, meeting: Meeting) -> None:
    """And else not asked for."""
    client = meeting.client
    if meeting.setting.peer != "skillwire" and meeting.facts.reads_directories:
        cell("client", *meeting.setting, "directories")
    if not meeting.facts.reads_directories:
        with pytest.raises(ProtocolError) as caught:
            await client.read_directory("skill://pixels")
        assert (caught.value.reference, caught.value.side) == ("directory-unsupported", "local")
        return
    assert {child.uri: child.is_directory for child in await client.read_directory("skill://pixels")} == {
        "skill://pixels/SKILL.md": False,
        "skill://pixels/assets": True,
    }
    walked: dict[str, int | None] = {}
    for skill in skills_of(meeting.tree):
        walked |= {path_of(child.uri): child.size async for child in client.catalog.walk(f"skill://{skill}")}
    assert walked == {path: len(data) for path, data in meeting.tree.items()}
    for uri in ("skill://nothing", "skill://alone/SKILL.md"):
        with pytest.raises(NotFoundError):
            await client.read_directory(uri)


@rule("A2")
async def test_nothing_changed_since_the_last_listing(meeting: Meeting) -> None:
    """By digests, where there are any."""
    catalog = RemoteCatalog(meeting.client)
    assert len((await catalog.refresh()).added) == len(await meeting.listed())
    assert not await catalog.refresh()


@rule("L1", "G1", "R2", "D1")
async def test_a_catalog_holds_the_same(meeting: Meeting) -> None:
    """With directories as the server reads them, or made from entries."""
    catalog = RemoteCatalog(meeting.client)
    listed = [entry async for entry in catalog.entries()]
    assert listed == sorted(await meeting.listed(), key=lambda entry: entry.uri)
    told: list[Change] = []
    with catalog.changes() as changes:
        changes.forward(told.append)
        assert {uri: (await catalog.read_file(uri)).data for uri in meeting.files} == {
            uri: meeting.tree[path_of(uri)] for uri in meeting.files
        }
        for entry in listed:
            got = await catalog.get_skill(entry.uri)
            assert got == await meeting.client.get_skill(entry.uri)
            walked = [child.uri async for child in catalog.walk(entry.uri.rpartition("/")[0])]
            assert sorted(walked) == [file.uri for file in got.files]
        assert not await catalog.refresh()
    assert told == []
    for uri in ("skill://nothing/SKILL.md", "skill://refunds/nothing.md"):
        with pytest.raises(NotFoundError):
            await catalog.read_file(uri)
    for uri in ("skill://nothing", "skill://refunds/nothing", "skill://refunds/data.json"):
        with pytest.raises(NotFoundError):
            await catalog.read_directory(uri)
    assert not await catalog.problems()


@rule("E3", "O1")
async def test_a_skill_has_one_digest_wherever_it_comes_from(served_by: ServedBy) -> None:
    """Six servers at once, by the labels that we gave them."""
    async with AsyncExitStack() as stack:
        clients = {
            peer: await stack.enter_async_context(connected(served_by(peer, "flat"), "http", "modern"))
            for peer in PEERS
        }
        listings = await list_many(clients)
        assert list(listings) == list(PEERS)
        digests: Counter[tuple[str, str]] = Counter()
        for peer, listing in listings.items():
            assert listing.error is None
            for entry in listing.entries:
                for file in (await clients[peer].get_skill(entry.uri)).files:
                    read = await clients[peer].read_skill_uri(file.uri)
                    assert read.digest == file.digest
                    digests[path_of(file.uri), read.digest] += 1
    tree = served_by("skillwire", "flat").tree
    assert digests == {(path, digest(data)): len(PEERS) for path, data in tree.items()}


@rule("L1", "L3")
@pytest.mark.parametrize("peer", OTHERS)
async def test_all_pages_are_listed(cell: Record, served_by: ServedBy, peer: Peer) -> None:
    """Of 100 or 50 skills; FastMCP has one page, and its older shape is one level deep."""
    cell("client", peer, "http", "modern", "pages", notes={"pages": NOTES[peer].get("nested", "")})
    served = served_by(peer, "wide")
    async with connected(served, "http", "modern") as client:
        listed = sorted([entry.path async for entry in client.list_skills()])
    assert listed == ([] if peer == "fastmcp-old" else skills_of(served.tree))


@rule("E6", "B1")
@pytest.mark.parametrize(
    ("peer", "transport", "era"),
    [("typescript", "stdio", "legacy"), *((peer, "http", "modern") for peer in OTHERS[1:])],
)
async def test_skills_as_large_as_they_may_be_are_read(
    cell: Record, served_by: ServedBy, peer: Peer, transport: Transport, era: Era
) -> None:
    """Every file of 15 MiB, and some of 500, all of which are promised."""
    cell("client", peer, transport, era, "limits", notes=NOTES[peer])
    served = served_by(peer, "limits")
    async with connected(served, transport, era) as client:
        big, many = [await client.get_skill(f"skill://{name}/SKILL.md") for name in ("big", "many")]
        assert len(many.files) == 500
        assert len(big.files) == (1 if peer == "ext-skills-0.12" else 1 + len(LARGE))
        for file in (*big.files, *many.files[::50]):
            entry = big if file in big.files else many
            assert (await client.read_resource(entry, file.uri)).data == served.tree[path_of(file.uri)]


@rule("E2", "E2b", "V7")
@pytest.mark.parametrize(
    ("peer", "transport", "era"),
    [
        ("typescript", "http", "modern"),
        ("ext-skills", "stdio", "legacy"),
        ("ext-skills-0.12", "http", "modern"),
    ],
)
async def test_a_generated_skill_is_read_by_choice_only(
    cell: Record, generated_server: PeerServer, peer: str, transport: Transport, era: Era
) -> None:
    """Nothing could be compared with its bytes, which are others the next time."""
    cell("client", peer, transport, era, "generated", notes=NOTES[peer])
    async with connected(generated_server(peer), transport, era) as client:
        entries = [entry async for entry in client.list_skills()]
        uri = "skill://generated/SKILL.md"
        if peer == "ext-skills-0.12":
            # No entry of this server lists a file, so nothing tells that it is of the generation that leaves
            # ``resources`` out: the entry is what E2 calls invalid.
            assert entries == []
            assert [(problem.reference, problem.file, problem.rule) for problem in client.problems] == [
                ("entry-invalid", uri, "E2")
            ]
        else:
            [entry] = entries
            assert (entry.uri, entry.is_dynamic, entry.gaps) == (uri, True, {"manifest", "digest", "size"})
            assert await client.get_skill(uri) == entry
            for ask, given in (
                (client.read_skill, entry),
                (client.read_skill_uri, uri),
                (RemoteCatalog(client).read_file, uri),
            ):
                with pytest.raises(VerificationError) as caught:
                    await ask(given)
                assert caught.value.reference == "skill-dynamic"
            by_choice = await RemoteCatalog(client, allow_unverified=True).read_file(uri)
            assert by_choice.data.startswith(b"---\nname: generated\n")
        first, second = [(await client.read_unverified(uri)).data for _ in range(2)]
        assert first != second
        assert first.startswith(b"---\nname: generated\n")


class Dispute(NamedTuple):
    """What of the disputed tree a peer does not offer, and how our client refuses what it offers wrongly."""

    missing: set[str]
    refused: dict[str, str]


# Only FastMCP serves something else in the other era.
DISPUTES: dict[tuple[Peer, Era], Dispute] = {
    ("skillwire", "modern"): Dispute({"hidden/.env"}, {}),
    ("typescript", "legacy"): Dispute({"hidden/.env"}, {}),
    # It sends invalid UTF-8 as text, and cannot find a name that needs encoding. Its entries lack the last line
    # break of a block that ends the frontmatter.
    ("ext-skills", "modern"): Dispute(
        {"marked/SKILL.md"},
        {
            "kept/SKILL.md": "frontmatter-mismatch",
            "latin/notes.md": "size-mismatch",
            "spaces/two words.md": "not-served",
            "unicode/références/日本語.md": "not-served",
        },
    ),
    ("ext-skills-0.12", "legacy"): Dispute(
        {"marked/SKILL.md"},
        {
            "kept/SKILL.md": "frontmatter-mismatch",
            "latin/notes.md": "digest-mismatch",
            "spaces/two words.md": "digest-mismatch",
            "unicode/références/日本語.md": "digest-mismatch",
        },
    ),
    # Its entries lack that line break too, also that of ``|``, and read YAML 1.1. Where there are none, it has a
    # manifest of its own at the place of the file, and resources whose URIs have more encoded than ours would.
    ("fastmcp", "modern"): Dispute(
        {"dated/SKILL.md", "manifest/SKILL.md", "manifest/_manifest"},
        dict.fromkeys(
            ("core-schema/SKILL.md", "kept/SKILL.md", "literal/SKILL.md"),
            "frontmatter-mismatch",
        ),
    ),
    ("fastmcp", "legacy"): Dispute(set(), {"manifest/_manifest": "size-mismatch"}),
    # It rewrites line ends, looks one folder deep only, and fails at invalid UTF-8.
    ("fastmcp-old", "modern"): Dispute(
        {
            "acme/billing/invoice/SKILL.md",
            "crlf/notes.txt",
            "team-a/review/SKILL.md",
            "team-b/review/SKILL.md",
        },
        {
            "crlf/SKILL.md": "size-mismatch",
            "latin/notes.md": "server-failed",
            "manifest/_manifest": "size-mismatch",
        },
    ),
}


@rule("F4", "F5", "F6", "U7", "R1", "R2", "V1", "V4")
@pytest.mark.parametrize(("peer", "era"), DISPUTES)
async def test_what_a_peer_serves_otherwise_is_refused(
    cell: Record, served_by: ServedBy, peer: Peer, era: Era
) -> None:
    """Wrong bytes never come out, and every other file does."""
    dispute = DISPUTES[peer, era]
    if peer != "skillwire":
        spoiled = hurt(dispute.missing | dispute.refused.keys())
        notes = {feature: NOTES[peer][feature] for feature in spoiled}
        cell("client", peer, "http", era, *dict.fromkeys(TRAITS.values()), notes=notes)
    served = served_by(peer, "disputed")
    read: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    async with connected(served, "http", era) as client:
        async for listed in client.list_skills():
            try:
                entry = await client.get_skill(listed.uri)
            except VerificationError as error:
                refused[path_of(listed.uri)] = error.reference
                continue
            for file in entry.files:
                try:
                    read[path_of(file.uri)] = (await client.read_resource(entry, file.uri)).data
                except SkillwireError as error:
                    refused[path_of(file.uri)] = error.reference
        catalog = RemoteCatalog(client)
        for path, data in served.tree.items():
            try:
                assert (await catalog.read_file(format_uri(path))).data == data
            except SkillwireError:
                assert path not in read
    assert read == {path: served.tree[path] for path in read}
    assert Dispute(served.tree.keys() - read.keys() - refused.keys(), refused) == dispute


async def read_everything(client: SkillsClient) -> dict[str, str]:
    """The SHA-256 of every file, verified, by its URI."""
    read: dict[str, str] = {}
    async for entry in client.list_skills():
        assert await client.get_skill(entry.uri) == entry
        await client.read_skill(entry)
        for file in entry.files:
            read[file.uri] = sha256((await client.read_resource(entry, file.uri)).data).hexdigest()
    assert not client.problems
    return read


@rule("K1", "L1", "G1", "R1", "D1", "E1", "E2", "E3", "E4", "E5", "F4", "F5", "F6", "U4", "U7", "V1", "V4")
@pytest.mark.parametrize(("transport", "era"), DIAGONAL)
async def test_our_client_reads_every_file_of_our_server(serve: Serve, transport: Transport, era: Era) -> None:
    """As the others' clients do, by the same URIs."""
    served = serve("nasty")
    async with connected(served, transport, era) as client:
        read = await read_everything(client)
        assert sorted(read) == sorted(map(format_uri, hashes(served.tree)))
        assert by_path(read) == hashes(served.tree)
        for skill, files in files_by_skill(served.tree).items():
            walked = [path_of(child.uri) async for child in client.catalog.walk(format_uri(skill))]
            assert sorted(walked) == files
