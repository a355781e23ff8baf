"""The plan of a gateway: a policy, an ``mcpServers`` file and folders, read and checked.

Every mistake is found here, before anything is started: two upstreams with one label, an unknown label, an invalid
server. Labels are the same that ``skillwire approve`` uses with the same file (O1).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.client.servers import parse_server
from skillwire.errors import FormatError, NotFoundError
from skillwire.gateway.policy import GatewayPolicy, parse_policy
from skillwire.host.skill_host import label_for, labelled_servers
from skillwire.skill.entry import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MAX_POLICY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """The servers and folders of a gateway by label, and its policy."""

    policy: GatewayPolicy = field(default_factory=GatewayPolicy)
    servers: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    renews_snapshots: bool = False
    config: Path | None = None
    state: Path | None = None
    is_public: bool = False
    """Whether it is served over HTTP, where every holder of a token may be a client."""

    @property
    def approve_options(self) -> str:
        """The options with which 'skillwire approve' uses the same servers and the same store."""
        return self._options(str)

    @property
    def public_options(self) -> str:
        """The same for clients: with the names of files, without their folders."""
        return self._options(lambda path: path.name)

    def _options(self, shown: Callable[[Path], str]) -> str:
        files = {"--config": self.config, "--state": self.state}
        return "".join(f" {name} {shlex.quote(shown(path))}" for name, path in files.items() if path is not None)


def plan_gateway(*, policy: Path | None = None, config: Path | None = None, folders: Sequence[Path] = ()) -> Plan:
    """Read and check the files that the operator named; ``FormatError`` if they do not fit together."""
    decided = GatewayPolicy() if policy is None else _read_policy(policy)
    if config is not None and decided.servers is not None:
        raise FormatError(
            "servers-twice", "--config and the policy's 'servers' both name a file", "remove one of them"
        )
    if policy is not None and decided.servers is not None:
        config = policy.parent / decided.servers
    servers = {} if config is None else _servers(config, of_policy=decided.servers is not None)
    places = _folders(decided, policy.parent if policy else Path(), folders, servers)
    for label in places:
        decided.upstream(label).check_folder(label)
    _check_apart({*servers, *places})
    _check_labels(decided, {*servers, *places})
    enabled = {label: entry for label, entry in servers.items() if decided.upstream(label).enabled}
    for label, entry in enabled.items():
        _check_server(label, entry)
    places = {label: path for label, path in places.items() if decided.upstream(label).enabled}
    if not enabled and not places:
        raise FormatError(
            "nothing-to-serve", "no upstream is configured", "add --config SERVERS.json, --policy, or a folder"
        )
    return Plan(decided, enabled, places, config=config)


def _read_policy(path: Path) -> GatewayPolicy:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_POLICY_BYTES + 1)
        text = data.decode() if len(data) <= _MAX_POLICY_BYTES else ""
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            "policy-unreadable", f"{path.name!r} is not a readable text file", "check --policy"
        ) from error
    if len(data) > _MAX_POLICY_BYTES:
        raise FormatError("policy-invalid", f"{path.name!r} is larger than a policy may be", "check --policy")
    return parse_policy(text)


def _servers(config: Path, *, of_policy: bool) -> dict[str, Mapping[str, Any]]:
    try:
        return labelled_servers(config)
    except NotFoundError as error:
        if of_policy:
            error.hint = "check 'servers' in the policy; it is relative to that file"
        raise


def _folders(
    policy: GatewayPolicy, base: Path, given: Sequence[Path], servers: Mapping[str, Any]
) -> dict[str, Path]:
    places = {label: base / each.folder for label, each in policy.upstreams.items() if each.folder is not None}
    for label in places:
        if label in servers:
            raise _duplicate(label, "a server of the file and a folder of the policy have the same label")
    for path in given:
        label = label_for(path.resolve().name)
        if label in servers or label in places:
            raise _duplicate(label, f"the folder {path.name!r:.80} and another upstream have the same label")
        places[label] = path
    return places


def _check_apart(labels: set[str]) -> None:
    """O3: some clients change the case of a URI's first segment, so labels must differ by more than case."""
    seen: dict[str, str] = {}
    for label in sorted(labels):
        other = seen.setdefault(fold(label), label)
        if other != label:
            raise _duplicate(label, f"{other!r} and {label!r} differ by case only")


def _check_labels(policy: GatewayPolicy, labels: set[str]) -> None:
    known = ", ".join(sorted(labels)) or "none"
    for label in (*policy.upstreams, *(approved.upstream for approved in policy.approved)):
        if label not in labels:
            raise FormatError(
                "upstream-unknown", f"the policy names an unknown upstream {label!r:.80}", f"known: {known:.300}"
            )
    for denied in policy.denied:
        if not any(fnmatchcase(label, denied.upstream) for label in labels):
            raise FormatError(
                "upstream-unknown",
                f"the policy denies skills of an unknown upstream {denied.upstream!r:.80}",
                f"known: {known:.300}",
            )


def _check_server(label: str, entry: Mapping[str, Any]) -> None:
    try:
        parse_server(entry)
    except FormatError as error:
        hint = f"{error.hint}; or disable it: [upstream.{label}] enabled = false"
        raise FormatError(error.reference, f"the server {label!r}: {error.message}", hint) from error


def _duplicate(label: str, message: str) -> FormatError:
    return FormatError("label-duplicate", f"{message}: {label!r}", "rename one of them", rule="O1")
