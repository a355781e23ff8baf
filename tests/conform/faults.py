"""Faults of servers, by the one rule that each breaks."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from conform.changing import (
    TOP,
    UNKNOWN,
    bad_cursor,
    capability,
    content_of,
    drop,
    each_file,
    entry_of,
    error,
    file_field,
    frontmatter,
    instead,
    message_of,
    result_of,
    set_field,
    skills_settings,
    unknown,
)

if TYPE_CHECKING:
    from conform.changing import Change
    from conform.spoiling import Spoil


def _as_blob(content: dict[str, Any]) -> None:
    content["blob"] = b64encode(content.pop("text").encode()).decode()


def _without_inner(entry: dict[str, Any]) -> None:
    entry["resources"] = [file for file in entry["resources"] if "inner" not in file["uri"]]


def _without_skill_md(entry: dict[str, Any]) -> None:
    entry["resources"] = [file for file in entry["resources"] if file["uri"] != entry["uri"]]


def _first_twice(result: dict[str, Any]) -> None:
    result["skills"].append(result["skills"][0])


def _with_stray_child(result: dict[str, Any]) -> None:
    result["resources"] += [{"uri": "skill://traps/deep/down.md", "name": "down.md", "mimeType": "text/plain"}]


def _without_last_child(result: dict[str, Any]) -> None:
    if len(result["resources"]) > 1:
        result["resources"].pop()


def _typeless(result: dict[str, Any]) -> None:
    for child in result["resources"]:
        if child["mimeType"] == "inode/directory":
            child["mimeType"] = "text/plain"


def _index(change: Change) -> Spoil:
    def on_content(content: dict[str, Any]) -> None:
        document = json.loads(content["text"])
        change(document)
        content["text"] = json.dumps(document)

    return content_of("skill://index.json", on_content)


def _archives(asked: str, params: dict[str, Any]) -> bool:
    return asked == "resources/read" and str(params.get("uri")).endswith((".tar.gz", ".zip"))


def _way_out(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
    """A server that decodes a backslash and believes it."""
    uri = str(params.get("uri"))
    if asked == "resources/read" and "x%5c..%5c" in uri:
        text = "---\nname: inner\ndescription: Does one thing well.\n---\n\nDo it.\n"
        contents = [{"uri": uri.replace("x%5c..%5c", ""), "mimeType": "text/markdown", "text": text}]
        around = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"contents": contents, **around}}
    return message


def _two_contents(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
    if params.get("uri") == "skill://traps/x.bin" and asked == "resources/read":
        message["result"]["contents"] *= 2
    return message


# The fault's name, the rule that it breaks, and nothing else.
FAULTS: list[tuple[str, str, Spoil]] = [
    ("no version", "BASE", message_of("skills/get", drop("jsonrpc"))),
    ("another id", "BASE", message_of("resources/templates/list", set_field(id=999_999))),
    (
        "the id as text",
        "BASE",
        message_of("resources/templates/list", lambda message: {**message, "id": str(message["id"])}),
    ),
    ("a result and an error", "BASE", message_of("resources/templates/list", set_field(**error(-32603)))),
    ("no resultType", "BASE", result_of("resources/read", drop("resultType"))),
    ("no ttl on a read", "BASE", result_of("resources/read", drop("ttlMs"))),
    (
        "an unknown method is internal",
        "BASE",
        message_of("skillwire-conform/unknown", lambda m: {"jsonrpc": "2.0", "id": m["id"], **error(-32603)}),
    ),
    ("an unknown resource is internal", "BASE", instead(unknown("resources/read"), error(-32603))),
    ("an answer that is a list", "BASE", message_of("resources/templates/list", lambda message: [message])),
    ("not JSON", "BASE", message_of("resources/templates/list", lambda message: b"{oops")),
    ("no resources", "K1", capability(drop("resources"))),
    ("settings that are a list", "K1", capability(skills_settings([]))),
    ("directoryRead in words", "K1", capability(skills_settings({"directoryRead": "yes"}))),
    ("a wrapped setting", "K1", capability(skills_settings({"config": {"directoryRead": True}}))),
    ("declared and not there", "K1", instead(lambda asked, params: asked == "skills/list", error(-32601))),
    (
        "directories declared and not there",
        "K1",
        instead(lambda asked, params: "directory" in asked, error(-32601)),
    ),
    ("another list", "L1", result_of("skills/list", lambda result: result.update(items=result.pop("skills")))),
    ("a cursor that is a number", "L1", result_of("skills/list", lambda result: result.update(nextCursor=7))),
    ("no ttl on the listing", "L1", result_of("skills/list", drop("ttlMs"))),
    ("a cache for everybody else", "L1", result_of("skills/list", set_field(cacheScope="shared"))),
    ("a bad cursor is page one", "L3", instead(bad_cursor("skills/list"), {"result": {"skills": []}})),
    ("a bad cursor is internal", "L3", instead(bad_cursor("skills/list"), error(-32603))),
    ("a cursor that is then refused", "L3", result_of("skills/list", set_field(nextCursor="again"))),
    (
        "a cursor for ever",
        "L3",
        instead(
            lambda asked, params: params.get("cursor", "again") == "again" and asked == "skills/list",
            {"result": {"skills": [], "nextCursor": "again"}},
        ),
    ),
    ("an entry twice", "L3", result_of("skills/list", _first_twice)),
    ("no frontmatter", "E1", entry_of(drop("frontmatter"))),
    ("a field more", "E1", entry_of(frontmatter(extra="nobody wrote this"))),
    ("a field less", "E1", entry_of(lambda entry: entry["frontmatter"].pop("answer"))),
    ("another description", "E1", entry_of(frontmatter(description="Another one."))),
    ("no SKILL.md among the files", "E2", entry_of(_without_skill_md)),
    ("files that are null", "E2", entry_of(set_field(resources=None))),
    ("files that are static", "E2", entry_of(set_field(resources="static"))),
    ("no sizes", "E2b", entry_of(each_file(drop("size")))),
    ("no files", "E2", entry_of(drop("resources"))),
    ("a digest in capitals", "E3", entry_of(file_field(0, digest="sha256:" + "A" * 64))),
    ("another hash", "E3", entry_of(file_field(0, digest="sha512:" + "a" * 64))),
    ("a size in words", "E3", entry_of(file_field(0, size="12"))),
    ("a file elsewhere", "E4", entry_of(file_field(1, uri="skill://plain/notes.md"))),
    ("nested files left out", "E4", entry_of(_without_inner, "skill://team/outer/SKILL.md")),
    ("a URI without SKILL.md", "U1", entry_of(set_field(uri="skill://traps"))),
    ("another name", "U3", entry_of(frontmatter(name="other"))),
    ("a way out in a URI", "U7", entry_of(file_field(1, uri="skill://traps/%2e%2e/notes.md"))),
    ("a backslash that leads somewhere", "U7", _way_out),
    ("a date with a time", "F4", entry_of(frontmatter(when="2026-01-01T00:00:00"))),
    ("yes is true", "F4", entry_of(frontmatter(answer=True))),
    ("the last line break is lost", "F5", entry_of(frontmatter(notes="A block\nat the end"))),
    ("carriage returns are lost", "F6", content_of("skill://traps/crlf.txt", set_field(text="one\ntwo\n"))),
    ("a get that differs", "G1", result_of("skills/get", lambda result: result["skill"].update(more=1))),
    ("a get without a skill", "G1", result_of("skills/get", drop("skill"))),
    ("an unknown skill is internal", "G1", instead(unknown("skills/get"), error(-32603))),
    (
        "any URI is a skill",
        "G1",
        instead(
            lambda asked, params: asked == "skills/get" and "notes.md" in str(params.get("uri")),
            {"result": {"skill": {}}},
        ),
    ),
    ("a get with a cursor", "G1", result_of("skills/get", set_field(nextCursor="more"))),
    ("no scope on a get", "G1", result_of("skills/get", drop("cacheScope"))),
    ("text as base64", "R1", content_of("skill://plain/notes.md", _as_blob)),
    ("no type", "R1", content_of("skill://plain/notes.md", drop("mimeType"))),
    ("SKILL.md of another type", "R1", content_of(TOP, set_field(mimeType="text/plain"))),
    ("another resource", "R1", content_of("skill://plain/notes.md", set_field(uri=TOP))),
    ("two contents", "R1", _two_contents),
    ("broken base64", "R1", content_of("skill://traps/x.bin", set_field(blob="%%%"))),
    (
        "a listing with file names",
        "R1",
        result_of("resources/list", lambda result: result["resources"][0].update(name="SKILL.md")),
    ),
    ("other bytes", "R2", content_of("skill://plain/notes.md", set_field(text="other\n"))),
    ("more bytes", "R2", content_of("skill://plain/notes.md", set_field(text="notes\nand more\n"))),
    (
        "a priority of seven",
        "R3",
        result_of("resources/list", lambda result: result["resources"][0]["annotations"].update(priority=7)),
    ),
    (
        "another size in a listing",
        "R3",
        result_of("resources/list", lambda result: result["resources"][0].update(size=1)),
    ),
    (
        "an audience of robots",
        "R3",
        result_of(
            "resources/directory/read",
            lambda result: (
                [
                    child["annotations"].update(audience=["robots"])
                    for child in result["resources"]
                    if "annotations" in child
                ]
                and None
            ),
        ),
    ),
    ("a bare _meta key", "R4", result_of("skills/list", set_field(_meta={"owner": "me"}))),
    ("a child left out", "D1", result_of("resources/directory/read", _without_last_child)),
    ("a child of a child", "D1", result_of("resources/directory/read", _with_stray_child)),
    ("a folder of another type", "D1", result_of("resources/directory/read", _typeless)),
    (
        "a directory that is unknown",
        "D1",
        instead(unknown("resources/directory/read"), {"result": {"resources": []}}),
    ),
    (
        "a file as a directory",
        "D1",
        instead(
            lambda asked, params: (
                "directory" in asked and str(params.get("uri")).endswith(".md") and UNKNOWN not in str(params)
            ),
            {"result": {"resources": []}},
        ),
    ),
    (
        "a directory's bad cursor",
        "D1",
        instead(bad_cursor("resources/directory/read"), {"result": {"resources": []}}),
    ),
    ("no ttl on a directory", "D1", result_of("resources/directory/read", drop("ttlMs"))),
    (
        "too much to choose from",
        "T1",
        result_of("completion/complete", lambda result: result["completion"].update(values=["x"] * 101)),
    ),
    ("an index of texts", "I1", _index(lambda document: document["skills"].append("x"))),
    ("an index without skills", "I1", _index(drop("skills"))),
    (
        "another digest in the index",
        "I1",
        _index(lambda document: document["skills"][0].update(digest="sha256:" + "0" * 64)),
    ),
    ("an archive that is none", "I2", instead(_archives, {"result": {"contents": []}})),
]
