"""The MCP Inspector's command line verifies what we serve: envelopes, entries, sizes, digests, frontmatter."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from interop.cells import NASTY, TREES
from interop.honest import by_path, files_by_skill, hashes, path_of, skills_of
from rules import rule

if TYPE_CHECKING:
    from interop.cells import Record
    from interop.running import Era, Node, Serve, Served, Transport

INSPECTOR = "node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js"
OK, VIOLATION = 0, 7


class Verdict(NamedTuple):
    """What the Inspector said: its exit code, one report per skill by the skill's path, and the last line."""

    code: int
    reports: dict[str, dict[str, Any]]
    summary: str

    @property
    def digests(self) -> dict[str, str]:
        """What it computed for each file it read, by the file's path."""
        files = [file for report in self.reports.values() for file in report["files"]]
        assert {file["status"] for file in files} == {"verified"}
        return by_path({file["uri"]: file["actualDigest"].removeprefix("sha256:") for file in files})

    @property
    def issues(self) -> list[tuple[str, str, str]]:
        """Everything it remarked on: severity, code, skill."""
        return sorted(
            (issue["severity"], issue["code"], skill)
            for skill, report in self.reports.items()
            for issue in report["conformance"] + report["frontmatter"]
        )


def verify(node: Node, target: list[str], era: Era, *method: str) -> Verdict:
    options = ["--method", *(method or ["skills/list"]), "--verify", "--require-digests", "--format", "json"]
    done = node.run(INSPECTOR, *target, "--protocol-era", era, *options)
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    summary = done.stderr.strip().rpartition("\n")[2]
    return Verdict(done.returncode, {_skill(report): report for report in reports}, summary)


def _skill(report: dict[str, Any]) -> str:
    return next(iter(by_path({report["uri"]: None}))).removesuffix("/SKILL.md")


def check_all_verified(verdict: Verdict, served: Served) -> None:
    """Every skill and every file on disk was read, hashed and found to be what the listing promised."""
    assert verdict.code == OK, verdict.summary
    assert sorted(verdict.reports) == skills_of(served.tree)
    assert verdict.digests == hashes(served.tree)
    skills, files = len(verdict.reports), sum(map(len, files_by_skill(served.tree).values()))
    assert verdict.summary == f"Verified {skills} skills and {files} files: no conformance errors."


@rule("K1", "L1", "R1", "E2", "E3", "V1", "V4")
@pytest.mark.parametrize(("transport", "era"), [each[:2] for each in TREES if each[2] == "examples"])
def test_the_examples_verify_without_a_remark(
    cell: Record, node: Node, serve: Serve, transport: Transport, era: Era
) -> None:
    cell("server", "inspector", transport, era, "skills")
    served = serve("examples")
    verdict = verify(node, served.target(transport), era)
    check_all_verified(verdict, served)
    assert verdict.issues == []


@rule("E2", "E3", "E4", "E5", "F3", "F4", "F5", "F6", "L2", "R1", "U4", "U7", "V1", "V4")
@pytest.mark.parametrize(("transport", "era"), [each[:2] for each in TREES if each[2] == "nasty"])
def test_whatever_honest_authors_write_verifies(
    cell: Record, node: Node, serve: Serve, transport: Transport, era: Era
) -> None:
    """All it remarks is that three skills share a name."""
    cell("server", "inspector", transport, era, "skills", *NASTY)
    served = serve("nasty")
    verdict = verify(node, served.target(transport), era)
    check_all_verified(verdict, served)
    shared = [skill for skill in skills_of(served.tree) if skill.endswith("/review")]
    assert len(shared) == 3
    assert verdict.issues == [("warning", "duplicate-name", skill) for skill in shared]


@rule("G1", "U7")
def test_one_skill_is_got_by_its_uri_and_verifies(node: Node, serve: Serve) -> None:
    """An authority that is no host name, in percent-encoding."""
    uri = "skill://%C3%89quipe%201/review/SKILL.md"
    verdict = verify(node, serve("nasty").target("http"), "legacy", "skills/get", "--uri", uri)
    assert (verdict.code, verdict.issues) == (OK, [])
    assert sorted(verdict.digests) == ["Équipe 1/review/SKILL.md", "Équipe 1/review/été/à faire.md"]


@rule("E6")
def test_skills_as_large_as_they_may_be_are_got_and_verify(cell: Record, node: Node, serve: Serve) -> None:
    """Every file of 15 MiB; of 500 files, what is promised."""
    cell("server", "inspector", "http", "modern", "limits")
    served = serve("limits")
    verdict = verify(node, served.target("http"), "modern", "skills/get", "--uri", "skill://big/SKILL.md")
    expected = hashes(served.tree)
    assert (verdict.code, verdict.issues) == (OK, [])
    assert verdict.digests == {path: digest for path, digest in expected.items() if path.startswith("big/")}
    got = ask(node, served.target("http"), "modern", "skills/get", "--uri", "skill://many/SKILL.md")
    promised = {path_of(file["uri"]): file["digest"].removeprefix("sha256:") for file in got["skill"]["resources"]}
    assert promised == {path: digest for path, digest in expected.items() if path.startswith("many/")}


def ask(node: Node, target: list[str], era: Era, method: str, *words: str) -> dict[str, Any]:
    """The answer to one method."""
    options = ["--protocol-era", era, "--method", method, *words, "--format", "json"]
    done = node.run(INSPECTOR, *target, *options)
    assert done.returncode == OK, done.stderr
    answer = json.loads(done.stdout)
    return answer.get("result", answer)


@rule("D1")
def test_directories_are_read_in_pages(cell: Record, node: Node, serve: Serve) -> None:
    """The Inspector passes a cursor on, and gets every child once."""
    cell("server", "inspector", "http", "modern", "directories")
    served = serve("nasty")
    target, era, uri = served.target("http"), "modern", "skill://many/parts"
    page = ask(node, target, era, "resources/directory/read", "--uri", uri)
    children = page["resources"]
    while "nextCursor" in page:
        page = ask(node, target, era, "resources/directory/read", "--uri", uri, "--cursor", page["nextCursor"])
        children += page["resources"]
    inside = [path for path in served.tree if path.startswith("many/parts/")]
    assert sorted(path_of(child["uri"]) for child in children) == inside


@rule("R1", "T1")
def test_the_other_methods_answer(node: Node, serve: Serve) -> None:
    """Without --verify, what else the Inspector can ask of a server with skills."""
    served = serve("examples")
    target, uri = served.target("http"), "skill://csv-profile/SKILL.md"
    [content] = ask(node, target, "modern", "resources/read", "--uri", uri)["contents"]
    assert content["text"].encode() == served.tree["csv-profile/SKILL.md"]
    [template] = ask(node, target, "modern", "resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "skill://{+path}"


@rule("L1", "L3")
def test_three_pages_of_skills_verify(cell: Record, node: Node, serve: Serve) -> None:
    cell("server", "inspector", "http", "modern", "pages")
    served = serve("wide")
    check_all_verified(verify(node, served.target("http"), "modern"), served)


@rule("F6", "F7")
def test_what_other_peers_decline_verifies(cell: Record, node: Node, serve: Serve) -> None:
    """A byte order mark, metadata that is not text, tools in a list."""
    cell("server", "inspector", "http", "modern", "bom")
    served = serve("declined")
    check_all_verified(verify(node, served.target("http"), "modern"), served)


@rule("F7")
def test_skills_that_may_not_be_offered_do_not_spoil_the_one_that_may(node: Node, serve: Serve) -> None:
    served = serve("spoiled")
    verdict = verify(node, served.target("http"), "modern")
    assert verdict.code == OK
    assert list(verdict.reports) == ["clean"]
    assert verdict.summary == "Verified 1 skill and 2 files: no conformance errors."


@rule("F5")
def test_inspector_loses_the_last_line_break_of_a_kept_block(cell: Record, node: Node, serve: Serve) -> None:
    """The peer's fault: it cuts the frontmatter before the line break that precedes the closing line.

    Its YAML library puts one back for ``|`` and ``>``, so only ``|+`` shows it. The official TypeScript client
    reads the same three line breaks as we do.
    """
    cell("server", "inspector", "http", "modern", "kept", notes={"kept": "inspector-kept"})
    verdict = verify(node, serve("kept").target("http"), "modern")
    assert verdict.code == VIOLATION
    assert verdict.issues == [("error", "frontmatter-mismatch", "kept")]
    [difference] = verdict.reports["kept"]["frontmatter"]
    assert difference["message"] == (
        r'Field "notes" differs: the listing says "one\n\n\n" but the served SKILL.md says "one\n\n".'
    )
    assert Counter(report["outcome"] for report in verdict.reports.values()) == {"failed": 1, "verified": 1}


@rule("K1", "L1", "R1", "E2", "E3", "V1", "V4")
def test_skills_attached_to_a_fastmcp_server_verify(node: Node, attached: Served) -> None:
    """In the handshake era too, in which FastMCP alone serves none."""
    verdict = verify(node, attached.target("http"), "legacy")
    check_all_verified(verdict, attached)
    assert verdict.issues == []
