"""What a server says of itself: the capabilities, and whether it means them (K1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.asking import METHOD_NOT_FOUND, NOWHERE
from skillwire.wire.extension import DIRECTORY_READ, EXTENSION_ID, SKILLS_LIST

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Run
    from skillwire.conform.evidence import Exchange


def declares_extension(capabilities: dict[str, object]) -> bool:
    """Whether the extension's id is among the capabilities."""
    return EXTENSION_ID in as_object(capabilities.get("extensions"))


async def check_declared(run: Run, opening: Exchange) -> frozenset[str]:
    """The declaration has its shape; which of the methods that it promises are really there."""
    settings = as_object(run.capabilities.get("extensions"))[EXTENSION_ID]
    expect = run.ledger.expect
    expect("K1", isinstance(settings, dict), "the extension's settings are not an object", opening, settings)
    directories = as_object(settings).get("directoryRead", False)
    expect("K1", isinstance(directories, bool), "'directoryRead' is not true or false", opening, settings)
    unknown = sorted(as_object(settings).keys() - {"directoryRead"})
    named = ", ".join(map(repr, unknown))
    expect("K1", not unknown, f"the extension has no setting {named:.200}", opening, settings)
    expect(
        "K1",
        isinstance(run.capabilities.get("resources"), dict),
        "the extension is declared without 'resources', by which skills are read",
        opening,
    )
    known: set[str] = set()
    for method, params in ((SKILLS_LIST, {}), (DIRECTORY_READ, {"uri": NOWHERE})):
        if method == SKILLS_LIST or directories is True:
            exchange = await run.ask(method, **params)
            is_known = exchange.code != METHOD_NOT_FOUND
            if expect("K1", is_known, f"{method} is declared and not known", exchange):
                known.add(method)
    return frozenset(known)


async def check_undeclared(run: Run) -> None:
    """A server that does not declare the extension does not serve it either."""
    exchange = await run.ask(SKILLS_LIST)
    skills = [as_object(item) for item in as_list((exchange.result or {}).get("skills"))]
    if any("uri" in skill and "frontmatter" in skill for skill in skills):
        run.ledger.broken("K1", "skills/list gives entries of the extension, which is not declared", exchange)
