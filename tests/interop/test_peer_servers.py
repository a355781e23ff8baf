"""Five servers that we did not write, as they really are: what a client of ours meets, and must cope with.

These tests do not touch our code. They hold still what each peer declares, lists, reads and refuses, so that a
test of our client against it can be understood, and a new version of a peer shows what it changed. No answer
depends on the transport; stdio is tried where capabilities are, and ``test_client.py`` reads every file over it.
"""

from __future__ import annotations

import json
import subprocess
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from mcp.shared.exceptions import MCPError

from interop.honest import files_by_skill, path_of, skills_of
from interop.wire import EXTENSION, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, call, connected, read_bytes
from rules import rule

if TYPE_CHECKING:
    from mcp import Client

    from interop.running import Era, PeerServer, Transport
    from trees import Tree

pytestmark = pytest.mark.anyio

TYPESCRIPT, EXT_SKILLS, EXT_SKILLS_0_12 = "typescript", "ext-skills", "ext-skills-0.12"
FASTMCP, FASTMCP_OLD = "fastmcp", "fastmcp-old"
NODE_PEERS = [TYPESCRIPT, EXT_SKILLS, EXT_SKILLS_0_12]
EVERY_PEER = [*NODE_PEERS, FASTMCP, FASTMCP_OLD]

# K1: which peers serve the extension in which era.
SPEAKERS: list[tuple[str, Era]] = [
    *((peer, era) for peer in NODE_PEERS for era in ("modern", "legacy")),
    (FASTMCP, "modern"),
]
speakers = pytest.mark.parametrize(("peer", "era"), SPEAKERS)

# What else a peer's results carry in the modern era, beside ``_meta`` with the server's name, and ``resultType``.
CACHE = {"ttlMs": 0, "cacheScope": "private"}


async def refusal(client: Client, method: str, **params: Any) -> int:
    with pytest.raises(MCPError) as caught:
        await call(client, method, **params)
    return caught.value.error.code


def envelope(answer: dict[str, Any], era: Era) -> dict[str, Any]:
    """What is around an answer, without what every answer of that era has."""
    around = {key: answer[key] for key in answer.keys() - {"skills", "skill", "resources", "contents"}}
    if era == "modern":
        assert list(around.pop("_meta")) == ["io.modelcontextprotocol/serverInfo"]
        assert around.pop("resultType") == "complete"
    return around


def promise(data: bytes) -> dict[str, Any]:
    return {"digest": f"sha256:{sha256(data).hexdigest()}", "size": len(data)}


def entries(tree: Tree, *, sized: bool) -> dict[str, dict[str, dict[str, Any]]]:
    """By skill and by file, what entries promise of the bytes."""
    promises = {path: promise(data) for path, data in tree.items()}
    if not sized:
        promises = {path: {"digest": promised["digest"]} for path, promised in promises.items()}
    return {skill: {path: promises[path] for path in paths} for skill, paths in files_by_skill(tree).items()}


@rule("K1")
@pytest.mark.parametrize("peer", EVERY_PEER)
async def test_each_peer_declares_its_own_capabilities(
    peer_server: PeerServer, peer: str, transport: Transport, era: Era
) -> None:
    """FastMCP declares the extension in the modern era only, and its older shape never."""
    directories = {"resources": {"listChanged": True}, "extensions": {EXTENSION: {"directoryRead": True}}}
    changing = {"listChanged": era == "legacy"}  # FastMCP's
    fastmcp = {
        "logging": {},
        "prompts": changing,
        "resources": {"subscribe": False, **changing},
        "tools": changing,
    }
    interfaces = {"io.modelcontextprotocol/ui": {}}
    expected: dict[tuple[str, str], dict[str, Any]] = {
        (FASTMCP, "modern"): {**fastmcp, "extensions": {**interfaces, EXTENSION: {}}},
        (FASTMCP, "legacy"): fastmcp,
        (FASTMCP_OLD, "modern"): {**fastmcp, "extensions": interfaces},
        (FASTMCP_OLD, "legacy"): fastmcp,
        (TYPESCRIPT, era): directories,
        (EXT_SKILLS, era): {**directories, "completions": {}},
        (EXT_SKILLS_0_12, era): {**directories, "completions": {}},
    }
    async with connected(peer_server(peer), transport, era) as client:
        declared = client.server_capabilities.model_dump(by_alias=True, exclude_unset=True)
        assert declared == expected[peer, era]


@rule("E1", "E2", "E2b", "E3", "L1", "G1")
@speakers
async def test_entries_promise_each_file_and_the_older_generation_no_size(
    peer_server: PeerServer, peer: str, era: Era
) -> None:
    """No entry has a field beside these."""
    served = peer_server(peer)
    async with connected(served, "http", era) as client:
        listing = await call(client, "skills/list")
        got = [await call(client, "skills/get", uri=entry["uri"]) for entry in listing["skills"]]
    assert [answer["skill"] for answer in got] == listing["skills"]
    assert all(set(entry) == {"uri", "frontmatter", "resources"} for entry in listing["skills"])
    assert [entry["uri"] for entry in listing["skills"]] == [
        f"skill://{skill}/SKILL.md" for skill in ("alone", "pixels", "refunds")
    ]
    assert listing["skills"][2]["frontmatter"] == {
        "name": "refunds",
        "description": "Does one thing well.",
        "license": "MIT",
        "metadata": {"owner": "billing"},
    }
    promised = {
        entry["frontmatter"]["name"]: {path_of(file.pop("uri")): file for file in entry["resources"]}
        for entry in listing["skills"]
    }
    assert promised == entries(served.tree, sized=peer != EXT_SKILLS_0_12)
    cached = CACHE if era == "modern" else {}
    assert envelope(listing, era) == cached
    silent = peer in (EXT_SKILLS, EXT_SKILLS_0_12)  # on how long an entry may be kept
    assert all(envelope(answer, era) == ({} if silent else cached) for answer in got)


@rule("R1", "V1")
@speakers
async def test_every_file_is_read_as_promised(peer_server: PeerServer, peer: str, era: Era) -> None:
    """What is sent as text and what as base64 depends on the peer, and on its table of suffixes."""
    served = peer_server(peer)
    async with connected(served, "http", era) as client:
        assert {path: await read_bytes(client, f"skill://{path}") for path in served.tree} == served.tree
        answers = {path: await call(client, "resources/read", uri=f"skill://{path}") for path in served.tree}
    assert all(envelope(answer, era) == (CACHE if era == "modern" else {}) for answer in answers.values())
    sent = {path: answer["contents"][0] for path, answer in answers.items()}
    assert all(content["uri"] == f"skill://{path}" for path, content in sent.items())
    forms = {
        path: (*(content.keys() - {"uri", "mimeType"}), content.get("mimeType")) for path, content in sent.items()
    }
    binary = ("blob", "application/octet-stream")
    expected = {
        **{f"{skill}/SKILL.md": ("text", "text/markdown") for skill in skills_of(served.tree)},
        "pixels/assets/empty": binary,
        "pixels/assets/empty.txt": ("text", "text/plain"),
        "pixels/assets/every-byte.bin": binary,
        "refunds/data.json": ("text", "application/json"),
        "refunds/references/limits.csv": ("text", "text/csv"),
        "refunds/templates/reply.md": ("text", "text/markdown"),
    }
    if peer == TYPESCRIPT:  # text is whatever is valid UTF-8
        expected["pixels/assets/empty"] = ("text", "application/octet-stream")
    elif peer == FASTMCP:  # text is what has a type of that name
        expected["refunds/data.json"] = ("blob", "application/json")
    else:  # a short table of suffixes
        expected["refunds/references/limits.csv"] = binary
    if peer == EXT_SKILLS_0_12:
        expected |= {f"{skill}/SKILL.md": ("text", None) for skill in skills_of(served.tree)}
    assert forms == expected


@rule("D1")
@pytest.mark.parametrize("peer", NODE_PEERS)
async def test_directories_are_listed_by_those_that_declare_it(
    peer_server: PeerServer, peer: str, era: Era
) -> None:
    """Only the official peer says how long a listing may be kept, and refuses a slash at the end."""
    async with connected(peer_server(peer), "http", era) as client:
        root = await call(client, "resources/directory/read", uri="skill://pixels")
        assets = await call(client, "resources/directory/read", uri="skill://pixels/assets")
        if peer == TYPESCRIPT:
            assert await refusal(client, "resources/directory/read", uri="skill://pixels/") == INVALID_PARAMS
        else:
            assert await call(client, "resources/directory/read", uri="skill://pixels/") == root
    manual = {
        "uri": "skill://pixels/SKILL.md",
        "name": "SKILL.md",
        "mimeType": "text/markdown",
        "size": len(peer_server(peer).tree["pixels/SKILL.md"]),
    }
    folder = {"uri": "skill://pixels/assets", "name": "assets", "mimeType": "inode/directory"}
    assert root["resources"] == ([manual, folder] if peer == TYPESCRIPT else [folder, manual])
    assert [(child["name"], child["mimeType"], child["size"]) for child in assets["resources"]] == [
        ("empty", "application/octet-stream", 0),
        ("empty.txt", "text/plain", 0),
        ("every-byte.bin", "application/octet-stream", 256),
    ]
    assert envelope(root, era) == (CACHE if peer == TYPESCRIPT and era == "modern" else {})


@rule("K2", "D1")
@pytest.mark.parametrize("peer", [FASTMCP, FASTMCP_OLD])
async def test_fastmcp_lists_no_directories(peer_server: PeerServer, peer: str, era: Era) -> None:
    async with connected(peer_server(peer), "http", era) as client:
        assert await refusal(client, "resources/directory/read", uri="skill://pixels") == METHOD_NOT_FOUND


@rule("G1", "D1")
@speakers
async def test_what_is_not_a_skill_is_refused(peer_server: PeerServer, peer: str, era: Era) -> None:
    async with connected(peer_server(peer), "http", era) as client:
        for uri in ("skill://nothing/SKILL.md", "skill://alone", "skill://refunds/data.json", "nothing://here"):
            assert await refusal(client, "skills/get", uri=uri) == INVALID_PARAMS
        if peer != FASTMCP:
            for uri in ("skill://nothing", "skill://alone/SKILL.md"):
                assert await refusal(client, "resources/directory/read", uri=uri) == INVALID_PARAMS


@rule("R1")
@pytest.mark.parametrize("peer", [TYPESCRIPT, EXT_SKILLS, FASTMCP, FASTMCP_OLD])
async def test_a_file_that_is_not_there_is_refused(peer_server: PeerServer, peer: str, era: Era) -> None:
    """FastMCP's older shape calls a missing file of a known skill an internal error."""
    within = INTERNAL_ERROR if peer == FASTMCP_OLD else INVALID_PARAMS
    async with connected(peer_server(peer), "http", era) as client:
        for uri in ("skill://nothing/SKILL.md", "skill://index.json", "nothing://here"):
            assert await refusal(client, "resources/read", uri=uri) == INVALID_PARAMS
        for uri in ("skill://alone/nothing.md", "skill://pixels/assets"):
            assert await refusal(client, "resources/read", uri=uri) == within


@rule("R1", "I4")
async def test_the_older_generation_answers_a_missing_file_with_prose(peer_server: PeerServer, era: Era) -> None:
    """The peer's fault: a read that succeeds proves nothing, not even that there is an index."""
    async with connected(peer_server(EXT_SKILLS_0_12), "http", era) as client:
        for uri in ("skill://nothing/SKILL.md", "skill://index.json"):
            path = uri.removeprefix("skill://")
            prose = f'# Error\n\nCould not resolve skill path from "{path}"'
            assert (await call(client, "resources/read", uri=uri))["contents"] == [{"uri": uri, "text": prose}]
        assert (await read_bytes(client, "skill://alone/nothing.md")).startswith(b"# Error\n\nFile ")
        assert await refusal(client, "resources/read", uri="nothing://here") == INVALID_PARAMS


@rule("L3")
@speakers
async def test_a_wrong_cursor_is_refused_by_one_and_the_first_page_of_the_others(
    peer_server: PeerServer, peer: str, era: Era
) -> None:
    async with connected(peer_server(peer), "http", era) as client:
        if peer == TYPESCRIPT:
            assert await refusal(client, "skills/list", cursor="garbage") == INVALID_PARAMS
        else:
            assert await call(client, "skills/list", cursor="garbage") == await call(client, "skills/list")


@rule("L1")
@pytest.mark.parametrize(
    ("peer", "sizes"),
    [
        (TYPESCRIPT, [100, 100, 30]),
        (EXT_SKILLS, [50, 50, 50, 50, 30]),
        (EXT_SKILLS_0_12, [50, 50, 50, 50, 30]),
        (FASTMCP, [230]),
    ],
    ids=[TYPESCRIPT, EXT_SKILLS, EXT_SKILLS_0_12, FASTMCP],
)
async def test_pages_are_as_long_as_the_peer_likes(peer_server: PeerServer, peer: str, sizes: list[int]) -> None:
    """And the last has no cursor, not an empty one."""
    async with connected(peer_server(peer, "wide"), "http", "modern") as client:
        pages = [await call(client, "skills/list")]
        while "nextCursor" in pages[-1] and len(pages) < 10:
            pages.append(await call(client, "skills/list", cursor=pages[-1]["nextCursor"]))
    assert [len(page["skills"]) for page in pages] == sizes
    assert len({entry["uri"] for page in pages for entry in page["skills"]}) == 230


@rule("K3")
@pytest.mark.parametrize("peer", EVERY_PEER)
async def test_a_client_that_declares_the_extension_is_told_the_same(
    peer_server: PeerServer, peer: str, era: Era
) -> None:
    """None of these servers insists on it."""
    method = "skills/list" if (peer, era) in SPEAKERS else "resources/list"
    served = peer_server(peer)
    async with connected(served, "http", era) as client:
        told = (client.server_capabilities, await call(client, method))
    async with connected(served, "http", era, declaring=True) as client:
        assert (client.server_capabilities, await call(client, method)) == told


@rule("R1", "R3")
async def test_the_typescript_peers_list_manuals_as_resources(peer_server: PeerServer, era: Era) -> None:
    """Ext-skills annotates, the official peer does not."""
    listed: dict[str, list[dict[str, Any]]] = {}
    for peer in NODE_PEERS:
        async with connected(peer_server(peer), "http", era) as client:
            listed[peer] = (await call(client, "resources/list"))["resources"]
    manual = {
        "uri": "skill://alone/SKILL.md",
        "name": "alone",
        "description": "Does one thing well.",
        "mimeType": "text/markdown",
        "size": len(peer_server(TYPESCRIPT).tree["alone/SKILL.md"]),
    }
    for found in listed.values():
        assert [resource["name"] for resource in found] == ["alone", "pixels", "refunds"]
    assert listed[TYPESCRIPT][0] == manual
    assert listed[EXT_SKILLS] == listed[EXT_SKILLS_0_12]
    annotations = listed[EXT_SKILLS][0].pop("annotations")
    assert listed[EXT_SKILLS][0] == manual
    assert annotations.pop("lastModified").endswith("Z")
    assert annotations == {"audience": ["assistant"], "priority": 1}


@rule("K2")
@pytest.mark.parametrize(("peer", "era"), [(FASTMCP, "legacy"), (FASTMCP_OLD, "modern"), (FASTMCP_OLD, "legacy")])
async def test_fastmcp_without_the_extension_knows_no_method_of_it(
    peer_server: PeerServer, peer: str, era: Era
) -> None:
    async with connected(peer_server(peer), "http", era) as client:
        assert await refusal(client, "skills/list") == METHOD_NOT_FOUND
        assert await refusal(client, "skills/get", uri="skill://alone/SKILL.md") == METHOD_NOT_FOUND


@rule("I4")
@pytest.mark.parametrize("peer", [FASTMCP, FASTMCP_OLD])
async def test_fastmcp_lists_a_manifest_beside_each_manual(peer_server: PeerServer, peer: str, era: Era) -> None:
    """Both shapes have it, in both eras; the older one lists no other file, and has templates instead."""
    served = peer_server(peer)
    async with connected(served, "http", era) as client:
        resources = (await call(client, "resources/list"))["resources"]
        templates = (await call(client, "resources/templates/list"))["resourceTemplates"]
    skills = skills_of(served.tree)
    listed = {resource.pop("uri"): resource for resource in resources}
    paths = {f"{skill}/{name}" for skill in skills for name in ("SKILL.md", "_manifest")}
    if peer == FASTMCP:
        paths |= set(served.tree)
    assert set(listed) == {f"skill://{path}" for path in paths}
    assert sorted(template["uriTemplate"] for template in templates) == (
        [f"skill://{skill}/{{path*}}" for skill in skills] if peer == FASTMCP_OLD else []
    )
    assert listed["skill://alone/SKILL.md"] == {
        "name": "alone/SKILL.md",
        "description": "Does one thing well." if peer == FASTMCP_OLD else "Skill: alone",
        "mimeType": "text/markdown",
        "_meta": {"fastmcp": {"tags": [], "skill": {"name": "alone", "is_manifest": False}}},
    }
    assert listed["skill://alone/_manifest"] == {
        "name": "alone/_manifest",
        "description": "File listing for alone",
        "mimeType": "application/json",
        "_meta": {"fastmcp": {"tags": [], "skill": {"name": "alone", "is_manifest": True}}},
    }


@rule("E3")
@pytest.mark.parametrize("peer", [FASTMCP, FASTMCP_OLD])
async def test_a_manifest_of_fastmcp_promises_each_file(peer_server: PeerServer, peer: str, era: Era) -> None:
    """Its ``hash`` has the form of a ``digest``, its paths are relative and not encoded."""
    served = peer_server(peer)
    async with connected(served, "http", era) as client:
        for skill in skills_of(served.tree):
            [content] = (await call(client, "resources/read", uri=f"skill://{skill}/_manifest"))["contents"]
            assert set(content) == {"uri", "mimeType", "text"}
            assert content["mimeType"] == "application/json"
            manifest = json.loads(content["text"])
            assert set(manifest) == {"skill", "files"}
            assert manifest["skill"] == skill
            assert all(set(file) == {"path", "size", "hash"} for file in manifest["files"])
            promised = {
                f"{skill}/{file['path']}": {"digest": file["hash"], "size": file["size"]}
                for file in manifest["files"]
            }
            assert promised == entries(served.tree, sized=True)[skill]
            assert {path: await read_bytes(client, f"skill://{path}") for path in promised} == {
                path: served.tree[path] for path in promised
            }


@rule("R1")
async def test_the_older_shape_of_fastmcp_gives_every_supporting_file_one_type(
    peer_server: PeerServer, era: Era
) -> None:
    """The peer's fault: the type of its template, even on text."""
    async with connected(peer_server(FASTMCP_OLD), "http", era) as client:
        answer = await call(client, "resources/read", uri="skill://refunds/templates/reply.md")
    assert answer["contents"] == [
        {
            "uri": "skill://refunds/templates/reply.md",
            "mimeType": "application/octet-stream",
            "text": "Très cher client,\n",
        }
    ]


@rule("E2", "E2b", "V7")
@pytest.mark.parametrize("peer", NODE_PEERS)
async def test_a_generated_skill_is_called_dynamic_or_has_no_resources(
    generated_server: PeerServer, peer: str, era: Era
) -> None:
    """And its next read has other bytes."""
    entry = {
        "uri": "skill://generated/SKILL.md",
        "frontmatter": {"name": "generated", "description": "Says how often it was read."},
    }
    if peer != EXT_SKILLS_0_12:
        entry["resources"] = "dynamic"
    async with connected(generated_server(peer), "http", era) as client:
        assert (client.server_capabilities.extensions or {})[EXTENSION] == {}
        assert (await call(client, "skills/list"))["skills"] == [entry]
        assert (await call(client, "skills/get", uri=entry["uri"]))["skill"] == entry
        first, second = [await read_bytes(client, "skill://generated/SKILL.md") for _ in range(2)]
    assert first != second
    assert first.startswith(b"---\nname: generated\ndescription: Says how often it was read.\n---\n")


# By peer: what of the disputed tree it does not list, and what it lists but does not read as promised.
OTHER_BYTES = "other bytes"
DISPUTES: dict[str, tuple[set[str], dict[str, str | int]]] = {
    TYPESCRIPT: ({"hidden/.env"}, {}),
    EXT_SKILLS: (
        {"marked/SKILL.md"},
        {
            "latin/notes.md": OTHER_BYTES,
            "spaces/two words.md": INVALID_PARAMS,
            "unicode/références/日本語.md": INVALID_PARAMS,
        },
    ),
    EXT_SKILLS_0_12: (
        {"marked/SKILL.md"},
        {
            "latin/notes.md": OTHER_BYTES,
            "spaces/two words.md": OTHER_BYTES,
            "unicode/références/日本語.md": OTHER_BYTES,
        },
    ),
    FASTMCP: ({"dated/SKILL.md", "manifest/SKILL.md", "manifest/_manifest"}, {}),
    FASTMCP_OLD: (
        {"acme/billing/invoice/SKILL.md", "team-a/review/SKILL.md", "team-b/review/SKILL.md"},
        {
            "crlf/SKILL.md": OTHER_BYTES,
            "crlf/notes.txt": OTHER_BYTES,
            "latin/notes.md": INTERNAL_ERROR,
            "manifest/_manifest": OTHER_BYTES,
        },
    ),
}


async def promised_digests(client: Client, peer: str) -> dict[str, str]:
    """All that a peer lists, by URI."""
    if peer != FASTMCP_OLD:
        listing = await call(client, "skills/list")
        return {file["uri"]: file["digest"] for entry in listing["skills"] for file in entry["resources"]}
    digests: dict[str, str] = {}
    for resource in (await call(client, "resources/list"))["resources"]:
        if resource["uri"].endswith("/_manifest"):
            root = resource["uri"].removesuffix("/_manifest")
            manifest = json.loads(await read_bytes(client, resource["uri"]))
            digests |= {f"{root}/{quote(file['path'])}": file["hash"] for file in manifest["files"]}
    return digests


@rule("F6", "U1", "U7", "E2", "R1", "R2", "V1")
@pytest.mark.parametrize("peer", EVERY_PEER)
async def test_honest_skills_that_a_peer_does_not_serve_as_they_are(peer_server: PeerServer, peer: str) -> None:
    """What the entries promise is what lies on disk, everywhere. What a read then returns is not: ext-skills sends
    invalid UTF-8 as text and cannot find a name that needs encoding; FastMCP's older shape rewrites line ends.
    """
    served = peer_server(peer, "disputed")
    found: dict[str, str | int] = {}
    async with connected(served, "http", "modern") as client:
        promised = await promised_digests(client, peer)
        for uri, digest in promised.items():
            assert digest == promise(served.tree[path_of(uri)])["digest"]
            try:
                if f"sha256:{sha256(await read_bytes(client, uri)).hexdigest()}" != digest:
                    found[path_of(uri)] = OTHER_BYTES
            except MCPError as error:
                found[path_of(uri)] = error.error.code
    unlisted = set(served.tree) - {path_of(uri) for uri in promised}
    assert (unlisted, found) == DISPUTES[peer]


@pytest.mark.parametrize("peer", EVERY_PEER)
def test_a_server_on_stdio_says_nothing_unasked_and_ends_with_its_input(
    peer_server: PeerServer, peer: str
) -> None:
    done = subprocess.run(peer_server(peer).command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, b"")
