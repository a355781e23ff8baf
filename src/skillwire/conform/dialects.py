"""Checks of the other dialects: ``index`` (I1, I2), ``sep-2076`` (P1-P4) and ``native`` (M1, M2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from skillwire.client.bounds import as_list, as_object, as_text
from skillwire.conform.files import decode_content
from skillwire.conform.rules import INDEX, NATIVE, SEP_2076
from skillwire.errors import SkillwireError
from skillwire.skill.archive import archive_format, unpack
from skillwire.skill.entry import digest_of, is_digest
from skillwire.skill.uri import SKILL_MD
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST
from skillwire.wire.native import KINDS, SKILLS_ACTIVATE

if TYPE_CHECKING:
    from skillwire.conform.report import Exchange
    from skillwire.conform.server_run import ServerRun

INDEX_URI = "skill://index.json"
_TYPES = ("skill-md", "archive", "mcp-resource-template")
_NO_SUCH_NAME = "skillwire-conform-asks-for-nothing"
_KEYS = {"tools": "name", "prompts": "name", "resources": "uri"}
_MAX_FILES = 20


async def check_index(run: ServerRun) -> bool:
    """Check the index and everything that it names; return whether there is one."""
    exchange = await run.ask("resources/read", uri=INDEX_URI)
    data = decode_content(exchange, INDEX_URI).data
    if data is None:
        run.ledger.not_offered(INDEX, "there is no skill://index.json")
        return False
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):  # some servers answer every unknown URI with prose
        run.ledger.not_offered(INDEX, "skill://index.json is not JSON")
        return False
    skills: object = as_object(document).get("skills")
    if run.ledger.expect("I1", isinstance(skills, list), "the index has no 'skills' list", exchange):
        for item in as_list(skills)[: run.bounds.directories]:
            await _check_item(run, as_object(item), exchange)
        run.ledger.not_offered(("I2",), "the index names no archive")
    return True


async def _check_item(run: ServerRun, item: dict[str, Any], exchange: Exchange) -> None:
    problem = _item_problem(item)
    if not run.ledger.expect("I1", not problem, problem, exchange, item):
        return
    if item.get("type") == "archive":
        await _check_archive(run, item, None)
    elif item.get("type") != "mcp-resource-template":
        await _read_indexed(run, "I1", item)
    for archive in map(as_object, as_list(item.get("archives"))):
        await _check_archive(run, archive, archive.get("mimeType"))


def _item_problem(item: dict[str, Any]) -> str:
    """The problem with an entry of either generation, or an empty string."""
    url = item.get("url")
    if not isinstance(url, str) or "://" not in url:
        return "an entry has no absolute 'url'"
    if "frontmatter" in item:
        fields = as_object(item["frontmatter"])
        if not as_text(fields.get("name")) or not as_text(fields.get("description")):
            return f"the entry of {url!r:.200} has no name and description in its frontmatter"
        return "" if is_digest(item.get("digest")) else f"the entry of {url!r:.200} has no digest"
    if item.get("type") not in _TYPES:
        return f"the entry of {url!r:.200} has the type {item.get('type')!r:.40}"
    if not isinstance(item.get("description"), str):
        return f"the entry of {url!r:.200} has no description"
    if not as_text(item.get("name")) and item["type"] != "mcp-resource-template":
        return f"the entry of {url!r:.200} has no name"
    return "" if item.get("digest") is None or is_digest(item["digest"]) else f"{url!r:.200} has a bad digest"


async def _read_indexed(run: ServerRun, rule: str, item: dict[str, Any]) -> tuple[bytes, Exchange] | None:
    """Read the URL of ``item`` and compare its digest; ``None`` if it fails."""
    uri, digest = as_text(item.get("url")), item.get("digest")
    exchange = await run.ask("resources/read", uri=uri)
    data = decode_content(exchange, uri).data
    if data is None:
        run.ledger.failed(rule, f"{uri!r:.300} is in the index but cannot be read", exchange)
        return None
    matches = digest is None or digest_of(data) == digest
    message = f"{uri!r:.300} does not match its digest in the index"
    return (data, exchange) if run.ledger.expect(rule, matches, message, exchange) else None


async def _check_archive(run: ServerRun, item: dict[str, Any], media_type: object) -> None:
    found = await _read_indexed(run, "I2", item)
    if found is None:
        return
    data, exchange = found
    uri, contents = as_text(item.get("url")), as_list((exchange.result or {}).get("contents"))
    media_type = media_type or as_object(contents[0]).get("mimeType")
    try:
        files = unpack(data, archive_format(uri, media_type if isinstance(media_type, str) else None))
    except SkillwireError as error:
        run.ledger.failed("I2", f"{uri!r:.300}: {error.message}", exchange)
        return
    run.ledger.expect("I2", SKILL_MD in files, f"{uri!r:.300} has no {SKILL_MD} at its root", exchange)


async def check_named(run: ServerRun, skills: list[dict[str, Any]]) -> Literal["sep-2076", "native"] | None:
    """Find out which of the two dialects the first page of ``skills/list`` uses, if any, and check it."""
    names = [as_text(skill.get("name")) for skill in skills if "uri" not in skill]
    if not names or not all(names):
        run.ledger.not_offered((*SEP_2076, *NATIVE), "skills/list uses neither of the dialects that name skills")
        return None
    name = next((skill.get("name") for skill in skills if not _needs_arguments(skill)), names[0])
    if "instructions" in ((await run.ask(SKILLS_GET, name=name)).result or {}):
        run.ledger.not_offered(NATIVE, "skills/list uses sep-2076")
        await _check_sep2076(run)
        return "sep-2076"
    run.ledger.not_offered(SEP_2076, "skills/list uses native")
    await _check_native(run)
    return "native"


def _needs_arguments(skill: dict[str, Any]) -> bool:
    return any(as_object(argument).get("required") for argument in as_list(skill.get("arguments")))


async def _check_sep2076(run: ServerRun) -> None:
    expect = run.ledger.expect
    declared = as_object(run.capabilities.get("experimental")).keys() | run.capabilities.keys()
    expect("P1", "skills" in declared, "the capability 'skills' is not declared")
    paged = await run.walk("P1", SKILLS_LIST, "skills")
    listed = (await run.walk("BASE", "tools/list", "tools")).items if "tools" in run.capabilities else []
    tools = {as_text(as_object(item).get("name")) for item, _ in listed}
    for item, exchange in paged.items[: run.bounds.directories]:
        skill = as_object(item)
        if _check_skill(run, "P1", skill, exchange) and not _needs_arguments(skill):
            await _check_instructions(run, skill["name"])
        needed = [as_text(name) for name in as_list(as_object(skill.get("dependencies")).get("tools"))]
        missing = [name for name in needed if name not in tools]
        if needed:
            expect("P3", not missing, f"{skill.get('name')!r:.100} needs {missing!r:.200}", exchange, skill)
    run.ledger.not_offered(("P3", "P4"), "no skill has dependencies or files")
    await run.expect_refusal("P2", "an unknown name", SKILLS_GET, name=_NO_SUCH_NAME)


def _check_skill(run: ServerRun, rule: str, skill: dict[str, Any], exchange: Exchange) -> bool:
    wrong = [key for key in ("title", "description", "version") if not isinstance(skill.get(key, ""), str)]
    message = f"a skill has no name, or {', '.join(wrong)} is not a string"
    return run.ledger.expect(rule, bool(as_text(skill.get("name"))) and not wrong, message, exchange, skill)


async def _check_instructions(run: ServerRun, name: str) -> None:
    exchange = await run.ask(SKILLS_GET, name=name)
    instructions = (exchange.result or {}).get("instructions")
    is_right = isinstance(instructions, str) and not instructions.startswith("---\n")
    message = f"skills/get of {name!r:.100} returned no instructions, or instructions with frontmatter"
    run.ledger.expect("P2", is_right, message, exchange)
    for item in as_list((exchange.result or {}).get("files"))[:_MAX_FILES]:
        uri = as_text(as_object(item).get("uri"))
        answer = await run.ask("resources/read", uri=uri)
        is_read = decode_content(answer, uri).data is not None
        run.ledger.expect("P4", is_read, f"{uri!r:.300} cannot be read", answer)


async def _check_native(run: ServerRun) -> None:
    paged = await run.walk("M1", SKILLS_LIST, "skills")
    for item, exchange in paged.items:
        _check_skill(run, "M1", as_object(item), exchange)
    name = next((name for item, _ in paged.items if (name := as_text(as_object(item).get("name")))), None)
    if name is None:
        return
    exchange = await run.ask(SKILLS_ACTIVATE, name=name)
    result = exchange.result or {}
    run.ledger.expect(
        "M2", bool(as_list(result.get("instructions"))), f"{name!r:.100} has no instructions", exchange
    )
    for kind in KINDS:
        for item in as_list(result.get(kind)):
            fields = as_object(item)
            is_whole = bool(as_text(fields.get(_KEYS[kind]))) and (kind != "tools" or "inputSchema" in fields)
            run.ledger.expect("M2", is_whole, f"a definition of the {kind} is incomplete", exchange, item)
    await run.expect_refusal("M2", "an unknown name", SKILLS_ACTIVATE, name=_NO_SUCH_NAME)
