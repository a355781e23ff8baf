"""A wrapper passes every member on, and a gate opens every member itself: a new one cannot be forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from skillwire.catalog.contract import Catalog, WrapperCatalog
from skillwire.catalog.visibility import VisibleCatalog
from skillwire.errors import NotFoundError
from skillwire.gateway.approval_gate import ApprovalGate

HELPERS = {"entries", "incoming", "skill_around", "children", "walk"}  # made from the other members
OPENED = {*Catalog.__abstractmethods__, "suggest", "peek_skill", "unchanged", "problems", "follow"}


def members(kind: type[Catalog]) -> set[str]:
    return {name for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}


def test_a_wrapper_states_every_member() -> None:
    assert members(WrapperCatalog) == members(Catalog) - HELPERS


def test_a_gate_opens_known_members_only() -> None:
    """Whether a new member of the contract may reveal something is decided here, for each gate."""
    assert members(VisibleCatalog) & members(Catalog) == OPENED | {"ready_archive", "templates"}
    assert members(ApprovalGate) & members(Catalog) == OPENED | {"ignored"}


class Closed(Catalog):
    """A gate that opens nothing."""

    async def list_skills(self, *_: object) -> Any:
        raise NotFoundError("closed", "closed")

    get_skill = read_file = read_directory = list_skills

    def changes(self) -> Any:
        raise NotFoundError("closed", "closed")


@pytest.mark.anyio
async def test_a_member_that_a_gate_does_not_state_reveals_nothing() -> None:
    for name in sorted(members(Catalog) - HELPERS - Catalog.__abstractmethods__):
        try:
            answer = getattr(Closed(), name)(*ARGUMENTS.get(name, ()))
            answer = answer if isinstance(answer, tuple) else await answer
        except NotFoundError:
            continue
        assert answer in (None, ()), name


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
    **dict.fromkeys(["get_skill", "read_file", "peek_skill", "ready_archive", "unchanged"], ("skill://a",)),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", sorted(members(Catalog) - HELPERS))
async def test_a_wrapper_passes_arguments_and_answers_on(name: str) -> None:
    wrapper, arguments = WrapperCatalog(Recording()), ARGUMENTS.get(name, ())  # type: ignore[arg-type]
    answer = getattr(wrapper, name)(*arguments)
    if name not in {"changes", "templates"}:
        answer = await answer
    assert answer == (None if name == "follow" else (name, *arguments))
