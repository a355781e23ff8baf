"""The matrix's axes: who meets whom, over what, in which era, and which features are looked at.

A test says with the ``cell`` fixture which cells it stands for. A cell that holds only with a remark, and one that
nobody could run because the peer has nothing there, name an explanation (``explained.py``), so none is ever blank.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from interop.running import Era, Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Record = Callable[..., None]

Role = Literal["server", "client", "host"]
Needs = Literal["Node", "Python 3.12", ""]
PROPERTY = "interop cell"

SETTINGS: list[tuple[Transport, Era]] = [
    (transport, era) for transport in get_args(Transport) for era in get_args(Era)
]
# Both transports and both eras at half the price, where bytes are many and the wire is the same.
DIAGONAL: list[tuple[Transport, Era]] = [("stdio", "legacy"), ("http", "modern")]
# The whole round in every setting; what honest authors write (``nasty_tree``) in those.
TREES: list[tuple[Transport, Era, str]] = [
    (*setting, "nasty" if setting in DIAGONAL else "examples") for setting in SETTINGS
]

FEATURES = {
    "skills": "skills: listed, got, every file read and compared",
    "directories": "directories",
    "pages": "230 skills",
    "crlf": "CRLF",
    "bom": "byte order mark",
    "names": "names beyond ASCII, with spaces and signs, without a suffix",
    "yaml": "YAML 1.2 traps (F4)",
    "block": "a block ends the frontmatter (F5)",
    "kept": "… that keeps its line breaks (`|+`)",
    "bytes": "empty, binary, invalid UTF-8",
    "nested": "nested skills, prefixes",
    "shared": "one name at two paths",
    "limits": "500 files; 15 MiB",
    "generated": "generated skills (`dynamic`)",
    "no-prefetch": "`sep-2640-client-no-prefetch`",
    "verify-digest": "`sep-2640-client-verify-digest`",
    "verify-size": "`sep-2640-client-verify-size`",
    "verify-frontmatter": "`sep-2640-client-verify-frontmatter`",
}
NASTY = ("crlf", "names", "yaml", "block", "bytes", "nested", "shared")  # what ``nasty_tree`` has of them
ONE_TRAIT = {
    "wide": ("pages",),
    "marked-and-kept": ("bom", "kept"),
    "limits": ("limits",),
}
SCENARIOS = ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")
ROUND = ("skills", *SCENARIOS)  # what is tried in every setting; the rest does not depend on it
_TREES = ("skills", "directories", "pages", "crlf", "bom", *NASTY[1:4], "kept", *NASTY[4:], "limits")
_SERVED = (*_TREES, "generated")
_HOSTED = tuple(feature for feature in _SERVED if feature not in ("directories", "pages"))


@dataclass(frozen=True)
class Peer:
    """A program that we did not write. ``absent``: for a setting or a feature, why there is nothing to run."""

    title: str
    features: tuple[str, ...]
    needs: Needs = ""
    absent: Mapping[str, str] = field(default_factory=dict[str, str])


_URL_ONLY = {"stdio modern": "conformance-http-only", "stdio legacy": "conformance-http-only"}
_CLIENTS = {
    "inspector": Peer("MCP Inspector", _TREES, "Node"),
    "conformance": Peer("official conformance", _TREES, "Node", _URL_ONLY),
    "typescript": Peer("TypeScript SDK", _TREES, "Node"),
    "ext-skills": Peer("ext-skills", _TREES, "Node"),
    "fastmcp": Peer("FastMCP", _TREES, "", {"directories": "no-directories"}),
    "fast-agent": Peer("fast-agent", _TREES, "Python 3.12", {"directories": "no-directories"}),
    "agent-framework": Peer("Agent Framework", _TREES, "", {"directories": "no-directories"}),
    "bare-python": Peer("bare Python SDK", _TREES, "", {"directories": "plain-resources"}),
    "bare-typescript": Peer("bare TypeScript SDK", _TREES, "Node", {"directories": "plain-resources"}),
}


def _servers(features: tuple[str, ...], *unread: str) -> dict[str, Peer]:
    """The servers that our client and our host meet; ``unread`` are features that plain resources do not have."""
    unread_there = dict.fromkeys((*unread, "generated"), "plain-resources")
    fastmcp = {"generated": "nothing-generated", **dict.fromkeys(unread, "no-directories")}
    return {
        "typescript": Peer("TypeScript SDK", features, "Node"),
        "ext-skills": Peer("ext-skills", features, "Node"),
        "ext-skills-0.12": Peer("ext-skills 0.12", features, "Node"),
        "fastmcp": Peer("FastMCP", features, "", fastmcp),
        "fastmcp-old": Peer("FastMCP, older shape", features, "", unread_there),
        "bare-python": Peer("bare Python SDK", features, "", unread_there),
        "bare-typescript": Peer("bare TypeScript SDK", features, "Node", unread_there),
        "index": Peer("`index.json`", features, "", unread_there),
        "conformance": Peer("official conformance", SCENARIOS, "Node", _URL_ONLY),
    }


PEERS: dict[Role, dict[str, Peer]] = {
    "server": _CLIENTS,
    "client": _servers(_SERVED, "directories"),
    "host": _servers(_HOSTED),
}


class Cell(NamedTuple):
    """One meeting of one of our parts with one peer. ``note`` names an explanation, or is empty."""

    role: Role
    peer: str
    transport: Transport
    era: Era
    feature: str
    note: str = ""

    @property
    def setting(self) -> str:
        """The column it stands in."""
        return f"{self.transport} {self.era}"


def check(cell: Cell, explanations: Mapping[str, object]) -> None:
    """A word that is not on an axis would be a cell that nobody sees."""
    peer = PEERS[cell.role][cell.peer]
    assert cell.feature in peer.features, cell
    assert (cell.transport, cell.era) in SETTINGS, cell
    assert not cell.note or cell.note in explanations, cell
    assert cell.setting not in peer.absent, f"said to be absent: {cell}"
    assert cell.feature not in peer.absent, f"said to be absent: {cell}"
