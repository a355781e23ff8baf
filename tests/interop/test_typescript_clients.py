"""Two TypeScript clients read every file of every skill, verify each in their own way, and agree with the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from interop.cells import DIAGONAL, NASTY
from interop.honest import by_path, files_by_skill, hashes, path_of, skills_of
from interop.running import VERSIONS
from rules import rule

if TYPE_CHECKING:
    from interop.cells import Record
    from interop.running import Era, Node, Serve, Served, Transport

OFFICIAL, EXT_SKILLS = "read_all.mjs", "read_all_ext_skills.mjs"
PEERS = {OFFICIAL: "typescript", EXT_SKILLS: "ext-skills"}
FEATURES = {"examples": ("skills", "directories"), "nasty": NASTY}
MISMATCH = (
    "Frontmatter mismatch for {uri}: the fetched SKILL.md frontmatter does not match the entry's frontmatter. "
    "Per SEP-2640 this is a verification failure equivalent to a digest mismatch."
)


@pytest.fixture(params=[OFFICIAL, EXT_SKILLS], ids=["official", "ext-skills"])
def client(request: pytest.FixtureRequest) -> str:
    return request.param


def read_all(node: Node, client: str, served: Served, transport: Transport, era: Era) -> dict[str, Any]:
    done = node.run(client, era, transport, *served.target(transport))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["version"] == VERSIONS[era]
    return found


def check_all_read(found: dict[str, Any], served: Served) -> None:
    """Everything was listed, got, read, verified and found again by walking the directories; nothing declined."""
    assert found["refused"] == {}
    assert found.get("listing") is None  # the official client's complaint about entries
    if "catalog" in found:  # what ext-skills would tell a model: each skill by its own URI (E5)
        assert all(f"<uri>{uri}</uri>" in found["catalog"] for uri in found["skills"])
    assert sorted(path_of(uri).removesuffix("/SKILL.md") for uri in found["skills"]) == skills_of(served.tree)
    assert by_path(found["read"]) == hashes(served.tree)
    walked = {
        path_of(uri).removesuffix("/SKILL.md"): sorted(map(path_of, files))
        for uri, files in found["walked"].items()
    }
    assert walked == files_by_skill(served.tree)


@rule(
    "K1",
    "L1",
    "G1",
    "R1",
    "D1",
    "E1",
    "E2",
    "E3",
    "E4",
    "E5",
    "F2",
    "F3",
    "F4",
    "F5",
    "F6",
    "U4",
    "U7",
    "V1",
    "V4",
)
@pytest.mark.parametrize("name", ["examples", "nasty"])
def test_every_file_is_read_and_verified(
    cell: Record, node: Node, serve: Serve, client: str, name: str, transport: Transport, era: Era
) -> None:
    cell("server", PEERS[client], transport, era, *FEATURES[name])
    served = serve(name)
    check_all_read(read_all(node, client, served, transport, era), served)


@rule("E6")
@pytest.mark.parametrize(
    ("client", "transport", "era"),
    [*((OFFICIAL, *setting) for setting in DIAGONAL), (EXT_SKILLS, "http", "modern")],
    indirect=["client"],
)
def test_skills_as_large_as_they_may_be_are_read(
    cell: Record, node: Node, serve: Serve, client: str, transport: Transport, era: Era
) -> None:
    cell("server", PEERS[client], transport, era, "limits")
    served = serve("limits")
    check_all_read(read_all(node, client, served, transport, era), served)


@rule("L1", "L3", "G1")
def test_three_pages_of_skills_are_read(cell: Record, node: Node, serve: Serve, client: str) -> None:
    cell("server", PEERS[client], "http", "modern", "pages")
    served = serve("wide")
    check_all_read(read_all(node, client, served, "http", "modern"), served)


@rule("K1", "L1", "G1", "R1", "D1", "V1", "V4")
def test_skills_attached_to_a_fastmcp_server_are_read(node: Node, attached: Served, client: str, era: Era) -> None:
    check_all_read(read_all(node, client, attached, "http", era), attached)


@rule("F5", "F6", "V4")
@pytest.mark.parametrize("name", ["bom", "kept"])
def test_the_official_client_reads_a_byte_order_mark_and_a_kept_block(
    cell: Record, node: Node, serve: Serve, name: str
) -> None:
    cell("server", "typescript", "http", "modern", name)
    served = serve(name)
    check_all_read(read_all(node, OFFICIAL, served, "http", "modern"), served)


@rule("F5", "F6")
@pytest.mark.parametrize(("name", "declined"), [("bom", "marked"), ("kept", "kept")])
def test_ext_skills_declines_a_byte_order_mark_and_a_kept_block(
    cell: Record, node: Node, serve: Serve, name: str, declined: str
) -> None:
    """The peer's fault: frontmatter must begin at the first byte, and its last line break is dropped.

    Only the ``SKILL.md`` is declined; the file beside it and the skill beside that are read.
    """
    cell("server", "ext-skills", "http", "modern", name, notes={name: f"ext-skills-{name}"})
    served = serve(name)
    found = read_all(node, EXT_SKILLS, served, "http", "modern")
    uri = f"skill://{declined}/SKILL.md"
    assert found["refused"] == {uri: MISMATCH.format(uri=uri)}
    expected = hashes(served.tree)
    del expected[f"{declined}/SKILL.md"]
    assert by_path(found["read"]) == expected


@rule("F3", "F7")
def test_the_official_client_declines_metadata_that_is_not_text(node: Node, serve: Serve) -> None:
    """As the letter asks. A strict listing fails as a whole; a lenient one drops that entry only."""
    found = read_all(node, OFFICIAL, serve("metadata"), "http", "modern")
    assert found["listing"] == (
        "skills/list returned invalid entries:\n"
        "#1 skill://loose/SKILL.md: frontmatter metadata must map strings to strings"
    )
    assert list(found["read"]) == ["skill://clean/SKILL.md"]


@rule("F7", "V4")
def test_ext_skills_reads_metadata_that_is_not_text(node: Node, serve: Serve) -> None:
    served = serve("metadata")
    check_all_read(read_all(node, EXT_SKILLS, served, "http", "modern"), served)


@rule("F7", "V4")
def test_tools_in_a_list_are_read(node: Node, serve: Serve, client: str) -> None:
    served = serve("tools")
    check_all_read(read_all(node, client, served, "http", "modern"), served)
