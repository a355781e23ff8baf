"""The dialects that know skills by name, if ``skills/list`` means one of them: ``sep-2076``, ``native`` (P, M)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.conform.checks.asking import expect_refusal, walk
from skillwire.conform.checks.reading import content_of
from skillwire.conform.checks.rules import NATIVE, SEP_2076
from skillwire.conform.outcome import Ledger
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST
from skillwire.wire.native import KINDS, SKILLS_ACTIVATE

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Run
    from skillwire.conform.evidence import Exchange

_NO_SUCH_NAME = "skillwire-conform-asks-for-nothing"
_KEYS = {"tools": "name", "prompts": "name", "resources": "uri"}
_NOBODY = Ledger(())


async def check_named(run: Run) -> Literal["sep-2076", "native"] | None:
    """Find out which of the two it is, if any, and look at it."""
    first = await run.ask(SKILLS_LIST)
    skills = [as_object(item) for item in as_list((first.result or {}).get("skills"))]
    names = [as_text(skill.get("name")) for skill in skills if "uri" not in skill]
    if not names or not all(names):
        run.ledger.absent(
            (*SEP_2076, *NATIVE), "skills/list means neither of the dialects that know skills by name"
        )
        return None
    if await _gives_instructions(run, skills):
        run.ledger.absent(NATIVE, "skills/list means sep-2076 here")
        await _check_sep2076(run)
        return "sep-2076"
    run.ledger.absent(SEP_2076, "skills/list means native skills here")
    await _check_native(run)
    return "native"


async def _gives_instructions(run: Run, skills: list[dict[str, Any]]) -> bool:
    name = next((skill["name"] for skill in skills if not _wants_arguments(skill)), skills[0]["name"])
    return "instructions" in ((await run.ask(SKILLS_GET, name=name)).result or {})


def _wants_arguments(skill: dict[str, Any]) -> bool:
    return any(as_object(argument).get("required") for argument in as_list(skill.get("arguments")))


async def _check_sep2076(run: Run) -> None:
    declared = as_object(run.capabilities.get("experimental")).keys() | run.capabilities.keys()
    run.ledger.expect("P1", "skills" in declared, "the capability 'skills' is not declared")
    paged = await walk(run, "P1", "P1", SKILLS_LIST, "skills")
    tools = await _tools(run)
    for item, exchange in paged.items[: run.bounds.directories]:
        skill = as_object(item)
        if _check_skill(run, "P1", skill, exchange) and not _wants_arguments(skill):
            await _check_got(run, skill)
        needed = [as_text(name) for name in as_list(as_object(skill.get("dependencies")).get("tools"))]
        missing = [name for name in needed if name not in tools]
        if needed:
            run.ledger.expect(
                "P3", not missing, f"{skill.get('name')!r:.100} needs {missing!r:.200}", exchange, skill
            )
    run.ledger.absent(("P3", "P4"), "no skill has any")
    await expect_refusal(run, "P2", "an unknown name", SKILLS_GET, name=_NO_SUCH_NAME)


def _check_skill(run: Run, rule: str, skill: dict[str, Any], exchange: Exchange) -> bool:
    texts = [key for key in ("title", "description", "version") if not isinstance(skill.get(key, ""), str)]
    return run.ledger.expect(
        rule,
        bool(as_text(skill.get("name"))) and not texts,
        f"a skill has no name, or {', '.join(texts)} is not text",
        exchange,
        skill,
    )


async def _check_got(run: Run, skill: dict[str, Any]) -> None:
    exchange = await run.ask(SKILLS_GET, name=skill["name"])
    instructions = (exchange.result or {}).get("instructions")
    run.ledger.expect(
        "P2",
        isinstance(instructions, str) and not instructions.startswith("---\n"),
        f"getting {skill['name']!r:.100} gave no instructions, or frontmatter among them",
        exchange,
    )
    for item in as_list((exchange.result or {}).get("files"))[:_FILES_EACH]:
        uri = as_text(as_object(item).get("uri"))
        answer = await run.ask("resources/read", uri=uri)
        run.ledger.expect(
            "P4", content_of(_NOBODY, answer, uri) is not None, f"{uri!r:.300} cannot be read", answer
        )


_FILES_EACH = 20


async def _tools(run: Run) -> set[str]:
    if "tools" not in run.capabilities:
        return set()
    paged = await walk(run, "BASE", "BASE", "tools/list", "tools")
    return {as_text(as_object(item).get("name")) for item, _ in paged.items}


async def _check_native(run: Run) -> None:
    paged = await walk(run, "M1", "M1", SKILLS_LIST, "skills")
    for item, exchange in paged.items:
        _check_skill(run, "M1", as_object(item), exchange)
    name = next((name for item, _ in paged.items if (name := as_text(as_object(item).get("name")))), None)
    if name is None:
        return
    exchange = await run.ask(SKILLS_ACTIVATE, name=name)
    result = exchange.result or {}
    run.ledger.expect(
        "M2", bool(as_list(result.get("instructions"))), f"activating {name!r:.100} gave no instructions", exchange
    )
    for kind in KINDS:
        for item in as_list(result.get(kind)):
            fields = as_object(item)
            is_whole = bool(as_text(fields.get(_KEYS[kind]))) and (kind != "tools" or "inputSchema" in fields)
            run.ledger.expect("M2", is_whole, f"a definition among the {kind} is not complete", exchange, item)
    await expect_refusal(run, "M2", "an unknown name", SKILLS_ACTIVATE, name=_NO_SUCH_NAME)
