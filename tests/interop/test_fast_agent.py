"""fast-agent's installer: it fetches every file, verifies it, and writes it into a folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from interop.cells import SETTINGS
from interop.honest import TRAITS, files_by_skill, path_of, skills_of
from interop.running import VERSIONS
from rules import rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from interop.cells import Record
    from interop.running import Era, Serve, Served, Transport
    from trees import Tree

    Install = Callable[[list["Job"]], list[dict[str, Any]]]

pytestmark = pytest.mark.timeout(300)  # one process does everything; it has its own bound
SOURCE = ".skill-source.json"  # what it adds to a skill


class Job(NamedTuple):
    """All skills of one server, over one transport, in one era, into one folder; or only the first few."""

    served: Served
    transport: Transport
    era: Era
    into: Path
    at_most: int = 1000


@pytest.fixture
def install(fast_agent: Path) -> Install:
    """Several jobs in one run: it takes seconds to start. It reads settings where it runs: in a folder of ours."""

    def run(jobs: list[Job]) -> list[dict[str, Any]]:
        given = [
            {
                "target": job.served.target(job.transport),
                "transport": job.transport,
                "era": job.era,
                "into": str(job.into),
                "at_most": job.at_most,
            }
            for job in jobs
        ]
        script = Path(__file__).parent / "peers" / "fast_agent_install.py"
        done = subprocess.run(
            [str(fast_agent), str(script)],
            input=json.dumps(given),
            cwd=jobs[0].into.parent,
            capture_output=True,
            encoding="utf-8",
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def installed(into: Path, skill: str, number: int) -> Tree:
    """The files of the ``number``-th skill, as they were written."""
    folder = into / str(number) / skill.rpartition("/")[2]
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != SOURCE]
    return {f"{skill}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in paths}


def check_installed(found: dict[str, Any], job: Job, refused: dict[str, str]) -> None:
    """Everything that was listed lies there as on the server's disk, except for what was refused."""
    assert found["version"] == VERSIONS[job.era]
    skills = [path_of(uri).removesuffix("/SKILL.md") for uri in found["skills"]]
    assert sorted(skills) == skills_of(job.served.tree)
    assert {path_of(uri).removesuffix("/SKILL.md"): why for uri, why in found["refused"].items()} == refused
    files = files_by_skill(job.served.tree)
    for number, skill in enumerate(skills[: job.at_most]):
        expected = {} if skill in refused else {path: job.served.tree[path] for path in files[skill]}
        expected.pop("hidden/.env", None)  # our server leaves it out by name
        written, manual = installed(job.into, skill, number), f"{skill}/SKILL.md"
        if b"\nallowed-tools:" in expected.get(manual, b""):  # A4: it takes out what would widen a skill's powers
            assert b"allowed-tools" not in written.pop(manual)
            del expected[manual]
        assert written == expected


# What it refuses of the disputed tree, and the feature that this is about.
REFUSED = {
    "core-schema": "MCP skill frontmatter does not match the resource manifest",
    "marked": "Failed to parse MCP skill manifest: Missing 'name' field",
}
NOTES = {"yaml": "fast-agent-yaml", "bom": "fast-agent-bom", "names": "fast-agent-portable-names"}


@rule("K1", "L1", "L3", "G1", "R1", "V1", "V4", "F4", "F5", "F6", "U7", "E4", "E5", "E6")
def test_every_honest_skill_is_installed_except_for_yaml_1_1_and_a_mark(
    cell: Record, install: Install, serve: Serve, tmp_path: Path
) -> None:
    """Over both transports, in both eras; 230 are listed, and the largest are installed.

    One name that is not portable costs it the whole listing (F7).
    """
    jobs: list[Job] = []
    for transport, era in SETTINGS:
        cell("server", "fast-agent", transport, era, "skills", notes={"skills": "fast-agent-grants"})
        jobs.append(Job(serve("examples"), transport, era, tmp_path / f"{transport}-{era}"))
    cell("server", "fast-agent", "http", "modern", "pages", "limits")
    jobs.append(Job(serve("wide"), "http", "modern", tmp_path / "wide", at_most=3))
    jobs.append(Job(serve("limits"), "http", "modern", tmp_path / "limits"))
    cell("server", "fast-agent", "http", "modern", *dict.fromkeys(TRAITS.values()), notes=NOTES)
    jobs.append(Job(serve("disputed"), "http", "modern", tmp_path / "disputed"))
    unportable = Job(serve("nasty"), "http", "modern", tmp_path / "nasty")
    *all_found, nothing = install([*jobs, unportable])
    for job, found in zip(jobs, all_found, strict=True):
        check_installed(found, job, REFUSED if job.into.name == "disputed" else {})
    assert nothing["skills"] == []
