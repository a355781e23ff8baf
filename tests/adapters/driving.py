"""One conversation, many frameworks: what a scripted model calls, and what it was given to see."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

HOST_PAGE = Path(__file__).parents[2] / "docs/how-to/host.md"


def documented(extra: str, **names: Any) -> Any:
    """The agent that the line for this extra in docs/how-to/host.md makes, with ``names`` for its names."""
    [line] = re.findall(rf"^\|[^|]+\| `skillwire\[{extra}\]` \| `(.+)` \|$", HOST_PAGE.read_text(), re.MULTILINE)
    return eval(line, names)


@dataclass(frozen=True)
class Call:
    """A tool call of the model's, in the host's words; a driver translates them if its framework has others."""

    tool: str
    arguments: dict[str, Any]


def load(name: str) -> Call:
    return Call("load_skill", {"name": name})


def read(name: str, path: str) -> Call:
    return Call("read_skill_file", {"name": name, "path": path})


def listing(name: str, path: str) -> Call:
    return Call("list_skill_directory", {"name": name, "path": path})


def shell(command: str) -> Call:
    return Call("shell", {"command": command})


@dataclass
class Seen:
    """What the model was given, request by request."""

    system: list[str] = field(default_factory=list)
    offered: set[str] = field(default_factory=set)
    results: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    answer: str = ""

    @property
    def everything(self) -> str:
        return "\n".join([*self.system, *self.messages])


class Driver(Protocol):
    """An agent of a framework, made before anybody talks to it. It has the skills, and a shell."""

    ran: list[str]

    async def converse(self, calls: Sequence[Call], answer: str) -> Seen:
        """Let the framework's offline model make ``calls``, one a turn, and then answer."""
        ...
