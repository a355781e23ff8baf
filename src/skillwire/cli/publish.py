"""``skillwire publish``: publishes a version of a skill in a registry.

The skill is checked first, and errors refuse. What changes against the current version is shown before the
question. Only files that the namespace does not have are uploaded. The registry commits the version as a whole, so
an interrupted publication leaves nothing visible, and a repeat finishes it.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.cli.command import JSON, Arguments, Exit, TargetPlace, argument, flag, option, verb
from skillwire.cli.diff import print_difference
from skillwire.cli.printer import Printer, counted, line, size_of
from skillwire.cli.prompts import can_ask, confirm
from skillwire.cli.registry_session import STATE, run_with_registry
from skillwire.errors import ApprovalError, FormatError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.check import CheckReport
    from skillwire.catalog.diff import FileDifference
    from skillwire.registry.client import RegistryClient
    from skillwire.registry.model import ManifestFile

_COMPARED_BYTES = 256 * 1024


class _Skill(NamedTuple):
    """A skill on disk."""

    name: str
    frontmatter: Mapping[str, Any]
    files: Sequence[ManifestFile]
    data: Mapping[str, bytes]  # by path


@verb(
    "Publish a skill as a new version in a registry.",
    argument("path", "FOLDER", "the folder of a skill", type=TargetPlace()),
    option("--namespace", metavar="NAMESPACE", help="where: acme, or acme/billing for skills in a folder of it"),
    option(
        "--version", metavar="X.Y.Z", help="the number, if SKILL.md has no metadata.version (default: the next)"
    ),
    option(
        "--channel", default="stable", metavar="NAME", help="the channel that gets the version (default: stable)"
    ),
    flag("--no-channel", help="only publish the version, for 'skillwire registry promote'"),
    flag("--unlisted", help="serve a new skill without listing it"),
    flag("--yes", help="do not ask; the changes are still shown"),
    option("--to", "registry", metavar="URL", help="the registry (default: where you signed in last)"),
    STATE,
    JSON,
    within=run_with_registry,
    examples="""\
  skillwire publish ./skills/refunds --namespace acme            check, show the changes, ask, publish
  skillwire publish ./skills/refunds --namespace acme --yes      in CI, with SKILLWIRE_TOKEN
  skillwire publish ./skills/refunds --channel beta              agents get it as acme/@beta/refunds

The number is metadata.version of SKILL.md, else the next patch. A published version never changes.

exit codes: 0 published or unchanged, 1 problems in the skill, or not confirmed, 2 usage, or no response
""",
)
async def command(client: RegistryClient, arguments: Arguments, printer: Printer) -> int:
    """Check, compare, ask, upload and publish."""
    from skillwire.registry.model import build_manifest, chosen_version, parse_channel, parse_skill_path

    report, skill = await _read(arguments, printer)
    if report.errors:
        _print_problems(report, printer)
        raise ApprovalError(
            "skill-has-problems",
            f"{counted(report.errors, 'problem')} in the skill, so it was not published",
            f"fix it: skillwire check {shlex.quote(arguments.path)}",
        )
    namespace = arguments.namespace or await _only_namespace(client)
    path = parse_skill_path(f"{namespace.strip('/')}/{skill.name}")
    channel = None if arguments.no_channel else parse_channel(arguments.channel)
    version = chosen_version(skill.frontmatter, arguments.version)
    manifest = build_manifest(skill.frontmatter, skill.files)
    known = await client.find(f"skills/{path}")
    current = await _current(client, path, known, channel)
    if known is not None and await _is_published(known, manifest.digest, version, channel, path, printer):
        return Exit.OK
    missing = await _missing(client, path, skill)  # before the question: it fails if the user may not publish here
    differences = [] if current is None else await _differences(client, path, current, skill)
    _print_plan(path, version, channel, current, differences, skill, printer)
    if not arguments.yes:
        await _confirm(client, path, printer)
    published = await _publish(client, path, version, channel, skill, missing, arguments, printer)
    _print_result(client, path, published, channel, printer)
    return Exit.OK


async def _read(arguments: Arguments, printer: Printer) -> tuple[CheckReport, _Skill]:
    """Check and read the skill in the folder. Its bytes are those that were checked, or reading fails."""
    from skillwire.catalog.archive import local_catalog
    from skillwire.catalog.check import Checker
    from skillwire.registry.model import ManifestFile

    with printer.progress("Checking", "skills") as count:
        report = Checker(arguments.path).run(count)
    if report.skills != 1:
        raise FormatError(
            "publish-one-skill",
            f"{arguments.path!r:.200} has {report.skills} skills; one is published at a time",
            "give the folder with its SKILL.md, and publish them one by one",
        )
    catalog = local_catalog(arguments.path)
    catalog.load()
    found = [record for _, record in catalog.snapshot().records()]
    if not found or report.errors:
        return report, _Skill("", {}, (), {})
    record = found[0]
    files = [ManifestFile(path, each.digest, each.size, each.executable) for path, each in record.files.items()]
    data = {file.path: (await catalog.read_file(file.uri)).data for file in record.entry.files}
    return report, _Skill(record.entry.name, record.entry.frontmatter, files, data)


def _print_problems(report: CheckReport, printer: Printer) -> None:
    for problem in report.problems:
        if problem.severity == "error":
            place = f"{problem.file}:{problem.line}" if problem.line else problem.file
            printer.talk(f"{line(place)}: {line(problem.message)} [{problem.reference}]")


async def _only_namespace(client: RegistryClient) -> str:
    """Return the only namespace in which the user may publish."""
    found = (await client.call("GET", "namespaces", query={"limit": "1000"}))["namespaces"]
    names = [str(each["name"]) for each in found if "publish" in each["mayDo"]]
    if len(names) == 1:
        return names[0]
    known = f"one of {', '.join(names[:10])}" if names else "an owner of a namespace can give you a role"
    raise FormatError("namespace-missing", "it is not clear where to publish", f"add --namespace NAME: {known}")


async def _current(
    client: RegistryClient, path: str, known: Mapping[str, Any] | None, channel: str | None
) -> dict[str, Any] | None:
    """Return the version to compare with: that of the channel, else the newest."""
    if known is None:
        return None
    there = [str(each["version"]) for each in known["versions"] if each["deleted"] is None]
    at = known["channels"].get(channel) or next(iter(there), None)
    return None if at is None else await client.find(f"skills/{path}/-/versions/{at}")


async def _is_published(
    known: Mapping[str, Any], digest: str, version: str | None, channel: str | None, path: str, printer: Printer
) -> bool:
    """Return whether exactly this is published already, and its channel has it."""
    newest = next((each for each in known["versions"] if each["deleted"] is None), None)
    lines = [each for each in known["versions"] if each["version"] == version] if version else [newest]
    same = next((each for each in lines if each is not None and each["digest"] == digest), None)
    if same is None or (channel is not None and channel not in same["channels"]):
        return False
    words = f"unchanged: {path}@{same['version']} has this content"
    printer.result({"path": path, "outcome": "unchanged", "version": same["version"], "moved": False}, line(words))
    return True


async def _missing(client: RegistryClient, path: str, skill: _Skill) -> list[str]:
    """Return the digests of the files that the namespace does not have."""
    digests = sorted({file.digest for file in skill.files})
    found = await client.call("POST", f"namespaces/{path.partition('/')[0]}/blobs/missing", {"digests": digests})
    return [digest for digest in digests if digest in found["missing"]]  # a registry cannot ask for another file


async def _differences(
    client: RegistryClient, path: str, current: Mapping[str, Any], skill: _Skill
) -> list[FileDifference]:
    """Compare with a published version. Only changed files of a moderate size are fetched."""
    from skillwire.catalog.diff import FileDifference, content_differences

    before = {each["path"]: each for each in current["files"]}
    after = {file.path: file for file in skill.files}
    found: list[FileDifference] = []
    for inside in sorted(before.keys() | after.keys()):
        if inside not in after:
            found.append(FileDifference(inside, "gone"))
        elif inside not in before:
            found.append(FileDifference(inside, "new"))
        elif before[inside]["digest"] != after[inside].digest:
            if max(before[inside]["size"], after[inside].size) > _COMPARED_BYTES:
                found.append(FileDifference(inside, "changed", note="too large to compare"))
            else:
                old = await client.file(path, current["version"], inside, before[inside]["digest"])
                found += content_differences({inside: old}, {inside: skill.data[inside]})
        elif before[inside]["executable"] != after[inside].executable:
            words = "now executable" if after[inside].executable else "not executable any more"
            found.append(FileDifference(inside, "changed", note=words))
    return found


def _print_plan(
    path: str,
    version: str | None,
    channel: str | None,
    current: Mapping[str, Any] | None,
    differences: Sequence[FileDifference],
    skill: _Skill,
    printer: Printer,
) -> None:
    from skillwire.catalog.diff import SkillDifference
    from skillwire.registry.model import STABLE, parse_version

    size = size_of(sum(file.size for file in skill.files))
    number = version or "the next version"
    printer.talk(f"{line(path)}: {counted(len(skill.files), 'file')}, {size}, as {number}")
    if current is None:
        printer.talk("this is the first version")
    elif differences:
        printer.talk(f"changes against {line(str(current['version']))}:")
        print_difference(SkillDifference(path, "changed", tuple(differences)), printer.talk)
    else:
        printer.talk(f"the content is that of {line(str(current['version']))}")
    if channel == STABLE and version is not None and parse_version(version).is_prerelease:
        printer.talk("it is a pre-release, which never becomes stable; --channel beta gives it to testers")
    elif channel is not None:
        printer.talk(f"the channel {channel} gets this version, if it is newer than the one it has")


async def _confirm(client: RegistryClient, path: str, printer: Printer) -> None:
    if not can_ask():
        raise ApprovalError(
            "publish-not-confirmed", "no terminal is available to ask", "add --yes to publish without a question"
        )
    if not await confirm(f"Publish {line(path)} to {line(client.url)}?", printer):
        raise ApprovalError("publish-not-confirmed", "not published", "run the command again when it is ready")


async def _publish(
    client: RegistryClient,
    path: str,
    version: str | None,
    channel: str | None,
    skill: _Skill,
    missing: Sequence[str],
    arguments: Arguments,
    printer: Printer,
) -> dict[str, Any]:
    """Upload the missing files, then publish the version."""
    inside = {file.digest: file.path for file in skill.files}
    with printer.progress("Uploading", "files") as count:
        for done, digest in enumerate(missing, 1):
            await client.upload(path.partition("/")[0], digest, skill.data[inside[digest]])
            count(done)
    body = {
        "version": version,
        "files": [
            {"path": file.path, "digest": file.digest, "size": file.size, "executable": file.executable}
            for file in skill.files
        ],
        "channel": channel,
        "listed": not arguments.unlisted,
    }
    return await client.call("POST", f"skills/{path}/-/versions", body)


def _print_result(
    client: RegistryClient, path: str, published: Mapping[str, Any], channel: str | None, printer: Printer
) -> None:
    version, rows = line(str(published["version"])), list[str]()
    verb_used = "published" if published["outcome"] == "created" else "unchanged:"
    rows.append(f"{verb_used} {line(path)}@{version}")
    if published["waits"] is not None:
        rows.append(f"{channel} gets it when review {published['waits']} is approved: skillwire registry reviews")
    elif published["moved"]:
        rows.append(f"{channel} is {version} now")
    elif published["note"]:
        rows.append(line(str(published["note"])))
    printer.result(dict(published), *rows)
    if published["moved"] and channel == "stable":
        printer.talk(f"install it: skillwire add {shlex.quote(client.url)}/mcp {line(path)}")
