"""The configuration of a gateway: ``gateway.toml``, an ``mcpServers`` file, and folders.

    mode = "admit"                     # only approved skills; "observe" serves every allowed skill and logs it
    servers = "servers.json"           # an mcpServers file, relative to this one
    approvers = ["ada"]                # over HTTP: whose approvals count for all clients (default: none)
    read-only = false                  # true: nothing can be approved through this gateway

    [upstream.acme]                    # a server of that file, by its label
    skills = ["billing/*"]             # skills that are served; * matches any text (default: all)
    deny = ["billing/drafts/*"]        # exceptions from these
    materialize = ["generated/*"]      # skills without digests that are served as snapshots
    max-bytes = 104857600              # bytes that it may send over one connection (B2)
    max-skills = 1000                  # skills that it may list (B3)
    timeout = 10                       # seconds for one request (B4)

    [upstream.mine]
    folder = "./skills"                # a folder instead of a server

    [upstream.team]
    git = "acme/skills@v1#folder"      # a Git repository; a local one begins with ./ or ../

    [[approved]]                       # approves one content: the fingerprint from `skillwire approvals show`
    upstream = "acme"
    path = "billing/refunds"
    fingerprint = "sha256:…"

    [[deny]]                           # overrides every approval
    upstream = "*"
    path = "*/internal"

``parse_policy`` reads the text of the file. ``plan_gateway`` reads all files and checks that they fit together
before anything is started. Every mistake is a ``FormatError`` that names the key and the allowed values. Unknown
keys are mistakes too. Labels are the same that ``skillwire approve`` uses with the same file (O1).
"""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from skillwire.catalog.git_source import is_git_source
from skillwire.client.dialects import DIALECT_NAMES
from skillwire.client.servers import parse_server
from skillwire.errors import FormatError, NotFoundError
from skillwire.host.state import git_entry, is_label, label_for, labelled_servers
from skillwire.skill.entry import is_digest
from skillwire.skill.uri import fold
from skillwire.store.place import without_password, without_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

_MAX_POLICY_BYTES = 1024 * 1024
Mode: TypeAlias = Literal["observe", "admit"]
_MAX_COUNT = 2**40
_SERVER_KEYS = ("materialize", "dialect", "max-bytes", "max-skills", "max-file-bytes", "timeout")


@dataclass(frozen=True, slots=True)
class UpstreamPolicy:
    """The settings of one upstream. ``None`` means the default limit."""

    skills: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()
    materialize: tuple[str, ...] = ()
    folder: str | None = None
    git: str | None = None
    enabled: bool = True
    dialect: str | None = None
    max_bytes: int | None = None
    max_skills: int | None = None
    max_file_bytes: int | None = None
    timeout: float | None = None

    def check_folder(self, label: str) -> None:
        """``FormatError`` if a key has no effect on a folder: an operator could rely on such a limit."""
        for key in _SERVER_KEYS:
            if getattr(self, key.replace("-", "_")):
                raise _invalid(
                    f"'upstream.{label}.{key}' is for servers, and {label!r} is a folder",
                    "remove it; the keys of a folder are: deny, enabled, folder, skills",
                )


DEFAULT_UPSTREAM = UpstreamPolicy()


@dataclass(frozen=True, slots=True)
class ApprovedContent:
    """An approval in the policy: one content of one skill of one upstream."""

    upstream: str
    path: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class DeniedSkills:
    """Skills that are never served: globs over labels and paths."""

    upstream: str
    path: str


@dataclass(frozen=True, slots=True)
class GatewayPolicy:
    """The whole file. With the defaults every skill is served and logged."""

    mode: Mode = "observe"
    servers: str | None = None
    read_only: bool = False
    approvers: frozenset[str] = frozenset()
    upstreams: Mapping[str, UpstreamPolicy] = field(default_factory=dict[str, UpstreamPolicy])
    approved: frozenset[ApprovedContent] = frozenset()
    denied: tuple[DeniedSkills, ...] = ()

    def upstream(self, label: str) -> UpstreamPolicy:
        """The settings of one upstream; the defaults if the file does not name it."""
        return self.upstreams.get(label, DEFAULT_UPSTREAM)

    def allows(self, label: str, path: str) -> bool:
        """Whether the skill at ``path`` of ``label`` may be served, apart from approvals."""
        upstream = self.upstream(label)
        is_denied = _matches(upstream.deny, path) or any(
            fnmatchcase(label, denied.upstream) and fnmatchcase(path, denied.path) for denied in self.denied
        )
        return _matches(upstream.skills, path) and not is_denied

    def materializes(self, label: str, path: str) -> bool:
        """Whether a skill without digests is served as a snapshot."""
        return _matches(self.upstream(label).materialize, path)

    def is_approved(self, label: str, path: str, fingerprint: str) -> bool:
        """Whether the policy approves that content."""
        return ApprovedContent(label, path, fingerprint) in self.approved


def _matches(globs: Iterable[str], path: str) -> bool:
    return any(fnmatchcase(path, glob) for glob in globs)


def parse_policy(text: str) -> GatewayPolicy:
    """The policy in the text of a ``gateway.toml``."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _invalid(
            f"the file is not TOML: {error!s:.200}", "see docs/how-to/gateway.md for an example"
        ) from error
    table = _Table(document, "")
    mode = table.take("mode", _one_of("observe", "admit"), "observe")
    servers = table.take("servers", _text, None)
    read_only = table.take("read-only", _boolean, False)
    approvers = frozenset(table.take("approvers", _texts, ()))
    upstreams = {label: _upstream(label, value) for label, value in table.take("upstream", _mapping, {}).items()}
    approved = frozenset(_approved(item) for item in table.tables("approved"))
    denied = tuple(_denied(item) for item in table.tables("deny"))
    table.end()
    return GatewayPolicy(cast("Mode", mode), servers, read_only, approvers, upstreams, approved, denied)


def _upstream(label: str, value: object) -> UpstreamPolicy:
    where = f"upstream.{label:.80}"
    if not is_label(label):
        raise _invalid(f"[{where}]: {label!r:.80} cannot be a label", "use 1 to 64 letters, digits, - _ .")
    table = _Table(_mapping(value, where), f"{where}.")
    policy = UpstreamPolicy(
        skills=table.take("skills", _texts, ("*",)),
        deny=table.take("deny", _texts, ()),
        materialize=table.take("materialize", _texts, ()),
        folder=table.take("folder", _text, None),
        git=table.take("git", _text, None),
        enabled=table.take("enabled", _boolean, True),
        dialect=table.take("dialect", _one_of(*DIALECT_NAMES), None),
        max_bytes=table.take("max-bytes", _count, None),
        max_skills=table.take("max-skills", _count, None),
        max_file_bytes=table.take("max-file-bytes", _count, None),
        timeout=table.take("timeout", _seconds, None),
    )
    table.end()
    if policy.git is not None and (policy.folder is not None or policy.dialect is not None or policy.materialize):
        raise _invalid(
            f"'{where}' has 'git', so 'folder', 'dialect' and 'materialize' have no effect", "remove them"
        )
    return policy


def _approved(table: _Table) -> ApprovedContent:
    approved = ApprovedContent(
        table.need("upstream", _text), table.need("path", _text), table.need("fingerprint", _fingerprint)
    )
    table.end()
    return approved


def _denied(table: _Table) -> DeniedSkills:
    denied = DeniedSkills(table.take("upstream", _text, "*"), table.need("path", _text))
    table.end()
    return denied


@dataclass(frozen=True, slots=True)
class Plan:
    """The servers and folders of a gateway by label, and its policy."""

    policy: GatewayPolicy = field(default_factory=GatewayPolicy)
    servers: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    renews_snapshots: bool = False
    config: Path | None = None
    state: str | Path | None = None
    is_public: bool = False
    """Whether it is served over HTTP, where every holder of a token may be a client."""
    has_own_state: bool = False
    """Whether its state is temporary, so that no other program can approve a skill for it."""

    @property
    def approve_options(self) -> str:
        """The options with which 'skillwire approve' uses the same servers and the same store."""
        return self._options(str)

    @property
    def public_options(self) -> str:
        """The same for clients: with the names of files and databases, without their places."""
        return self._options(lambda place: place.name if isinstance(place, Path) else without_place(place))

    def _options(self, shown: Callable[[str | Path], str]) -> str:
        state = without_password(self.state) if isinstance(self.state, str) else self.state
        places = {"--config": self.config, "--state": state}
        return "".join(
            f" {name} {shlex.quote(shown(place))}" for name, place in places.items() if place is not None
        )


def plan_gateway(
    *,
    policy: Path | None = None,
    config: Path | None = None,
    servers: Mapping[str, Mapping[str, Any]] | None = None,
    folders: Sequence[Path] = (),
) -> Plan:
    """Read and check the files that the operator named; ``FormatError`` if they do not fit together.

    ``servers`` are entries of servers beside those of the file.
    """
    decided = GatewayPolicy() if policy is None else _read_policy(policy)
    if config is not None and decided.servers is not None:
        raise FormatError(
            "servers-twice", "--config and the policy's 'servers' both name a file", "remove one of them"
        )
    if policy is not None and decided.servers is not None:
        config = policy.parent / decided.servers
    known = {} if config is None else _servers(config, of_policy=decided.servers is not None)
    for label in servers or {}:
        if not is_label(label) or label in known:
            raise _duplicate(label, "the label of a server is invalid, or a server of the file has it")
    servers = {**known, **(servers or {})}
    for label, each in decided.upstreams.items():
        if each.git is not None and policy is not None:
            if label in servers:
                raise _duplicate(label, "a server and a repository of the policy have the same label")
            servers[label] = git_entry(each.git, policy.parent)
            config = policy  # 'skillwire approve' finds the repositories there
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
            "nothing-to-serve",
            "no upstream is configured",
            "write: skillwire gateway --policy gateway.toml, or: skillwire gateway ./skills",
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
        if is_git_source(str(path)):
            raise FormatError(
                "target-unknown",
                f"{str(path)!r:.200} is a Git repository, and a gateway needs a label for it",
                f'write it into the policy: [upstream.LABEL] git = "{path}"',
            )
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


# Values of the policy


class _Table:
    """A table whose keys are taken one by one; ``end`` refuses the remaining ones."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self._values = dict(values)
        self._where = where
        self._known: list[str] = []

    def take(self, key: str, check: Callable[[object, str], Any], default: Any) -> Any:
        self._known.append(key)
        return check(self._values.pop(key), self._where + key) if key in self._values else default

    def need(self, key: str, check: Callable[[object, str], Any]) -> Any:
        if key not in self._values:
            raise _invalid(f"'{self._where}{key}' is missing", "add it")
        return self.take(key, check, None)

    def tables(self, key: str) -> list[_Table]:
        items = self.take(key, _tables, [])
        return [_Table(item, f"{key}[{number}].") for number, item in enumerate(items, 1)]

    def end(self) -> None:
        if self._values:
            unknown = ", ".join(f"'{self._where}{key:.80}'" for key in sorted(self._values)[:5])
            raise _invalid(f"unknown key {unknown}", f"known keys: {', '.join(sorted(self._known))}")


def _text(value: object, key: str) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise _invalid(f"'{key}' is not a line of text", f'write {key.rpartition(".")[2]} = "…"')
    return value


def _boolean(value: object, key: str) -> bool:
    if not isinstance(value, bool):
        raise _invalid(f"'{key}' is neither true nor false", "write true or false, without quotes")
    return value


def _count(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MAX_COUNT:
        raise _invalid(f"'{key}' is not a whole number from 1 to {_MAX_COUNT}", "write a number without quotes")
    return value


def _seconds(value: object, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 3600:
        raise _invalid(f"'{key}' is not a number of seconds up to 3600", "write a number without quotes")
    return float(value)


def _texts(value: object, key: str) -> tuple[str, ...]:
    items = _list(value, key)
    return tuple(_text(item, f"{key}[{number}]") for number, item in enumerate(items, 1))


def _fingerprint(value: object, key: str) -> str:
    if not isinstance(value, str) or not is_digest(value):
        raise _invalid(
            f"'{key}' is not a fingerprint",
            "write sha256: and 64 hex digits, from 'skillwire approvals show'",
        )
    return value


def _one_of(*words: str) -> Callable[[object, str], str]:
    def check(value: object, key: str) -> str:
        if value not in words:
            raise _invalid(f"'{key}' is {value!r:.80}", f"allowed: {', '.join(words)}")
        return cast("str", value)

    return check


def _list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise _invalid(f"'{key}' is not a list", "write it in square brackets")
    return cast("list[Any]", value)


def _tables(value: object, key: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[object]", value)):
        raise _invalid(f"'{key}' is not a list of tables", f"write [[{key}]] above each")
    return cast("list[dict[str, Any]]", value)


def _mapping(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"'{key}' is not a table", f"write [{key}]")
    return cast("dict[str, Any]", value)


def _invalid(message: str, hint: str) -> FormatError:
    return FormatError("policy-invalid", message, hint)
