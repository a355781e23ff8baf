"""``skillwire registry``: serves a registry, and works with one: versions, roles, tokens, reviews.

``skillwire publish`` is in ``publish.py``. The actions for the machine of the database are ``serve``, ``admin``
and ``fsck``; all others use the HTTP API.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from skillwire.cli.command import (
    FILE,
    JSON,
    Arguments,
    DatabasePlace,
    Exit,
    Line,
    Noun,
    argument,
    flag,
    option,
    repeated,
    run_async,
    silence_libraries,
    verb,
)
from skillwire.cli.printer import Printer, counted, line, listed
from skillwire.cli.registry_session import REGISTRY_OPTIONS, STATE, folder_of, read_logins, run_with_registry
from skillwire.cli.server_session import enable_access_log, parse_address
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from skillwire.registry.client import RegistryClient
    from skillwire.registry.contract import RegistryStore
    from skillwire.registry.model import SkillRef

DATABASE = option(
    "--database",
    type=DatabasePlace(),
    metavar="URL",
    help="postgresql://…, for any number of replicas (default: a file in --state)",
)
SKILL = argument("skill", "NAMESPACE/NAME", "a skill, such as acme/refunds")
VERSION = argument("version", "SKILL@VERSION", "a version, such as acme/refunds@1.2.0")
UNDO = flag("--undo", help="undo it")
CHANNEL = option("--channel", default="stable", metavar="NAME", help="the channel (default: stable)")
_ROLES = ("reader", "publisher", "reviewer", "owner", "none")


@verb(
    "Serve a registry over HTTP: MCP at /mcp, and the API at /v1.",
    DATABASE,
    option("--http", default="8000", metavar="[HOST:]PORT", help="where to listen (default: 127.0.0.1:8000)"),
    option("--public-url", metavar="URL", help="the address that clients use, if it differs"),
    option("--settings", type=FILE, metavar="FILE", help="issuers of web tokens, and administrators"),
    option("--name", default="skillwire", help="the name of the server"),
    flag("--access-log", help="print a line of JSON to stderr for each request"),
    STATE,
    flag("--json", help="print the address as a JSON document once the server is ready"),
    examples="""\
  skillwire registry                                     at http://127.0.0.1:8000, in the state folder
  skillwire registry --database postgresql://db/skills --http 0.0.0.0:8000 --public-url https://skills.example.com

The first start prints the token of an administrator, once. The settings are in docs/reference/registry.md.
""",
)
def _serve(arguments: Arguments, printer: Printer) -> int:
    import anyio  # late, like the imports below: invalid options need none of them

    from skillwire.registry.settings import RegistrySettings, read_settings
    from skillwire.server.signals import StopSignals

    address = parse_address(arguments.http)
    settings = RegistrySettings() if arguments.settings is None else read_settings(arguments.settings)
    silence_libraries()
    signals = StopSignals()
    signals.install()
    anyio.run(_serve_http, arguments, printer, address, settings, signals)
    printer.talk("stopped")
    return Exit.OK


async def _serve_http(
    arguments: Arguments, printer: Printer, address: tuple[str, int], settings: Any, signals: Any
) -> None:
    from skillwire.bootstrap import open_registry
    from skillwire.registry.app import RegistryOptions, make_administrator
    from skillwire.server.http import HttpServer, listen

    options = RegistryOptions(settings, arguments.name, public_url=arguments.public_url)
    with listen(*address) as listener:
        async with open_registry(arguments.database, folder_of(arguments), options) as registry:
            token = None if settings.admins else await make_administrator(registry.store, only_first=True)
            server = HttpServer(registry.web_app(), listener)
            enable_access_log(arguments)
            mcp = arguments.public_url or server.url
            url = mcp.removesuffix("/mcp")
            if arguments.json:
                printer.json({"url": url, "mcp": f"{url}/mcp", "token": token})
                sys.stdout.flush()
            elif token is not None:
                printer.talk(f"token of the administrator (shown only once): {token}")
            printer.talk(f"sign in:         skillwire registry login {shlex.quote(url)}")
            printer.talk(f"list the skills: skillwire list {shlex.quote(url)}/mcp")
            printer.talk(f"listening at {url} (Ctrl-C stops)")
            await server.run(signals)


@verb(
    "Make a token of an administrator, on the machine of the database: for the first one, or if all were lost.",
    DATABASE,
    STATE,
    JSON,
    examples="""\
  skillwire registry admin
  skillwire registry admin | skillwire registry login http://127.0.0.1:8000
""",
)
def _admin(arguments: Arguments, printer: Printer) -> None:
    from skillwire.registry.app import make_administrator

    async def work(store: RegistryStore) -> None:
        token = await make_administrator(store, only_first=False)
        if not arguments.json:
            printer.talk("token of an administrator (shown only once):")
        printer.result({"token": token}, str(token))

    _with_store(arguments, work)


@verb(
    "Hash every file again and check every reference, on the machine of the database.",
    DATABASE,
    STATE,
    JSON,
    examples="""\
  skillwire registry fsck

exit codes: 0 nothing found, 1 faults, 2 usage, or no database
""",
)
def _fsck(arguments: Arguments, printer: Printer) -> int:
    faults: list[dict[str, str]] = []

    async def work(store: RegistryStore) -> None:
        async for fault in store.check():
            faults.append({"reference": fault.what, "where": fault.where, "message": fault.message})
            if not arguments.json:
                printer.data(f"{line(fault.where)}: {line(fault.message)} [{fault.what}]")

    _with_store(arguments, work)
    if arguments.json:
        printer.json({"faults": faults})
    printer.talk(counted(len(faults), "fault"))
    return Exit.PROBLEMS if faults else Exit.OK


def _with_store(arguments: Arguments, work: Callable[[RegistryStore], Awaitable[None]]) -> None:
    async def run() -> None:
        from skillwire.bootstrap import open_registry

        async with open_registry(arguments.database, folder_of(arguments)) as registry:
            await work(registry.store)

    run_async(run)


@verb(
    "Sign in to a registry: store a token for it. The token is read from the terminal or from stdin.",
    argument("url", "URL", "the address of the registry"),
    flag("--logout", help="forget the token instead"),
    STATE,
    JSON,
    examples="""\
  skillwire registry login http://127.0.0.1:8000
  echo "$TOKEN" | skillwire registry login https://skills.example.com
  skillwire registry login https://skills.example.com --logout
""",
)
def _login(arguments: Arguments, printer: Printer) -> None:
    import getpass

    from skillwire.registry.client import RegistryClient, registry_url

    url, logins = registry_url(arguments.url), read_logins(arguments)
    if arguments.logout:
        logins.tokens.pop(url, None)
        logins.last = next(iter(logins.tokens), "") if logins.last == url else logins.last
        logins.save()
        printer.result({"registry": url, "name": None}, f"signed out of {url}")
        return
    token = (getpass.getpass("Token: ") if sys.stdin.isatty() else sys.stdin.readline()).strip()
    if not token or not token.isascii() or not token.isprintable():
        raise FormatError("token-missing", "no token was given", "paste the token, or pipe it into the command")

    async def run() -> dict[str, Any]:
        async with RegistryClient.open(url, token) as client:
            return await client.call("GET", "whoami")

    who = run_async(run)
    logins.tokens[url], logins.last = token, url
    logins.save()
    printer.result({"registry": url, **who}, f"signed in to {url} as {line(str(who['name']))}")


@verb(
    "List the namespaces, or create or change one.",
    argument("namespace", "[NAMESPACE]", "the one to create or change", required=False),
    option("--public/--private", "public", default=None, help="visible without a token, or only with a role"),
    option("--review/--no-review", "reviewed", default=None, help="whether another person approves each release"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry namespace                        what you may see
  skillwire registry namespace acme --public          create it, or make it public
  skillwire registry namespace payments --review      releases wait for 'skillwire registry reviews'
""",
)
async def _namespace(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    found = (await client.call("GET", "namespaces", query={"limit": "1000"}))["namespaces"]
    if arguments.namespace is None:
        rows = [
            (line(each["name"]), "public" if each["public"] else "private", listed(each["mayDo"]))
            for each in found
        ]
        if arguments.json:
            printer.json({"namespaces": found})
        else:
            printer.table(("namespace", "visible", "you may"), rows)
            printer.talk(counted(len(rows), "namespace"))
        return
    body = {name: getattr(arguments, name) for name in ("public", "reviewed")}
    is_known = any(each["name"] == arguments.namespace for each in found)
    method = "PATCH" if is_known else "PUT"
    made = await client.call(method, f"namespaces/{quote(arguments.namespace)}", body, repeats=is_known)
    words = (
        f"{'changed' if is_known else 'created'} {line(made['name'])}: {'public' if made['public'] else 'private'}"
    )
    printer.result(made, words + (", reviewed" if made["reviewed"] else ""))


@verb(
    "List who has which role in a namespace.",
    argument("namespace", "NAMESPACE", "the namespace"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry owners acme
""",
)
async def _owners(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    found = await client.call("GET", f"namespaces/{quote(arguments.namespace)}/grants")
    if arguments.json:
        printer.json(found)
        return
    printer.table(
        ("principal", "role"), [(line(each["principal"]), line(each["role"])) for each in found["grants"]]
    )


@verb(
    "Give a person, a group or a program a role in a namespace, or 'none'.",
    argument("namespace", "NAMESPACE", "the namespace"),
    argument("principal", "PRINCIPAL", "user:NAME, jwt:SUBJECT, group:NAME or publisher:NUMBER"),
    argument("role", f"[{'|'.join(_ROLES)}]", "the role", type=click.Choice(_ROLES)),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry grant acme user:ben publisher
  skillwire registry grant acme group:support reader
  skillwire registry grant acme user:ben none
""",
)
async def _grant(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    where = f"namespaces/{quote(arguments.namespace)}/grants/{quote(arguments.principal)}"
    if arguments.role == "none":
        made = await client.call("DELETE", where)
    else:
        made = await client.call("PUT", where, {"role": arguments.role})
    printer.result(made, f"{line(arguments.principal)} in {line(arguments.namespace)}: {arguments.role}")


@verb(
    "Let a program publish with web tokens of its issuer, such as a workflow in CI, without a stored secret.",
    argument("namespace", "NAMESPACE", "the namespace"),
    option("--issuer", metavar="URL", help="the issuer of its tokens"),
    repeated("--claim", metavar="NAME=VALUE", help="what the tokens must have, with an id (repeatable)"),
    option("--remove", type=int, metavar="NUMBER", help="stop trusting this one"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry trust acme --issuer https://token.actions.githubusercontent.com --claim repository_id=123
  skillwire registry trust acme                        list them
  skillwire registry trust acme --remove 7
""",
)
async def _trust(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    where = f"namespaces/{quote(arguments.namespace)}/publishers"
    if arguments.remove is not None:
        made = await client.call("DELETE", f"{where}/{arguments.remove}")
        printer.result(made, f"publisher:{arguments.remove} is not trusted any more")
        return
    if arguments.issuer is None:
        found = await client.call("GET", where)
        lines = (
            f"publisher:{each['number']} {line(each['issuer'])} "
            + listed(f"{name}={value}" for name, value in each["claims"].items())
            for each in found["publishers"]
        )
        printer.result(found, *lines)
        return
    pairs = [claim.partition("=") for claim in arguments.claim]
    if not pairs or not all(name and equals and value for name, equals, value in pairs):
        raise FormatError("argument-invalid", "--claim needs NAME=VALUE", "write --claim repository_id=123")
    claims = {name: value for name, _, value in pairs}
    made = await client.call("POST", where, {"issuer": arguments.issuer, "claims": claims}, repeats=False)
    printer.result(made, f"publisher:{made['number']} may publish in {line(arguments.namespace)}")


@verb(
    "Make a token, shown once; or list or revoke tokens.",
    argument("name", "[NAME]", "what it is for; without it, the tokens are listed", required=False),
    option(
        "--for", "subject", metavar="user:NAME", help="whom it acts for (default: you; others: administrators)"
    ),
    option("--namespace", metavar="NAMESPACE", help="only for this namespace"),
    repeated(
        "--may",
        type=click.Choice(["read", "publish", "review", "manage"]),
        help="only for this (repeatable; default: all that its holder may do)",
    ),
    option(
        "--days", type=click.IntRange(1, 3650), metavar="N", help="how long it is valid (default: until revoked)"
    ),
    flag("--admin", help="a token of an administrator"),
    option("--revoke", metavar="ID", help="revoke this token"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry token laptop --for user:ben
  skillwire registry token deploy --namespace acme --may publish --days 90
  skillwire registry token                            list them
  skillwire registry token --revoke 3f2a…
""",
)
async def _token(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    if arguments.revoke is not None:
        made = await client.call("DELETE", f"tokens/{quote(arguments.revoke)}")
        printer.result(made, f"revoked {line(arguments.revoke)}")
        return
    if arguments.name is None:
        found = await client.call("GET", "tokens")
        if arguments.json:
            printer.json(found)
            return
        rows = [
            (
                each["id"],
                line(each["name"]),
                line(each["subject"]),
                each["expiresAt"] or "",
                each["lastUsed"] or "",
            )
            for each in found["tokens"]
        ]
        printer.table(("id", "name", "for", "expires", "last used"), rows)
        return
    body = {
        "name": arguments.name,
        "subject": arguments.subject,
        "namespace": arguments.namespace,
        "actions": arguments.may or None,
        "days": arguments.days,
        "admin": arguments.admin,
    }
    made = await client.call("POST", "tokens", body, repeats=False)
    if arguments.json:
        printer.json(made)
        return
    printer.talk(f"token for {line(made['subject'])} (shown only once; its id is {made['id']}):")
    printer.data(made["secret"])


@verb(
    "Withdraw a version, with a reason. Installed copies and exact versions still work; nothing new gets it.",
    VERSION,
    option("--reason", type=Line(), metavar="TEXT", help="why; users read it"),
    UNDO,
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry yank acme/refunds@1.2.0 --reason 'refunds twice'
  skillwire registry yank acme/refunds@1.2.0 --undo
""",
)
async def _yank(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    ref = _version_of(arguments.version)
    where = f"{_skill(ref.path)}/-/versions/{ref.version}/yank"
    if arguments.undo:
        made = await client.call("DELETE", where)
    else:
        made = await client.call("POST", where, {"reason": _reason(arguments)})
    printer.result(
        made, f"{ref} is {'no longer yanked' if arguments.undo else 'yanked'}", await _stable(client, ref)
    )


@verb(
    "Mark a skill as deprecated, with a reason, and the skill to use instead.",
    SKILL,
    option("--reason", type=Line(), metavar="TEXT", help="why; users read it"),
    option("--instead", metavar="NAMESPACE/NAME", help="the skill to use instead"),
    UNDO,
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry deprecate acme/refunds --reason 'moved' --instead acme/billing/refunds
  skillwire registry deprecate acme/refunds --undo
""",
)
async def _deprecate(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    where = f"{_skill(arguments.skill)}/-/deprecation"
    if arguments.undo:
        made = await client.call("DELETE", where)
    else:
        made = await client.call("PUT", where, {"message": _reason(arguments), "instead": arguments.instead})
    printer.result(made, f"{line(arguments.skill)} is {'no longer ' if arguments.undo else ''}deprecated")


@verb(
    "Point a channel to a version, or to the version of another channel.",
    argument("version", "SKILL@VERSION", "a version or a channel: acme/refunds@1.2.0 or acme/refunds@beta"),
    CHANNEL,
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry promote acme/refunds@beta           stable gets the version that beta has
  skillwire registry promote acme/refunds@1.2.0 --channel canary
""",
)
async def _promote(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    from skillwire.registry.model import parse_reference

    ref = parse_reference(arguments.version)
    at = ref.version or ref.channel
    if at is None:
        raise FormatError(
            "argument-invalid", "the version is missing", f"write: {ref.path}@1.2.0 or {ref.path}@beta"
        )
    version = (await client.call("GET", f"{_skill(ref.path)}/-/versions/{at}"))["version"]
    await _move(client, ref.path, arguments.channel, version, printer)


@verb(
    "Point a channel to the version before the one that it has, or to a given one.",
    SKILL,
    CHANNEL,
    option("--version", metavar="X.Y.Z", help="go back to this version"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry rollback acme/refunds
  skillwire registry rollback acme/refunds --version 1.0.3
""",
)
async def _rollback(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    from skillwire.registry.model import STABLE, parse_version

    found = await client.call("GET", _skill(arguments.skill))
    version, now = arguments.version, found["channels"].get(arguments.channel)
    if version is None:
        usable = [
            parse_version(each["version"]) for each in found["versions"] if not (each["yanked"] or each["deleted"])
        ]
        before = [
            each
            for each in usable
            if now is not None
            and each < parse_version(now)
            and not (each.is_prerelease and arguments.channel == STABLE)
        ]
        if not before:
            raise NotFoundError(
                "registry-version-unknown",
                f"{arguments.channel!r:.80} of {arguments.skill!r:.200} has no earlier version",
                f"see: skillwire registry history {arguments.skill}",
            )
        version = str(max(before))
    await _move(client, arguments.skill, arguments.channel, version, printer)


async def _move(client: RegistryClient, path: str, channel: str, version: str, printer: Printer) -> None:
    made = await client.call("PUT", f"{_skill(path)}/-/channels/{quote(channel)}", {"version": version})
    if made["waits"] is not None:
        words = f"review {made['waits']} has to be approved first: skillwire registry reviews"
    else:
        words = f"{channel} of {line(path)} is {line(version)} now"
    printer.result(made, words)


@verb(
    "Show the versions and channels of a skill.",
    SKILL,
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry history acme/refunds
""",
)
async def _history(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    found = await client.call("GET", _skill(arguments.skill))
    if arguments.json:
        printer.json(found)
        return
    if found["deprecated"]:
        instead = f"; use {line(found['instead'])}" if found["instead"] else ""
        printer.talk(f"deprecated: {line(found['deprecated'])}{instead}")
    rows = [
        (
            line(each["version"]),
            listed(each["channels"]),
            line(each["publishedAt"]),
            line(each["publishedBy"]),
            _state_of(each),
        )
        for each in found["versions"]
    ]
    printer.table(("version", "channels", "published", "by", "state"), rows)


def _state_of(version: Mapping[str, Any]) -> str:
    for state in ("deleted", "yanked"):
        if version[state] is not None:
            return f"{state}: {line(version[state])}"
    return ""


@verb(
    "List releases that wait for an approval, or decide about one. Another person than the publisher decides.",
    argument("number", "[NUMBER]", "the review to decide about", required=False, type=int),
    flag("--approve", help="approve it"),
    flag("--decline", help="decline it"),
    option("--note", default="", type=Line(may_be_empty=True), metavar="TEXT", help="why, for the log"),
    option("--digest", metavar="DIGEST", help="only if it is about this content"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry reviews
  skillwire registry reviews 7 --approve --note 'read the diff'
""",
)
async def _reviews(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    found = (await client.call("GET", "reviews"))["reviews"]
    if arguments.number is None:
        if arguments.json:
            printer.json({"reviews": found})
            return
        for each in found:
            change = f"{line(each['current'] or 'nothing')} → {line(each['version'])}"
            printer.data(
                f"{each['number']}  {line(each['path'])} {line(each['channel'])}: {change}, by {line(each['by'])}"
            )
        printer.talk(counted(len(found), "review"))
        return
    if arguments.approve == arguments.decline:
        raise FormatError("argument-invalid", "a decision is missing", "add --approve or --decline")
    review = next((each for each in found if each["number"] == arguments.number), None)
    if review is None:
        raise NotFoundError(
            "registry-review-unknown", f"no open review {arguments.number}", "see: skillwire registry reviews"
        )
    verdict = "approved" if arguments.approve else "declined"
    body = {"verdict": verdict, "digest": arguments.digest or review["digest"], "note": arguments.note}
    made = await client.call("POST", f"reviews/{arguments.number}", body, repeats=False)
    printer.result(made, f"{verdict}: {line(review['path'])}@{line(review['version'])}")


@verb(
    "Delete the content of a version, with a reason. Its number is never used again. Only for administrators.",
    VERSION,
    option("--reason", type=Line(), metavar="TEXT", help="why; the history shows it"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry delete acme/refunds@1.2.0 --reason 'has a password in it'
""",
)
async def _delete(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    ref = _version_of(arguments.version)
    made = await client.call(
        "DELETE", f"{_skill(ref.path)}/-/versions/{ref.version}", {"reason": _reason(arguments)}
    )
    printer.result(made, f"deleted {ref}; the number is not used again")


@verb(
    "Show what was changed, by whom and from where, newest first.",
    argument("namespace", "[NAMESPACE]", "only this namespace", required=False),
    option("--limit", type=click.IntRange(1, 1000), default=100, metavar="N", help="at most this many lines"),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry audit acme
""",
)
async def _audit(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    query = {"limit": str(arguments.limit)} | ({"namespace": arguments.namespace} if arguments.namespace else {})
    found = await client.call("GET", "audit", query=query)
    if arguments.json:
        printer.json(found)
        return
    rows = [
        (
            line(each["at"]),
            line(each["by"]),
            line(each["address"]),
            line(each["what"]),
            line(f"{each['path']}@{each['version']}" if each["version"] else each["path"]),
        )
        for each in found["changes"]
    ]
    printer.table(("at", "by", "from", "what", "where"), rows)


def _skill(path: str) -> str:
    from skillwire.registry.model import parse_skill_path

    return f"skills/{parse_skill_path(path)}"


def _version_of(text: str) -> SkillRef:
    from skillwire.registry.model import parse_reference

    ref = parse_reference(text)
    if ref.version is None:
        raise FormatError("argument-invalid", f"{text!r:.200} names no version", f"write: {ref.path}@1.2.0")
    return ref


def _reason(arguments: Arguments) -> str:
    if arguments.reason is None:
        raise FormatError("argument-invalid", "the reason is missing", "add --reason TEXT; users read it")
    return arguments.reason


async def _stable(client: RegistryClient, ref: SkillRef) -> str:
    """Tell which version new users get now."""
    found = await client.call("GET", _skill(ref.path))
    now = found["channels"].get("stable")
    return f"stable is {line(now)} now" if now else "no version is stable"


command = Noun(
    "Serve a registry of skills (the default), or work with one. Publish with 'skillwire publish'.",
    {
        "serve": _serve,
        "login": _login,
        "namespace": _namespace,
        "owners": _owners,
        "grant": _grant,
        "trust": _trust,
        "token": _token,
        "history": _history,
        "promote": _promote,
        "rollback": _rollback,
        "yank": _yank,
        "deprecate": _deprecate,
        "reviews": _reviews,
        "delete": _delete,
        "audit": _audit,
        "admin": _admin,
        "fsck": _fsck,
    },
    default="serve",
)
