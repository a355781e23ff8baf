"""P1, P2, P4, P6: messages of ``sep-2076``, from an entry and a body."""

from __future__ import annotations

from typing import Any

from rules import rule
from skillwire.skill.declarations import Dependencies, read_declared
from skillwire.skill.entry import DYNAMIC, Resource, SkillEntry, SkillMeta
from skillwire.wire import meta
from skillwire.wire.sep2076 import dependencies_of, files_of, get_result, listed_skill, parse_dependencies

ROOT = "skill://acme/refunds"
DIGEST = "sha256:" + "0" * 64
FIELDS = {"name": "refunds", "description": "Pays back."}


def entry(*paths: str, dynamic: bool = False, **fields: Any) -> SkillEntry:
    files = tuple(Resource(f"{ROOT}/{path}", DIGEST, 3) for path in ("SKILL.md", *paths))
    return SkillEntry(f"{ROOT}/SKILL.md", {**FIELDS, **fields}, DYNAMIC if dynamic else files)


def files(body: str, *paths: str, dynamic: bool = False) -> list[tuple[str, bool]]:
    return [(file["name"], file["required"]) for file in files_of(entry(*paths, dynamic=dynamic), body)]


@rule("P1", "R4")
def test_a_skill_that_declares_nothing_is_a_name_and_a_description() -> None:
    about = {meta.URI: f"{ROOT}/SKILL.md", meta.DIGEST: DIGEST, meta.SIZE: 3}
    assert listed_skill(entry(), "refunds") == {"name": "refunds", "description": "Pays back.", "_meta": about}


@rule("R4")
def test_what_whoever_serves_a_skill_says_goes_along() -> None:
    said = SkillEntry(f"{ROOT}/SKILL.md", FIELDS, DYNAMIC, SkillMeta(meta={"com.example/owner": "billing"}))
    assert listed_skill(said, "x")["_meta"] == {"com.example/owner": "billing", meta.URI: f"{ROOT}/SKILL.md"}


@rule("P3")
def test_dependencies_go_out_as_references_and_are_read_again() -> None:
    dependencies = Dependencies(("pay",), ("sorry",), ("a://b", "a://c"))
    assert dependencies_of(dependencies) == {
        "tools": ["pay"],
        "prompts": [{"type": "ref/prompt", "name": "sorry"}],
        "resources": [{"type": "ref/resource", "uri": "a://b"}, {"type": "ref/resource", "uri": "a://c"}],
    }
    listed = listed_skill(entry(dependencies={"tools": ["pay"], "prompts": ["sorry"]}), "x")
    assert parse_dependencies(listed) == (f"{ROOT}/SKILL.md", Dependencies(("pay",), ("sorry",), ()))
    assert dependencies_of(Dependencies()) == {}


@rule("P2", "P6")
def test_linked_files_come_first_as_they_appear_and_the_rest_is_sorted() -> None:
    body = "[c](c.md) [a](./a.md#part) [c again](c.md?x) [self](SKILL.md) [gone](gone.md)\n"
    assert files(body, "z.md", "a.md", "b.md", "c.md") == [
        ("c.md", True),
        ("a.md", True),
        ("b.md", False),
        ("z.md", False),
    ]


@rule("U6", "O3")
def test_a_link_out_of_the_skill_is_no_file_of_it() -> None:
    for target in ("../other/a.md", "file:///etc/passwd", "https://x/a.md", "#a", "", "a%00.md"):
        assert files(f"[x]({target})", "a.md") == [("a.md", False)]
        assert files(f"[x]({target})", dynamic=True) == []


@rule("P2")
def test_a_dynamic_skill_has_what_it_links_to() -> None:
    """Whatever is promised about it, which is nothing."""
    made = files_of(entry(dynamic=True), "[the one](r/é b.md) [folder](r/) ![](<r/c d.png>)\n")
    assert made == [
        {
            "name": "r/c d.png",
            "description": "the one folder",
            "uri": f"{ROOT}/r/c%20d.png",
            "mimeType": "image/png",
            "required": True,
        }
    ]
    assert files("[a](a.md) " * 10 + " ".join(f"[x](f{n}.md)" for n in range(2000)), dynamic=True)[0] == (
        "a.md",
        True,
    )
    assert len(files(" ".join(f"[x](f{n}.md)" for n in range(2000)), dynamic=True)) == 512


@rule("U7")
def test_names_with_other_characters_are_found_however_they_are_written() -> None:
    odd = SkillEntry(f"{ROOT}/SKILL.md", FIELDS, (Resource(f"{ROOT}/R%C3%A9sum%C3%A9%20%231.md", DIGEST, 1),))
    for body in ("[x](R%C3%A9sum%C3%A9%20%231.md)", "[x](<Résumé %231.md>)"):
        [file] = files_of(odd, body)
        assert (file["name"], file["required"], file["title"]) == ("Résumé #1.md", True, "x")


@rule("P2")
def test_an_answer_has_no_field_that_would_be_empty() -> None:
    plain = entry()
    got = get_result(plain, read_declared(plain.frontmatter), "Do it.", "Do it.")
    assert set(got) == {"description", "instructions", "_meta"}
