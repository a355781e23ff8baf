"""A wrapper passes every member on, and a gate states every member: a new one cannot be forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from skillwire.catalog.contract import Catalog
from skillwire.catalog.wrapper import GatedCatalog, WrapperCatalog

HELPERS = {"entries", "children", "walk"}  # made from the other members


def members(kind: type[Catalog]) -> set[str]:
    return {name for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}


def test_a_wrapper_states_every_member() -> None:
    assert members(WrapperCatalog) == members(Catalog) - HELPERS


def test_a_gate_states_every_member_that_is_not_abstract() -> None:
    assert members(GatedCatalog) == members(Catalog) - HELPERS - Catalog.__abstractmethods__


class Recording:
    """Answers every call with its own name."""

    def __getattr__(self, name: str) -> Any:
        if name in {"changes", "templates"}:
            return lambda *arguments: (name, *arguments)

        async def member(*arguments: object) -> object:
            return (name, *arguments)

        return member


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "list_skills": ("cursor", 7),
    "read_directory": ("skill://a", "cursor", 7),
    "suggest": ("a", 7),
    **dict.fromkeys(
        ["get_skill", "read_file", "peek_skill", "is_local", "ready_archive", "unchanged"], ("skill://a",)
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted(members(Catalog) - HELPERS))
async def test_a_wrapper_passes_arguments_and_answers_on(name: str) -> None:
    wrapper, arguments = WrapperCatalog(Recording()), ARGUMENTS.get(name, ())  # type: ignore[arg-type]
    answer = getattr(wrapper, name)(*arguments)
    if name not in {"changes", "templates"}:
        answer = await answer
    assert answer == (None if name == "follow" else (name, *arguments))
