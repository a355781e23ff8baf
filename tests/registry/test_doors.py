"""The doors of a registry, over HTTP with real tokens: publishing, versions over MCP, and that nothing leaks."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from anyio import connect_tcp, fail_after
from mcp.shared.exceptions import MCPError

from registry.stage import publish, refunds, running_registry
from rotation import every_setting
from rules import rule
from skillwire.errors import ApprovalError, ConflictError, FormatError, NotFoundError, VerificationError
from skillwire.registry.model import Namespace
from skillwire.skill import digest_of
from skillwire.skill.archive import pack
from skillwire.skill.version_status import VERSION, VERSIONS
from skillwire.skill.well_known import archive_name

if TYPE_CHECKING:
    import httpx2

    from interaction.conftest import Wire
    from registry.stage import Running

pytestmark = pytest.mark.anyio

REFUNDS = "skill://acme/refunds/SKILL.md"


async def test_versions_channels_and_pins_over_mcp(mode: str) -> None:
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        async with running.api(await running.token("user:operator")) as ada:
            first = await publish(ada, "acme/refunds", refunds("One.\n", **{"notes/a b.md": b"hello"}))
            second = await publish(ada, "acme/refunds", refunds("Two.\n"), channel="beta")
        assert [first["version"], second["version"]] == ["0.1.0", "0.1.1"]
        async with running.mcp(mode=mode) as wire:
            listing = await wire.call("skills/list")
            assert [entry["uri"] for entry in listing["skills"]] == [REFUNDS]
            texts: dict[str, str] = {}
            for at in ("refunds", "@0.1.0/refunds", "@beta/refunds", "@0.1.1/refunds"):
                uri = f"skill://acme/{at}/SKILL.md"
                got = await wire.call("skills/get", uri=uri)
                assert got["skill"]["uri"] == uri
                assert {each["uri"] for each in got["skill"]["resources"]} >= {uri}
                texts[at] = (await wire.call("resources/read", uri=uri))["contents"][0]["text"].split()[-1]
            assert list(texts.values()) == ["One.", "One.", "Two.", "Two."]
            file = await wire.call("resources/read", uri="skill://acme/@0.1.0/refunds/notes/a%20b.md")
            assert file["contents"][0]["text"] == "hello"
            folder = await wire.call("resources/directory/read", uri="skill://acme/@0.1.0/refunds")
            assert [item["name"] for item in folder["resources"]] == ["SKILL.md", "notes"]
            above = await wire.call("resources/directory/read", uri="skill://acme")
            assert [item["name"] for item in above["resources"]] == ["refunds"]
            for unknown in ("acme/@0.9.0/refunds", "acme/@stable/refunds", "acme/@gamma/refunds", "acme/@0.1.0/x"):
                with pytest.raises(MCPError):
                    await wire.call("skills/get", uri=f"skill://{unknown}/SKILL.md")


async def test_the_status_of_each_version_is_told_beside_its_entry(mode: str) -> None:
    """Its number, its own URI, and why it or the skill was withdrawn; for a client with another version, too."""
    exact, was_yanked = "skill://acme/@0.1.0/refunds/SKILL.md", "skill://acme/@0.1.1/refunds/SKILL.md"
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        async with running.api(await running.token("user:operator")) as ada:
            await publish(ada, "acme/refunds", refunds("One.\n"))
            await publish(ada, "acme/refunds", refunds("Two.\n"))
            await ada.call("POST", "skills/acme/refunds/-/versions/0.1.1/yank", {"reason": "pays twice"})
            moved = {"message": "moved", "instead": "acme/returns"}
            await ada.call("PUT", "skills/acme/refunds/-/deprecation", moved)
        gone = {"deprecated": "moved", "instead": "acme/returns"}
        stable = {"number": "0.1.0", "uri": exact, **gone}
        async with running.mcp(mode=mode) as wire:
            listing = await wire.call("skills/list")
            assert listing["_meta"][VERSIONS] == {REFUNDS: stable}
            assert set(listing["skills"][0]) == {"uri", "frontmatter", "resources"}
            for uri, stated in [
                (REFUNDS, stable),
                (exact, stable),
                (was_yanked, {"number": "0.1.1", "uri": was_yanked, "yanked": "pays twice", **gone}),
            ]:
                got = await wire.call("skills/get", uri=uri)
                assert got["_meta"][VERSION] == stated
                assert set(got["skill"]) == {"uri", "frontmatter", "resources"}


async def test_a_version_never_changes_and_a_repeat_changes_nothing() -> None:
    async with running_registry() as running:
        await running.namespace("acme")
        async with running.api(await running.token("user:operator")) as ada:
            numbered = refunds(extra="metadata:\n  version: 1.2.0\n")
            assert (await publish(ada, "acme/refunds", numbered))["outcome"] == "created"
            assert (await publish(ada, "acme/refunds", numbered))["outcome"] == "unchanged"
            with pytest.raises(ConflictError):
                await publish(ada, "acme/refunds", refunds("Other.\n", extra="metadata:\n  version: 1.2.0\n"))
            with pytest.raises(FormatError):
                await publish(ada, "acme/refunds", numbered, version="1.3.0")
            history = await ada.call("GET", "skills/acme/refunds")
            assert [(each["version"], each["channels"]) for each in history["versions"]] == [("1.2.0", ["stable"])]


@pytest.mark.parametrize(
    "files",
    [
        {"SKILL.md": b"no frontmatter"},
        {"SKILL.md": b"---\nname: other\ndescription: x\n---\n"},
        refunds(**{"../up.md": b"x"}),
        refunds(**{"inner/SKILL.md": b"---\nname: inner\ndescription: x\n---\n"}),
        refunds(**{"A.md": b"x", "a.md": b"y"}),
        {"README.md": b"x"},
    ],
)
async def test_what_serve_would_not_serve_cannot_be_published(files: dict[str, bytes]) -> None:
    async with running_registry() as running:
        await running.namespace("acme")
        async with running.api(await running.token("user:operator")) as ada:
            with pytest.raises(FormatError):
                await publish(ada, "acme/refunds", files)
            assert await ada.find("skills/acme/refunds") is None


async def test_files_that_are_not_those_of_their_digest_are_refused() -> None:
    async with running_registry() as running:
        await running.namespace("acme")
        async with running.api(await running.token("user:operator")) as ada:
            with pytest.raises(VerificationError):
                await ada.upload("acme", f"sha256:{'0' * 64}", b"other")
            body = {"files": [{"path": "SKILL.md", "digest": f"sha256:{'0' * 64}", "size": 3}]}
            with pytest.raises(FormatError) as caught:
                await ada.call("POST", "skills/acme/refunds/-/versions", body)
            assert caught.value.reference == "registry-file-missing"


async def test_a_role_decides_what_a_caller_may_do() -> None:
    async with running_registry() as running:
        roles = {"user:ben": "publisher", "user:eve": "reader"}
        await running.namespace("acme", roles=roles)
        async with running.api(await running.token("user:ben")) as ben:
            await publish(ben, "acme/refunds", refunds())
            with pytest.raises(ApprovalError):
                await ben.call("PUT", "namespaces/acme/grants/user:mallory", {"role": "owner"})
            with pytest.raises(ApprovalError):
                await ben.call("PUT", "namespaces/other", {})
        async with running.api(await running.token("user:eve")) as eve:
            assert (await eve.call("GET", "skills/acme/refunds"))["channels"] == {"stable": "0.1.0"}
            with pytest.raises(ApprovalError):
                await publish(eve, "acme/refunds", refunds("More.\n"))
        limited = await running.token("user:ben")
        async with running.api(limited) as ben:
            made = await ben.call("POST", "tokens", {"name": "read", "actions": ["read"], "days": 1})
        async with running.api(made["secret"]) as reading:
            with pytest.raises(ApprovalError):
                await publish(reading, "acme/refunds", refunds("More.\n"))
        async with running.api(await running.token("user:mallory")) as mallory:
            with pytest.raises(NotFoundError):
                await publish(mallory, "acme/refunds", refunds("More.\n"))


async def test_a_yanked_version_is_found_by_its_number_only() -> None:
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        async with running.api(await running.token("user:operator")) as ada, running.mcp() as wire:
            await publish(ada, "acme/refunds", refunds("One.\n"))
            await publish(ada, "acme/refunds", refunds("Two.\n"))
            await ada.call("POST", "skills/acme/refunds/-/versions/0.1.1/yank", {"reason": "refunds twice"})
            assert (await ada.call("GET", "skills/acme/refunds"))["channels"] == {"stable": "0.1.0"}
            assert "One." in (await wire.call("resources/read", uri=REFUNDS))["contents"][0]["text"]
            pin = await wire.call("resources/read", uri="skill://acme/@0.1.1/refunds/SKILL.md")
            assert "Two." in pin["contents"][0]["text"]


async def test_in_a_reviewed_namespace_another_person_approves() -> None:
    """Until then others do not see the version, by no address."""
    async with running_registry() as running:
        roles = {"user:ben": "publisher", "user:rita": "reviewer", "user:eve": "reader"}
        await running.namespace("acme", reviewed=True, roles=roles)
        async with (
            running.api(await running.token("user:ben")) as ben,
            running.api(await running.token("user:rita")) as rita,
            running.mcp(await running.token("user:eve")) as wire,
        ):
            published = await publish(ben, "acme/refunds", refunds())
            assert not published["moved"]
            for uri in (REFUNDS, "skill://acme/@0.1.0/refunds/SKILL.md"):
                with pytest.raises(MCPError):
                    await wire.call("skills/get", uri=uri)
            [review] = (await rita.call("GET", "reviews"))["reviews"]
            assert review["number"] == published["waits"]
            where, body = f"reviews/{review['number']}", {"verdict": "approved", "digest": review["digest"]}
            with pytest.raises(ApprovalError):
                await ben.call("POST", where, body)
            with pytest.raises(VerificationError):
                await rita.call("POST", where, {**body, "digest": f"sha256:{'0' * 64}"})
            await rita.call("POST", where, body)
            assert (await wire.call("skills/get", uri=REFUNDS))["skill"]["uri"] == REFUNDS


@pytest.mark.parametrize(
    ("proxies", "told", "logged"),
    [
        ([], "192.0.2.7", "127.0.0.1"),  # any client could say so
        (["127.0.0.1"], "192.0.2.7", "192.0.2.7"),
        (["127.0.0.0/8", "10.0.0.0/8"], "192.0.2.7, 10.1.1.1", "192.0.2.7"),
        (["127.0.0.1"], "192.0.2.7, 10.1.1.1", "10.1.1.1"),
        (["127.0.0.1"], "192.0.2.7, nonsense", "127.0.0.1"),
        (["192.0.2.0/24"], "192.0.2.7", "127.0.0.1"),
    ],
)
async def test_the_log_has_the_address_that_a_trusted_proxy_tells(
    proxies: list[str], told: str, logged: str
) -> None:
    async with running_registry(proxies=proxies) as running:
        await running.namespace("acme")
        async with running.raw(await running.token("user:operator", is_admin=True)) as web:
            settings = {"public": True, "quota": {"skills": 7}}
            headers = {"X-Forwarded-For": told}
            made = (await web.patch("/v1/namespaces/acme", json=settings, headers=headers)).json()
            assert (made["quota"]["skills"], made["quota"]["versions"]) == (7, Namespace("acme").quota.versions)
            newest = (await web.get("/v1/audit?namespace=acme")).json()["changes"][0]
        assert newest["address"] == logged
        assert (newest["facts"]["before"]["skills"], newest["facts"]["after"]["skills"]) == (10_000, 7)


async def test_an_invalid_token_is_refused_at_every_door() -> None:
    async with running_registry() as running:
        for token in ("skw_unknown", "a.b.c", "-"):
            async with running.raw(token) as web:
                for method, path in (("GET", "/v1/namespaces"), ("POST", "/mcp"), ("GET", "/anything")):
                    assert (await web.request(method, path)).status_code == 401
        async with running.raw() as web:
            assert (await web.get("/healthz")).status_code == 200
            assert (await web.get("/readyz")).status_code == 200


async def test_the_openapi_document_has_every_operation() -> None:
    async with running_registry() as running, running.raw() as web:
        document = (await web.get("/v1/openapi.json")).json()
        assert document["paths"]["/v1/skills/{path}/-/versions"]["post"]["operationId"] == "publish"
        count = sum(len(methods) for methods in document["paths"].values())
        assert count == 33
        search = document["paths"]["/v1/search"]["get"]
        assert [(each["name"], each["in"]) for each in search["parameters"]] == [
            ("q", "query"),
            ("limit", "query"),
        ]
        archive = document["paths"]["/v1/skills/{path}/-/versions/{version}/archive"]["get"]
        assert set(archive["responses"]["2XX"]["content"]) == {"application/zip", "application/gzip"}
        references = json.dumps(document).split('"#/components/schemas/')[1:]
        assert {each.partition('"')[0] for each in references} <= document["components"]["schemas"].keys()


# What names a private namespace, asked by a caller without a role in it.
HIDDEN_ARCHIVE = digest_of(pack(refunds(), "zip"))
GETS = [
    "/v1/namespaces",
    "/v1/namespaces/NS/skills",
    "/v1/namespaces/NS/grants",
    "/v1/namespaces/NS/publishers",
    "/v1/skills/NS/refunds",
    "/v1/skills/NS/refunds/-/versions/0.1.0",
    "/v1/skills/NS/refunds/-/versions/stable",
    "/v1/skills/NS/refunds/-/versions/stable/files/SKILL.md",
    "/v1/skills/NS/refunds/-/versions/stable/archive",
    "/v1/search?q=refunds",
    "/v1/reviews",
    "/v1/reviews?namespace=NS",
    "/v1/audit?namespace=NS",
    "/v1/tokens",
    "/NS/refunds/.well-known/agent-skills/index.json",
    "/NS/refunds/.well-known/skills/index.json",
    "/NS/refunds@0.1.0/.well-known/agent-skills/index.json",
    "/NS/@0.1.0/refunds/.well-known/agent-skills/index.json",
    "/NS/.well-known/agent-skills/index.json",
    f"/NS/refunds/.well-known/agent-skills/{archive_name(HIDDEN_ARCHIVE)}",
    "/api/search?q=refunds",
    "/api/search?q=NS",
    "/.well-known/agent-skills/index.json",
    "/",
    "/?after=NS&from=NS",
    "/?under=NS",
    "/?under=NS/refunds",
    "/search?q=NS",
    "/search?q=refunds&part=1",
    "/connect",
    "/skill/NS/refunds",
    "/skill/NS/refunds?tab=install",
    "/skill/NS/@0.1.0/refunds",
    "/entry/NS/refunds",
    "/file/NS/refunds/SKILL.md",
    "/file/NS/@0.1.0/refunds/SKILL.md",
    "/raw/NS/refunds/SKILL.md",
    "/zip/NS/refunds",
    "/versions/NS/refunds",
    "/versions/NS/refunds?from=0.1.0&to=0.1.1",
    "/reviews",
    "/reviews?namespace=NS",
    "/log",
    "/log?namespace=NS",
]
FILE = {"path": "SKILL.md", "digest": f"sha256:{'0' * 64}", "size": 1}
CHANGES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("PATCH", "/v1/namespaces/NS", {"public": True}),
    ("PUT", "/v1/namespaces/NS", {}),
    ("PUT", "/v1/namespaces/NS/grants/user:mallory", {"role": "owner"}),
    ("POST", "/v1/namespaces/NS/blobs/missing", {"digests": [f"sha256:{'0' * 64}"]}),
    ("POST", "/v1/skills/NS/refunds/-/versions", {"files": [FILE]}),
    ("PUT", "/v1/skills/NS/refunds/-/channels/stable", {"version": "0.1.0"}),
    ("POST", "/v1/skills/NS/refunds/-/versions/0.1.0/yank", {"reason": "x"}),
    ("PUT", "/v1/skills/NS/refunds/-/deprecation", {"message": "x"}),
    ("PUT", "/v1/skills/NS/refunds/-/listed", {"listed": False}),
    ("DELETE", "/v1/skills/NS/refunds/-/versions/0.1.0", {"reason": "x"}),
    ("POST", "/v1/tokens", {"name": "x", "namespace": "NS"}),
]  # fmt: skip
FORMS = [
    ("/change/NS/refunds", {"what": "move", "channel": "stable", "version": "0.1.0"}),
    ("/change/NS/refunds", {"what": "yank", "version": "0.1.0", "note": "x"}),
    ("/change/NS/refunds", {"what": "unyank", "version": "0.1.0"}),
    ("/change/NS/refunds", {"what": "deprecate", "note": "x"}),
    ("/change/NS/refunds", {"what": "undeprecate"}),
]
QUESTIONS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "/mcp": [
        ("skills/list", {}),
        ("skills/get", {"uri": "skill://NS/refunds/SKILL.md"}),
        ("skills/get", {"uri": "skill://NS/@0.1.0/refunds/SKILL.md"}),
        ("resources/list", {}),
        ("resources/read", {"uri": "skill://NS/refunds/SKILL.md"}),
        ("resources/read", {"uri": "skill://NS/refunds.zip"}),
        ("resources/read", {"uri": "skill://index.json"}),
        ("resources/directory/read", {"uri": "skill://NS"}),
        ("resources/directory/read", {"uri": "skill://NS/refunds"}),
        ("resources/templates/list", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "list_skills", "arguments": {}}),
        ("tools/call", {"name": "search_skills", "arguments": {"query": "NS refunds customers"}}),
        ("tools/call", {"name": "load_skill", "arguments": {"skill": "NS/refunds"}}),
        ("tools/call", {"name": "load_skill", "arguments": {"skill": "refunds"}}),
        ("tools/call", {"name": "read_skill_file", "arguments": {"skill": "NS/refunds", "path": "SKILL.md"}}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "refunds"}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "skill://{+path}"},
                "argument": {"name": "path", "value": "NS"},
            },
        ),
    ],
    "/mcp/sep-2076": [
        ("skills/list", {}),
        ("skills/get", {"name": "refunds"}),
        ("skills/get", {"name": "NS/refunds"}),
    ],
    "/mcp/native": [("skills/list", {}), ("skills/activate", {"name": "NS/refunds"})],
}  # fmt: skip


async def _asked(web: httpx2.AsyncClient, name: str) -> list[Any]:
    answers: list[Any] = []
    for path in GETS:
        response = await web.get(path.replace("NS", name))
        answers.append([path, response.status_code, _headers(response), _without_age(response.text)])
    for method, path, body in CHANGES:
        given = json.loads(json.dumps(body).replace("NS", name))
        response = await web.request(method, path.replace("NS", name), json=given)
        answers.append([method, path, response.status_code, _headers(response), response.text])
    for path, fields in FORMS:
        origin = {"Origin": str(web.base_url).rstrip("/")}
        response = await web.post(path.replace("NS", name), data=fields, headers=origin)
        answers.append(["POST", path, response.status_code, _headers(response), response.text])
    return answers


def _without_age(text: str) -> str:
    """A page without words such as "5 seconds ago"."""
    return re.sub(r"(<time [^>]*>)[^<]*", r"\1", text)


def _headers(response: httpx2.Response) -> dict[str, str]:
    return {key: value for key, value in response.headers.items() if key != "date"}


async def _said(wire: Wire, path: str, name: str) -> list[Any]:
    answers: list[Any] = []
    for method, params in QUESTIONS[path]:
        try:
            answer: Any = await wire.call(method, **json.loads(json.dumps(params).replace("NS", name)))
        except MCPError as error:
            answer = error.error.model_dump()
        answers.append([method, params, answer])
    return answers


async def _everything(running: Running, token: str | None, mode: str) -> str:
    answers: list[Any] = []
    async with running.raw(token) as web:
        with fail_after(20):
            while "not searched" in (await web.get("/")).text:  # the page shows more when the skill was examined
                continue
        answers += await _asked(web, "hidden")
    for path in QUESTIONS:
        async with running.mcp(token, mode, path) as wire:
            answers += await _said(wire, path, "hidden")
    return json.dumps(answers, indent=1)


@every_setting
@rule("G1", "R1", "D1", "T1", "M1", "M2", "P1", "P2", "X1")
@pytest.mark.parametrize("who", [None, "user:mallory"])
async def test_at_no_door_is_there_a_trace_of_a_private_namespace(mode: str, who: str | None) -> None:
    """A caller gets the same bytes before the namespace exists, and when it has skills."""
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        token = None if who is None else await running.token(who)
        async with running.api(await running.token("user:operator")) as ada:
            await publish(ada, "acme/other", refunds(name="other"))
            before = await _everything(running, token, mode)
            await running.namespace("hidden")
            await publish(ada, "hidden/refunds", refunds())
        assert await _everything(running, token, mode) == before


@rule("Z6")
async def test_the_body_of_a_stranger_is_not_read() -> None:
    """A change needs a token. Without one the response comes before the body was sent."""
    async with running_registry() as running:
        await running.namespace("acme", public=True)
        place = urlsplit(running.url)
        for method, path in [
            ("POST", "/v1/namespaces/acme/blobs/missing"),
            ("PUT", "/v1/namespaces/hidden"),
            ("POST", "/v1/skills/acme/refunds/-/versions"),
            ("PUT", f"/v1/namespaces/acme/blobs/{digest_of(b'')}"),
        ]:
            async with await connect_tcp(place.hostname or "", place.port or 0) as stream:
                head = f"{method} {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 4000000\r\n\r\n"
                await stream.send(head.encode())
                with fail_after(10):
                    assert (await stream.receive()).split(b" ")[1] == b"401"


@rule("B1")
async def test_a_body_with_too_many_values_is_not_decoded() -> None:
    async with running_registry() as running:
        await running.namespace("acme", roles={"user:ben": "publisher"})
        async with running.raw(await running.token("user:ben")) as web:
            body = b'{"digests": [' + b"[]," * 300_000 + b"[]]}"
            refused = await web.post("/v1/namespaces/acme/blobs/missing", content=body)
        assert (refused.status_code, refused.json()["error"]["reference"]) == (413, "too-many-values")


@rule("B5")
@pytest.mark.parametrize(
    "files", [["a", "a/b"], ["notes", "NOTES/x"], ["A.md", "a.md"], ["\u00e9", "e\u0301/x"]], ids=str
)
async def test_names_that_are_one_on_some_file_systems_are_refused(files: list[str]) -> None:
    async with running_registry() as running:
        await running.namespace("acme")
        async with running.api(await running.token("user:operator")) as ada:
            with pytest.raises(FormatError, match="path-collision"):
                await publish(ada, "acme/refunds", refunds(**dict.fromkeys(files, b"x")))
            assert (await ada.call("GET", "namespaces/acme/skills"))["skills"] == []
