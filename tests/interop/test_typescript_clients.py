"""Two TypeScript clients read every file of every skill, verify each in their own way, and agree with the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from interop.cells import NASTY, TREES
from interop.honest import ALIKE, by_path, files_by_skill, hashes, path_of, samples, skills_of
from interop.running import VERSIONS
from rules import rule
from skillwire.skill import format_uri

if TYPE_CHECKING:
    from interop.cells import Record
    from interop.running import Era, Node, Serve, Served, Transport

OFFICIAL, EXT_SKILLS = "read_all.mjs", "read_all_ext_skills.mjs"
PEERS = {OFFICIAL: "typescript", EXT_SKILLS: "ext-skills"}
MISMATCH = (
    "Frontmatter mismatch for {uri}: the fetched SKILL.md frontmatter does not match the entry's frontmatter. "
    "Per SEP-2640 this is a verification failure equivalent to a digest mismatch."
)


@pytest.fixture(params=[OFFICIAL, EXT_SKILLS], ids=["official", "ext-skills"])
def client(request: pytest.FixtureRequest) -> str:
    return request.param


def read_all(
    node: Node, client: str, served: Served, transport: Transport, era: Era, **env: str
) -> dict[str, Any]:
    done = node.run(client, era, transport, *served.target(transport), **env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["version"] == VERSIONS[era]
    return found


def check_all_read(found: dict[str, Any], served: Served) -> None:
    """Everything was listed, got, read, verified and found again by walking the directories; nothing declined."""
    check_read(found, served)
    assert by_path(found["read"]) == hashes(served.tree)
    assert by_skill(found["walked"]) == files_by_skill(served.tree)


def check_samples_read(found: dict[str, Any], served: Served) -> None:
    """The same, but of what is alike only every tenth was got, read and walked."""
    check_read(found, served)
    wanted = samples(hashes(served.tree))
    assert by_path(found["read"]) == {path: hashes(served.tree)[path] for path in wanted}
    skills = {path.removesuffix("/SKILL.md") for path in wanted if path.endswith("/SKILL.md")}
    assert by_skill(found["walked"]) == {
        skill: files for skill, files in files_by_skill(served.tree).items() if skill in skills
    }


def by_skill(walked: dict[str, list[str]]) -> dict[str, list[str]]:
    return {path_of(uri).removesuffix("/SKILL.md"): sorted(map(path_of, files)) for uri, files in walked.items()}


def check_read(found: dict[str, Any], served: Served) -> None:
    """Everything was listed, and nothing declined."""
    assert found["refused"] == {}
    assert found.get("listing") is None  # the official client's complaint about entries
    if "catalog" in found:  # what ext-skills would tell a model: each skill by its own URI (E5)
        assert all(f"<uri>{uri}</uri>" in found["catalog"] for uri in found["skills"])
    assert sorted(path_of(uri).removesuffix("/SKILL.md") for uri in found["skills"]) == skills_of(served.tree)


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
@pytest.mark.parametrize(("transport", "era", "name"), TREES)
def test_every_file_is_read_and_verified(
    cell: Record, node: Node, serve: Serve, client: str, name: str, transport: Transport, era: Era
) -> None:
    """By URIs that are spelled as ours."""
    cell("server", PEERS[client], transport, era, "skills", "directories", *(NASTY if name == "nasty" else ()))
    served = serve(name)
    found = read_all(node, client, served, transport, era)
    check_all_read(found, served)
    assert sorted(found["read"]) == sorted(map(format_uri, hashes(served.tree)))


@rule("E6")
@pytest.mark.parametrize(
    ("client", "transport", "era"),
    [(OFFICIAL, "stdio", "legacy"), (EXT_SKILLS, "http", "modern")],
    indirect=["client"],
)
def test_skills_as_large_as_they_may_be_are_read(
    cell: Record, node: Node, serve: Serve, client: str, transport: Transport, era: Era
) -> None:
    cell("server", PEERS[client], transport, era, "limits")
    served = serve("limits")
    check_samples_read(read_all(node, client, served, transport, era, SKIP=ALIKE), served)


@rule("L1", "L3", "G1")
def test_three_pages_of_skills_are_read(cell: Record, node: Node, serve: Serve, client: str) -> None:
    cell("server", PEERS[client], "http", "modern", "pages")
    served = serve("wide")
    check_samples_read(read_all(node, client, served, "http", "modern", SKIP=ALIKE), served)


@rule("K1", "L1", "G1", "R1", "D1", "V1", "V4")
def test_skills_attached_to_a_fastmcp_server_are_read(node: Node, attached: Served) -> None:
    check_all_read(read_all(node, OFFICIAL, attached, "http", "legacy"), attached)


@rule("F5", "F6", "V4")
def test_the_official_client_reads_a_byte_order_mark_and_a_kept_block(
    cell: Record, node: Node, serve: Serve
) -> None:
    cell("server", "typescript", "http", "modern", "bom", "kept")
    served = serve("marked-and-kept")
    check_all_read(read_all(node, OFFICIAL, served, "http", "modern"), served)


@rule("F5", "F6")
def test_ext_skills_declines_a_byte_order_mark_and_a_kept_block(cell: Record, node: Node, serve: Serve) -> None:
    """The peer's fault: frontmatter must begin at the first byte, and its last line break is dropped.

    Only the ``SKILL.md`` is declined; the file beside it and the skill beside that are read.
    """
    notes = {"bom": "ext-skills-bom", "kept": "ext-skills-kept"}
    cell("server", "ext-skills", "http", "modern", *notes, notes=notes)
    served = serve("marked-and-kept")
    found = read_all(node, EXT_SKILLS, served, "http", "modern")
    declined = ("marked/SKILL.md", "kept/SKILL.md")
    uris = [f"skill://{path}" for path in declined]
    assert found["refused"] == {uri: MISMATCH.format(uri=uri) for uri in uris}
    assert by_path(found["read"]) == {
        path: digest for path, digest in hashes(served.tree).items() if path not in declined
    }


@rule("F3", "F7", "V4")
def test_the_official_client_declines_metadata_that_is_not_text(node: Node, serve: Serve) -> None:
    """As the letter asks. A strict listing fails as a whole; a lenient one drops that entry only.

    Tools in a list are read.
    """
    found = read_all(node, OFFICIAL, serve("loose"), "http", "modern")
    assert found["listing"] == (
        "skills/list returned invalid entries:\n"
        "#1 skill://loose/SKILL.md: frontmatter metadata must map strings to strings"
    )
    assert sorted(found["read"]) == ["skill://clean/SKILL.md", "skill://tools/SKILL.md"]


@rule("F7", "V4")
def test_ext_skills_reads_metadata_that_is_not_text_and_tools_in_a_list(node: Node, serve: Serve) -> None:
    served = serve("loose")
    check_all_read(read_all(node, EXT_SKILLS, served, "http", "modern"), served)
