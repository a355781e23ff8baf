"""The catalog page over real HTTP: every address shows what the protocol would show to the same caller."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import anyio
import pytest

from interaction.page_stage import PNG, TREE, call, got, got_when, is_empty, serving, shown_skills
from rules import rule
from skillwire import MemoryCatalog, SkillMeta
from skillwire.catalog.archive import local_catalog
from skillwire.limits import MIB
from skillwire.skill.entry import digest_of
from skillwire.web.files import FILE_HEADERS
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from pages import Page

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", TREE)


@rule("L1")
async def test_the_list_shows_every_listed_skill_with_what_is_known_of_it(root: Path) -> None:
    """The same skills, in the same order, as skills/list."""
    async with serving(root) as web:
        page = await got(web, "/")
        shown = shown_skills(page)
        assert shown == [
            "acme/billing/refunds", "acme/release", "acme/release/changelog", "flat", "guide",
            "odd-names", "windows",
        ]  # fmt: skip
        assert "Shows everything." in page.text
        assert len(page.all("time")) == len(shown)
        assert "/?under=acme" in page.links
        under = await got(web, "/?under=acme/release")
        assert shown_skills(under) == ["acme/release/changelog"]
        for address in ("/?under=nowhere", "/?page=99"):
            page = await got(web, address)
            assert shown_skills(page) == []
            assert is_empty(page)


@rule("E1", "E3", "G1")
async def test_a_skills_page_has_its_text_its_fields_its_files_and_its_entry(root: Path) -> None:
    async with serving(root) as web:
        page = await got(web, "/skill/guide")
        assert page.all("img") == [{"src": "/raw/guide/logo.png", "alt": "logo", "loading": "lazy"}]
        assert "/file/guide/notes.md" in page.links
        assert not [link for link in page.links if "gone.md" in link or "flat" in link]
        page = await got(web, "/skill/guide?tab=details")
        for words in ("license", "MIT", "allowed-tools", "Read Bash", '"owner": "docs"', "skill://guide/SKILL.md"):
            assert words in page.text
        sent = (await web.get("/entry/guide")).json()
        page = await got(web, "/skill/guide?tab=files")
        for file in sent["skill"]["resources"]:
            assert f"/file/{quote(file['uri'].removeprefix('skill://'))}" in page.links
            assert file["digest"][:19] in page.text
        assert {button.get("data-copy") for button in page.all("button")} >= {
            f["uri"] for f in sent["skill"]["resources"]
        }


@rule("G1")
async def test_the_entry_is_what_the_protocol_sends(root: Path) -> None:
    async with serving(root) as web:
        sent = await call(web, "skills/get", uri="skill://guide/SKILL.md")
        entry = await web.get("/entry/guide")
        assert entry.json()["skill"] == sent["skill"]
        assert entry.headers["content-security-policy"] == FILE_HEADERS["Content-Security-Policy"]


async def test_hosts_are_told_the_address_by_which_one_came(root: Path) -> None:
    async with serving(root) as web:
        url = str(web.base_url).rstrip("/") + "/mcp"
        for address in ("/connect", "/skill/guide?tab=install"):
            page = await got(web, address)
            assert f"claude mcp add --transport http the-skills {url}" in page.text
            assert '"mcpServers"' in page.text
    async with serving(root, public_url="https://skills.example.com/below/mcp") as web:
        page = await got(web, "/connect")
        assert "https://skills.example.com/below/mcp" in page.text
        assert "/below/problems" in page.links


async def test_markdown_is_rendered_or_shown_as_it_is_written(root: Path) -> None:
    async with serving(root) as web:
        rendered = await got(web, "/file/guide/notes.md")
        assert "# Notes" not in rendered.text
        assert rendered.all("em")
        written = await got(web, "/file/guide/notes.md?as=text")
        assert "# Notes" in written.text
        assert not written.all("em")


async def test_text_has_line_numbers_and_colours(root: Path) -> None:
    async with serving(root) as web:
        page = await got(web, "/file/guide/tool.py")
        assert [link for link in page.links if link.startswith("#L")] == ["#L1", "#L2", "#L3"]
        assert '<span class="k">import</span>' in page.html
        source = await got(web, "/file/guide/SKILL.md")
        assert "allowed-tools: Read Bash" in source.text


async def test_other_files_are_shown_as_what_they_are(root: Path) -> None:
    write_tree(root, {"guide/photo.png": PNG + bytes(2 * MIB), "guide/poster.png": PNG + bytes(16 * MIB)})
    async with serving(root) as web:
        assert (await got(web, "/file/guide/photo.png")).all("img")[0]["src"] == "/raw/guide/photo.png"
        for name in ("poster.png", "large.txt", "data.bin", "empty.txt"):  # too large, not text, or nothing
            page = await got(web, f"/file/guide/{name}")
            assert is_empty(page), name
            assert (page.all("img"), page.all("pre")) == ([], []), name
            assert f"/raw/guide/{name}" in page.links
        assert (await got(web, "/file/guide/logo.png")).all("img")[0]["src"] == "/raw/guide/logo.png"
        assert "<script>1</script>" in (await got(web, "/file/guide/drawing.svg")).text
        odd = quote("odd-names/references/Résumé & notes #1?.md")
        assert "naïve" in (await got(web, f"/file/{odd}")).text


@rule("R2")
async def test_raw_bytes_are_the_files_and_never_a_document(root: Path) -> None:
    async with serving(root) as web:
        for name in ("drawing.svg", "data.bin", "notes.md", "logo.png", "SKILL.md"):
            answer = await web.get(f"/raw/guide/{name}")
            assert answer.content == TREE[f"guide/{name}"]
            is_image = name == "logo.png"
            assert answer.headers["content-type"] == ("image/png" if is_image else "application/octet-stream")
            assert answer.headers["content-disposition"].startswith("inline" if is_image else "attachment")
            assert answer.headers["content-security-policy"].startswith("sandbox")
            assert answer.headers["x-content-type-options"] == "nosniff"


NOT_THERE = [
    "/skill/nothing", "/skill/", "/skill/acme", "/skill/%2e%2e/guide", "/skill/a//b",
    "/file/guide/gone.md", "/file/guide", "/file/", "/file/guide/%2e%2e/%2e%2e/etc/passwd",
    "/file/guide/.git/config",
    "/raw/guide/gone", "/raw/etc/passwd", "/raw/guide/..%2f..%2fsecret", "/raw/guide/%00", "/entry/nothing",
    "/entry/guide/SKILL.md", "/skill/broken", "/file/broken/SKILL.md",
]  # fmt: skip


async def test_what_is_not_there_is_a_page_with_the_status_404(root: Path) -> None:
    async with serving(root) as web:
        for address in NOT_THERE:
            page = await got(web, address, 404)
            assert len(page.all("h1")) == 1, address
            assert str(root.parent) not in page.html


@rule("X1")
async def test_search_is_that_of_search_skills_whole_or_in_part(root: Path) -> None:
    """Found by a word in the body."""
    write_tree(root, {"deep/SKILL.md": skill_md("deep", body="Mentions pangolins <b>once</b>.\n")})
    async with serving(root) as web:
        whole = await got(web, "/search?q=pangolin")
        part = await got(web, "/search?q=pangolin&part=1")
        for page in (whole, part):
            assert shown_skills(page) == ["deep"]
            assert "pangolins <b>once</b>" in page.text
        assert whole.all("html")
        assert not part.all("html")
        assert is_empty(await got(web, "/search?q=xyzzy"))
        assert (await web.get("/search?q=%20")).headers["location"] == "/"
        assert "/skill/flat" in (await got(web, "/search?q=&part=1")).links


@rule("X1")
async def test_the_page_finds_the_skills_of_search_skills_in_the_same_order(root: Path) -> None:
    bodies = {name: f"{'lantern ' * often}and more words.\n" for name, often in (("a", 1), ("b", 9), ("c", 3))}
    described = {"d/SKILL.md": skill_md("d", "All about the lantern.")}
    write_tree(root, {f"{name}/SKILL.md": skill_md(name, body=body) for name, body in bodies.items()} | described)
    async with serving(root) as web:
        for query in ("lantern", "lantern words", "refund", "guide shows", '"and more"', "nothing-has-this"):
            arguments = {"query": query, "limit": 50}
            told = await call(web, "tools/call", name="search_skills", arguments=arguments)
            uris = [skill["uri"] for skill in told["structuredContent"]["skills"]]
            page = await got(web, f"/search?q={quote(query)}")
            assert [f"skill://{path}/SKILL.md" for path in shown_skills(page)] == uris
        assert len(uris) == 0
        assert len(shown_skills(await got(web, "/search?q=lantern"))) == 4


def heading(page: Page) -> str:
    [found] = re.findall("<h1.*?</h1>", page.html, re.DOTALL)
    return found


async def test_the_heading_says_what_is_below_it(root: Path) -> None:
    """Also if only the results are replaced: a search is in everything, wherever one was."""
    async with serving(root) as web:
        for address in ("/?under=acme", "/search?q=&part=1&under=acme"):
            assert "acme" in heading(await got(web, address))
        for address in ("/", "/search?q=flat", "/search?q=flat&part=1&under=acme"):
            assert "acme" not in heading(await got(web, address))
        whole = (await got(web, "/?under=acme")).html
        assert whole.index('id="results"') < whole.index("<h1>")


@rule("R3")
async def test_the_last_change_is_that_of_what_it_says(root: Path) -> None:
    """In the list the SKILL.md's; on the skill's page the newest of its files'."""
    os.utime(root / "guide/SKILL.md", (1e9, 1e9))
    for name in ("guide/notes.md", "guide/tool.py", "guide/logo.png", "guide/drawing.svg", "guide/data.bin",
                 "guide/empty.txt", "guide/large.txt"):  # fmt: skip
        os.utime(root / name, (1.1e9, 1.1e9))
    os.utime(root / "guide/tool.py", (1.2e9, 1.2e9))
    async with serving(root) as web:
        listed = await got(web, "/search?q=guide")
        assert listed.all("time")[shown_skills(listed).index("guide")]["datetime"] == "2001-09-09T01:46:40Z"
        assert (await got(web, "/skill/guide")).all("time")[0]["datetime"] == "2008-01-10T21:20:00Z"


async def test_a_skill_is_downloaded_as_the_archive_whose_digest_the_page_states(root: Path) -> None:
    async with serving(root) as web:
        archive = await web.get("/zip/acme/release")
        assert archive.headers["content-disposition"].startswith("attachment")
        assert digest_of(archive.content) in (await got(web, "/skill/acme/release?tab=install")).text
        assert (await web.get("/zip/nothing")).status_code == 404


async def test_the_risk_of_a_skill_is_on_its_page_and_in_lists_with_its_evidence(root: Path) -> None:
    tree = {
        "risky/SKILL.md": skill_md("risky", body="<!-- psst -->\n\nSee https://out.example/x.\n"),
        "risky/run.sh": b"",
    }
    async with serving(write_tree(root, tree)) as web:
        evidence = {f"/skill/risky?tab=findings#{part}" for part in ("hidden", "scripts", "domains")}
        await got_when(web, "/", lambda page: evidence <= set(page.links))
        for address in ("/search?q=risky", "/skill/risky"):
            assert evidence <= set((await got(web, address)).links)
        findings = (await got(web, "/skill/risky?tab=findings")).text
        assert all(words in findings for words in ("psst", "out.example", "run.sh"))
        assert shown_skills(await got(web, "/?has=hidden")) == ["risky"]
        assert shown_skills(await got(web, "/?has=scripts&sort=name")) == ["guide", "risky"]
        assert shown_skills(await got(web, "/?license=MIT")) == ["guide"]
        assert shown_skills(await got(web, "/?since=day&under=acme/release")) == ["acme/release/changelog"]


async def test_a_typo_gets_a_suggestion(root: Path) -> None:
    async with serving(root) as web:
        assert "/search?q=refunds" in (await got(web, "/search?q=refnuds")).links


@rule("S1")
async def test_a_page_hears_of_changes(root: Path) -> None:
    async with serving(root) as web, web.stream("GET", "/events") as answer:
        lines = answer.aiter_lines()
        first = await anext(line async for line in lines if line.startswith("data:"))
        write_tree(root, {"new/SKILL.md": skill_md("new")})
        with anyio.fail_after(20):
            assert await anext(line async for line in lines if line.startswith("data:")) != first


async def test_every_problem_that_check_finds_is_on_the_page_and_marks_its_skill(root: Path) -> None:
    async with serving(root) as web:
        await got_when(web, "/problems", lambda page: "link-broken" in page.text)
        assert "/skill/guide?tab=findings#problems" in (await got(web, "/")).links
        assert "gone.md" in (await got(web, "/skill/guide?tab=findings")).text


async def test_what_was_left_out_is_said_with_the_reason(root: Path) -> None:
    async with serving(root) as web:
        page = await got(web, "/problems")
        assert "name-invalid" in page.text
        assert "broken/SKILL.md" in page.text
        assert "guide/.git" in page.text
        assert "secret" not in page.text


async def test_a_broken_skill_that_would_not_be_listed_is_not_named(tmp_path: Path) -> None:
    broken = {"SKILL.md": b"---\nname: Bad Name\n---\n", ".git/config": b"x"}
    tree = {f"{folder}/{name}": data for folder in ("shown", "drafts/quiet") for name, data in broken.items()}
    root = write_tree(tmp_path / "skills", tree)
    (root / "skillwire.toml").write_text('[skills."drafts/quiet"]\nlisted = false\n')
    async with serving(root) as web:
        page = await got(web, "/problems")
        assert "shown/SKILL.md" in page.text
        assert "shown/.git" in page.text
        assert "quiet" not in page.text


async def test_a_catalog_without_problems_or_without_skills_says_so() -> None:
    async with serving(MemoryCatalog()) as web:
        for address in ("/problems", "/"):
            assert is_empty(await got(web, address))


async def test_no_page_names_a_path_of_the_machine(root: Path) -> None:
    async with serving(root) as web:
        tabs = [f"/skill/guide?tab={tab}" for tab in ("files", "findings", "install", "details")]
        for address in (
            "/",
            "/skill/guide",
            "/file/guide/tool.py",
            "/problems",
            "/connect",
            "/search?q=guide",
            *tabs,
        ):
            assert str(root.parent) not in (await got(web, address)).html


@rule("S1")
async def test_a_change_on_disk_is_on_the_page(root: Path) -> None:
    async with serving(root) as web:
        assert "Do it." in (await got(web, "/skill/flat")).text
        write_tree(root, {"flat/SKILL.md": skill_md("flat", body="Do it differently.\n")})
        with anyio.fail_after(20):
            while "Do it differently." not in (await web.get("/skill/flat")).text:
                await anyio.lowlevel.checkpoint()


async def test_another_host_is_refused_as_by_the_protocol(root: Path) -> None:
    hosts = ["evil.example", "evil.example:80", "127.0.0.1.evil.example:1", "evil.example", "evil.example"]
    addresses = ["/", "/skill/guide", "/raw/guide/notes.md", "/static/style.css", "/search?q=x"]
    async with serving(root) as web:
        for host, address in zip(hosts, addresses, strict=True):
            answer = await web.get(address, headers={"Host": host})
            assert answer.status_code == 421, host
            assert "guide" not in answer.text
            assert answer.headers["content-security-policy"] == "default-src 'none'"
        assert (await web.get("/", headers={"Origin": "http://evil.example"})).status_code == 403


async def test_what_is_not_the_pages_stays_as_it_was(root: Path) -> None:
    async with serving(root) as web:
        assert (await web.get("/healthz")).text == "ok\n"
        assert (await web.get("/nothing")).status_code == 404
        assert (await web.get("/.well-known/oauth-protected-resource")).status_code == 404
        assert (await web.get("/mcp/")).status_code == 307
        assert (await web.post("/")).status_code == 405


async def test_a_large_catalog_comes_in_pages_that_weigh_little(tmp_path: Path) -> None:
    long = "words " * 170
    tree = {f"team-{n % 7}/skill-{n:04}/SKILL.md": skill_md(f"skill-{n:04}", long) for n in range(130)}
    async with serving(write_tree(tmp_path / "skills", tree)) as web:
        seen: list[str] = []
        address: str | None = "/"
        while address:
            page = await got(web, address)
            assert len(page.html.encode()) < 100_000
            seen += shown_skills(page)
            address = next((tag["href"] for tag in page.all("a") if tag.get("rel") == "next"), None)
        assert len(seen) == len(set(seen)) == 130
        assert len(shown_skills(await got(web, "/"))) == 100
        assert len(shown_skills(await got(web, "/?under=team-0"))) == 19


@rule("L2", "G1")
async def test_an_unlisted_skill_is_on_no_page_but_its_own(tmp_path: Path) -> None:
    """Its problems, and what was left out of it, are not told."""
    broken = b"---\nname: Broken Name\ndescription: x\n---\n"
    tree = {
        "open/SKILL.md": skill_md("open"),
        "open/.git/config": b"",
        "broken/SKILL.md": broken,
        "Twin/twin/SKILL.md": skill_md("twin"),
        "twin/twin/SKILL.md": skill_md("twin"),
        "drafts/secret-plan/SKILL.md": skill_md("secret-plan", "x" * 2000),
        "drafts/secret-plan/.git/config": b"",
        "drafts/secret-broken/SKILL.md": broken,
        "drafts/secret-broken/.git/config": b"",
    }
    root = write_tree(tmp_path / "skills", tree)
    catalog = local_catalog(
        root, describe=lambda path, _: SkillMeta(listed=not path.startswith(("drafts/", "Twin/")))
    )
    async with serving(catalog, unlisted=("drafts/*", "Twin/*")) as web:
        for address in ("/", "/problems", "/search?q=secret", "/?under=drafts"):
            page = (await got(web, address)).html
            assert "secret-" not in page
            assert "Twin" not in page
        left_out = (await got(web, "/problems")).text
        assert "broken/SKILL.md" in left_out
        assert "open/.git" in left_out
        await got(web, "/skill/drafts/secret-plan")
