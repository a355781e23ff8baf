"""Verbs of ``skillwire registry`` for skills: versions, channels, reviews, and the log of changes.

All of them use the HTTP API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import click

from skillwire.cli.command import Arguments, TextLine, argument, flag, option, verb
from skillwire.cli.printer import Printer, counted, line, listed
from skillwire.cli.registry_session import REGISTRY_OPTIONS, run_with_registry
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.registry.client import RegistryClient
    from skillwire.registry.model import SkillRef

SKILL = argument("skill", "NAMESPACE/NAME", "a skill, such as acme/refunds")
VERSION = argument("version", "SKILL@VERSION", "a version, such as acme/refunds@1.2.0")
UNDO = flag("--undo", help="undo it")
CHANNEL = option("--channel", default="stable", metavar="NAME", help="the channel (default: stable)")


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
    words = [f"{state}: {line(version[state])}" for state in ("deleted", "yanked") if version[state] is not None]
    words = words[:1] or ([] if version["approved"] else ["not approved"])
    if origin := version["source"].get("mirror"):
        words.append(f"from {line(origin)}")
    return "; ".join(words)


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
    "Withdraw a version, with a reason. Installed copies and exact versions still work; nothing new gets it.",
    VERSION,
    option("--reason", type=TextLine(), metavar="TEXT", help="why; users read it"),
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
    option("--reason", type=TextLine(), metavar="TEXT", help="why; users read it"),
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
    "List releases that wait for an approval, or decide about one. Another person than the publisher decides.",
    argument("number", "[NUMBER]", "the review to decide about", required=False, type=int),
    flag("--approve", help="approve it"),
    flag("--decline", help="decline it"),
    option("--note", default="", type=TextLine(may_be_empty=True), metavar="TEXT", help="why, for the log"),
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
    option("--reason", type=TextLine(), metavar="TEXT", help="why; the history shows it"),
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
    for each in found["changes"]:
        where = f"{each['path']}@{each['version']}" if each["version"] else each["path"] or "the registry"
        details = _facts(each["facts"], each["version"])
        words = f"{each['at']} {each['by']} from {each['address']}: {each['what']} {where}"
        printer.data(line(f"{words}: {details}" if details else words))


def _facts(facts: Mapping[str, Any], version: str) -> str:
    """Return the details of a change in one line, first what was before and after it."""
    words, told = list[str](), {"channel", "digest"}
    before = _fact(facts.get("before"))
    if facts.get("channel"):
        words.append(f"{facts['channel']}: {before}" + ("" if facts.get("moved") is False else f" → {version}"))
        told.add("before")
    elif "after" in facts:
        old, new = facts.get("before"), facts["after"]
        if isinstance(old, dict) and isinstance(new, dict):  # settings: only those that changed
            was, now = cast("dict[str, object]", old), cast("dict[str, object]", new)
            words += [f"{key}: {was.get(key)} → {now[key]}" for key in now if was.get(key) != now[key]]
        else:
            words.append(f"{before} → {_fact(new)}")
        told |= {"before", "after"}
    for key, value in facts.items():
        if key not in told and value and not isinstance(value, bool):
            words.append(f"{key}: {_fact(value)}")
    if facts.get("is_admin"):
        words.append("administrator")
    return ", ".join(words)


def _fact(value: object) -> str:
    if isinstance(value, list):
        return "+".join(map(str, cast("list[object]", value)))
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        return " ".join(f"{key}={each}" for key, each in fields.items() if each is not None)
    return "nothing" if value is None else str(value)


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


VERBS = {
    "history": _history,
    "promote": _promote,
    "rollback": _rollback,
    "yank": _yank,
    "deprecate": _deprecate,
    "reviews": _reviews,
    "delete": _delete,
    "audit": _audit,
}
