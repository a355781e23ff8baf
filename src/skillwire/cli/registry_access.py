"""Verbs of ``skillwire registry`` for access: sign-ins, namespaces, roles, trusted programs, tokens.

All of them use the HTTP API.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from skillwire.cli.command import JSON, Arguments, argument, flag, option, repeated, run_async, verb
from skillwire.cli.printer import Printer, counted, line, listed
from skillwire.cli.registry_session import REGISTRY_OPTIONS, STATE, read_logins, run_with_registry
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from skillwire.registry.client import RegistryClient

_ROLES = ("reader", "publisher", "reviewer", "owner", "none")


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
    repeated(
        "--quota",
        metavar="WHAT=NUMBER",
        help="at most so many skills, versions (of a skill) or bytes (repeatable; for administrators)",
    ),
    *REGISTRY_OPTIONS,
    within=run_with_registry,
    examples="""\
  skillwire registry namespace                        what you may see
  skillwire registry namespace acme --public          create it, or make it public
  skillwire registry namespace payments --review      releases wait for 'skillwire registry reviews'
  skillwire registry namespace payments --quota skills=50 --quota bytes=1000000000
""",
)
async def _namespace(client: RegistryClient, arguments: Arguments, printer: Printer) -> None:
    if arguments.namespace is None:
        found = (await client.call("GET", "namespaces", query={"limit": "1000"}))["namespaces"]
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
    if arguments.quota:
        body["quota"] = dict(map(_quota, arguments.quota))
    where = f"namespaces/{quote(arguments.namespace)}"
    try:
        done, made = "changed", await client.call("PATCH", where, body)
    except NotFoundError:
        done, made = "created", await client.call("PUT", where, body, repeats=False)
    words = f"{done} {line(made['name'])}: {'public' if made['public'] else 'private'}"
    printer.result(made, words + (", reviewed" if made["reviewed"] else ""))


def _quota(text: str) -> tuple[str, int]:
    what, _, number = text.partition("=")
    if what not in ("skills", "versions", "bytes") or not (number.isascii() and number.isdigit()):
        hint = "write --quota skills=50, --quota versions=100 or --quota bytes=1000000000"
        raise FormatError("argument-invalid", f"{text!r:.80} is not a quota", hint)
    return what, int(number)


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


VERBS = {
    "login": _login,
    "namespace": _namespace,
    "owners": _owners,
    "grant": _grant,
    "trust": _trust,
    "token": _token,
}
