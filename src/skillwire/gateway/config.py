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
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, ValidationError

from skillwire.catalog.git_source import is_git_source
from skillwire.client.dialects import DialectName  # noqa: TC001 - pydantic reads it when the program runs
from skillwire.client.servers import parse_server
from skillwire.errors import FormatError, NotFoundError
from skillwire.host.state import git_entry, is_label, label_for, labelled_servers
from skillwire.skill.entry import is_digest
from skillwire.skill.uri import fold
from skillwire.store.place import without_password, without_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pydantic_core import ErrorDetails

_MAX_POLICY_BYTES = 1024 * 1024
_MAX_COUNT = 2**40
_SERVER_KEYS = ("materialize", "dialect", "max-bytes", "max-skills", "max-file-bytes", "timeout")
_NUMBER = "it is not a number, or too small or too large", "write a number without quotes"
_LIST = "it is not a list", "write it in square brackets"
_MISTAKES = {  # by the type of an error of pydantic: the problem and the hint
    "missing": ("it is missing", "add it"),
    "bool_type": ("it is neither true nor false", "write true or false, without quotes"),
    "int_type": _NUMBER,
    "float_type": _NUMBER,
    "greater_than": _NUMBER,
    "greater_than_equal": _NUMBER,
    "less_than_equal": _NUMBER,
    "tuple_type": _LIST,
    "frozen_set_type": _LIST,
}


def _must(is_valid: Callable[[str], bool]) -> AfterValidator:
    def check(text: str) -> str:
        if not is_valid(text):
            raise ValueError
        return text

    return AfterValidator(check)


# Without ``Strict`` pydantic would take texts and truth values for numbers.
_Line: TypeAlias = Annotated[str, _must(lambda text: bool(text.strip()) and text.isprintable())]
_Lines: TypeAlias = tuple[_Line, ...]
_Count: TypeAlias = Annotated[int, Strict(), Field(ge=1, le=_MAX_COUNT)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))


class UpstreamPolicy(_Part):
    """The settings of one upstream. ``None`` means the default limit."""

    skills: _Lines = ("*",)
    deny: _Lines = ()
    materialize: _Lines = ()
    folder: _Line | None = None
    git: _Line | None = None
    enabled: Annotated[bool, Strict()] = True
    dialect: DialectName | None = None
    max_bytes: _Count | None = None
    max_skills: _Count | None = None
    max_file_bytes: _Count | None = None
    timeout: Annotated[float, Strict(), Field(gt=0, le=3600)] | None = None

    def check_folder(self, label: str) -> None:
        """``FormatError`` if a key has no effect on a folder: an operator could rely on such a limit."""
        for key in _SERVER_KEYS:
            if getattr(self, key.replace("-", "_")):
                raise _invalid(
                    f"'upstream.{label}.{key}' is for servers, and {label!r} is a folder",
                    "remove it; the keys of a folder are: deny, enabled, folder, skills",
                )


DEFAULT_UPSTREAM = UpstreamPolicy()


class ApprovedContent(_Part):
    """An approval in the policy: one content of one skill of one upstream."""

    upstream: _Line
    path: _Line
    fingerprint: Annotated[str, _must(is_digest)]


class DeniedSkills(_Part):
    """Skills that are never served: globs over labels and paths."""

    path: _Line
    upstream: _Line = "*"


class GatewayPolicy(_Part):
    """The whole file. With the defaults every skill is served and logged."""

    mode: Literal["observe", "admit"] = "observe"
    servers: _Line | None = None
    read_only: Annotated[bool, Strict()] = False
    approvers: frozenset[_Line] = frozenset()
    upstreams: dict[str, UpstreamPolicy] = Field(default_factory=dict, alias="upstream")
    approved: tuple[ApprovedContent, ...] = ()
    denied: tuple[DeniedSkills, ...] = Field(default=(), alias="deny")

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
        return any(
            (each.upstream, each.path, each.fingerprint) == (label, path, fingerprint) for each in self.approved
        )


_TABLES: dict[str | int, type[_Part]] = {
    "upstream": UpstreamPolicy,
    "approved": ApprovedContent,
    "deny": DeniedSkills,
}


def _matches(globs: Iterable[str], path: str) -> bool:
    return any(fnmatchcase(path, glob) for glob in globs)


def parse_policy(text: str) -> GatewayPolicy:
    """The policy in the text of a ``gateway.toml``."""
    try:
        policy = GatewayPolicy.model_validate(tomllib.loads(text))
    except ValidationError as error:
        raise _mistake(error.errors(include_url=False)[0]) from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(
            f"the file is not TOML: {error!s:.200}", "see docs/how-to/gateway.md for an example"
        ) from error
    for label, each in policy.upstreams.items():
        where = f"upstream.{label:.80}"
        if not is_label(label):
            raise _invalid(f"[{where}]: {label!r:.80} cannot be a label", "use 1 to 64 letters, digits, - _ .")
        if each.git is not None and (each.folder is not None or each.dialect is not None or each.materialize):
            raise _invalid(
                f"'{where}' has 'git', so 'folder', 'dialect' and 'materialize' have no effect", "remove them"
            )
    return policy


def _mistake(error: ErrorDetails) -> FormatError:
    """The error of pydantic in our words, with the name of the key as in the file."""
    kind, [first, *rest] = error["type"], error["loc"]
    if kind == "model_type" and rest and isinstance(rest[-1], int):
        rest.pop()  # one mistake in all items: they are not tables
    key = str(first) + "".join(f"[{part + 1}]" if isinstance(part, int) else f".{part:.80}" for part in rest)
    problem, hint = _MISTAKES.get(kind, ("it is not a line of text", f'write {key.rpartition(".")[2]} = "…"'))
    if kind == "literal_error":
        problem = f"it is {error['input']!r:.80}"
        hint = "allowed: " + str(error.get("ctx", {})["expected"]).replace(" or ", ", ").replace("'", "")
    elif kind == "extra_forbidden":
        table = _TABLES[first] if rest else GatewayPolicy
        known = (each.alias or "" for each in table.model_fields.values())
        problem, hint = "this key is unknown", f"known keys: {', '.join(sorted(known))}"
    elif key in ("approved", "deny"):
        problem, hint = "it is not a list of tables", f"write [[{key}]] above each"
    elif kind in ("model_type", "dict_type"):
        problem, hint = "it is not a table", f"write [{key}]"
    elif key.endswith(".fingerprint") and kind == "value_error":
        problem, hint = (
            "it is not a fingerprint",
            "write sha256: and 64 hex digits, from 'skillwire approvals show'",
        )
    return _invalid(f"'{key}': {problem}", hint)


def _invalid(message: str, hint: str) -> FormatError:
    return FormatError("policy-invalid", message, hint)


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
