"""The ``index`` dialect, where a server has it: ``skill://index.json`` and packed skills (I1, I2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.conform.checks.reading import content_of
from skillwire.conform.checks.rules import INDEX
from skillwire.conform.outcome import Ledger
from skillwire.errors import SkillwireError
from skillwire.skill.archive import archive_format, unpack
from skillwire.skill.digest import digest_of, is_digest
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Run
    from skillwire.conform.evidence import Exchange

INDEX_URI = "skill://index.json"
_TYPES = ("skill-md", "archive", "mcp-resource-template")
_NOBODY = Ledger(())  # R1 is about the extension's files


async def check_index(run: Run) -> bool:
    """Whether there is an index; if so, everything that it names is looked at."""
    exchange = await run.ask("resources/read", uri=INDEX_URI)
    data = content_of(_NOBODY, exchange, INDEX_URI)
    if data is None:
        run.ledger.absent(INDEX, "there is no skill://index.json")
        return False
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):
        run.ledger.absent(INDEX, "what is at skill://index.json is not JSON")  # prose, as to every unknown URI
        return False
    skills: object = as_object(document).get("skills")
    if run.ledger.expect("I1", isinstance(skills, list), "the index has no list called 'skills'", exchange):
        for item in as_list(skills)[: run.bounds.directories]:
            await _check_item(run, as_object(item), exchange)
        run.ledger.absent(("I2",), "the index names no archive")
    return True


async def _check_item(run: Run, item: dict[str, Any], exchange: Exchange) -> None:
    problem = _shape_problem(item)
    if not run.ledger.expect("I1", not problem, problem, exchange, item):
        return
    if item.get("type") == "mcp-resource-template":
        return
    if item.get("type") == "archive":
        await _check_archive(run, {**item, "mimeType": None})
    else:
        await _check_url(run, item)
    for archive in as_list(item.get("archives")):
        await _check_archive(run, as_object(archive))


def _shape_problem(item: dict[str, Any]) -> str:
    """What is wrong with an entry, of whichever generation it is."""
    url = item.get("url")
    if not isinstance(url, str) or "://" not in url:
        return "an entry has no absolute 'url'"
    if "frontmatter" in item:
        fields = as_object(item["frontmatter"])
        if not as_text(fields.get("name")) or not as_text(fields.get("description")):
            return f"the entry of {url!r:.200} has no name and description in its frontmatter"
        return "" if is_digest(item.get("digest")) else f"the entry of {url!r:.200} has no digest"
    if item.get("type") not in _TYPES:
        return f"the entry of {url!r:.200} is of the type {item.get('type')!r:.40}"
    if not isinstance(item.get("description"), str):
        return f"the entry of {url!r:.200} has no description"
    if not as_text(item.get("name")) and item["type"] != "mcp-resource-template":
        return f"the entry of {url!r:.200} has no name"
    return "" if item.get("digest") is None or is_digest(item["digest"]) else f"{url!r:.200} has a bad digest"


async def _check_url(run: Run, item: dict[str, Any]) -> None:
    uri, digest = as_text(item["url"]), item.get("digest")
    exchange = await run.ask("resources/read", uri=uri)
    data = content_of(_NOBODY, exchange, uri)
    if run.ledger.expect("I1", data is not None, f"{uri!r:.300} is in the index and cannot be read", exchange):
        run.ledger.expect(
            "I1",
            digest is None or digest_of(data or b"") == digest,
            f"{uri!r:.300} is not what its digest in the index says",
            exchange,
        )


async def _check_archive(run: Run, item: dict[str, Any]) -> None:
    uri, digest = as_text(item.get("url")), item.get("digest")
    exchange = await run.ask("resources/read", uri=uri)
    data = content_of(_NOBODY, exchange, uri)
    if not run.ledger.expect("I2", data is not None, f"the archive {uri!r:.300} cannot be read", exchange):
        return
    if not run.ledger.expect(
        "I2",
        digest is None or digest_of(data or b"") == digest,
        f"{uri!r:.300} is not what its digest says",
        exchange,
    ):
        return
    contents = as_list((exchange.result or {}).get("contents"))
    media_type = item.get("mimeType") or as_object(contents[0]).get("mimeType")
    try:
        files = unpack(data or b"", archive_format(uri, media_type if isinstance(media_type, str) else None))
    except SkillwireError as error:
        run.ledger.broken("I2", f"{uri!r:.300}: {error.message}", exchange)
        return
    run.ledger.expect("I2", SKILL_MD in files, f"{uri!r:.300} has no {SKILL_MD} at its root", exchange)
