"""What the forms of a registry's pages change. The store checks every permission in the same transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.errors import FormatError
from skillwire.registry.model import parse_channel, parse_version
from skillwire.web.desk.decisions import findings_unconfirmed

if TYPE_CHECKING:
    from skillwire.registry.contract import RegistryStore, ReviewRequest, ReviewVerdict
    from skillwire.registry.model import Actor
    from skillwire.web.desk.guard import Form


async def change_skill(store: RegistryStore, actor: Actor, path: str, form: Form) -> str:
    """Change a channel, a version, or the whole skill. Returns a word for what was done."""
    match form.get("what"):
        case "move":
            channel, version = parse_channel(form.get("channel").strip()), _version(form)
            published = await store.move_channel(actor, path, channel, version)
            return "waits" if published.waits is not None else "moved" if published.moved else "unchanged"
        case "yank":
            await store.yank(actor, path, _version(form), form.note)
            return "yanked"
        case "unyank":
            await store.yank(actor, path, _version(form), None)
            return "unyanked"
        case "deprecate":
            await store.deprecate(actor, path, form.note, form.get("instead").strip() or None)
            return "deprecated"
        case "undeprecate":
            await store.deprecate(actor, path, None)
            return "undeprecated"
        case _:
            raise FormatError("argument-invalid", "the form has no known action", "reload the page")


async def decide_review(
    store: RegistryStore, actor: Actor, wanted: ReviewRequest, form: Form, *, is_serious: bool
) -> str:
    """Approve or decline a review of exactly the content that was shown. Returns the decision."""
    verdicts: dict[str, ReviewVerdict] = {"approve": "approved", "decline": "declined"}
    verdict = verdicts.get(form.get("verdict"))
    if verdict is None:
        raise FormatError("argument-invalid", "the form has no decision", "reload the page")
    if verdict == "approved" and is_serious and form.get("read") != form.get("digest"):
        raise findings_unconfirmed(f"{wanted.path}@{wanted.version}")
    await store.decide(actor, wanted.number, verdict, digest=form.get("digest"), note=form.note)
    return verdict


def _version(form: Form) -> str:
    return str(parse_version(form.get("version")))
