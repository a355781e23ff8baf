"""F7: every kind of problem has a name, a rule, a weight and a text that shows it."""

from __future__ import annotations

import re

from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.check import SkillText, check_text
from skillwire.skill.declarations import check_declared
from skillwire.skill.diagnostics import KINDS, Diagnostic, from_error
from skillwire.skill.frontmatter import check_frontmatter, parse_skill_md

FIELDS = b"name: refunds\ndescription: Refund an order.\n"
BODY = b"---\n\nDo it.\n"


def with_fields(extra: bytes = b"", body: bytes = b"Do it.\n") -> bytes:
    return b"---\n" + FIELDS + extra + b"---\n" + body


# One SKILL.md per kind that the rules of the format can report; each breaks that rule and no other.
SAMPLES: dict[str, bytes] = {
    "frontmatter-missing": b"# Refunds\n",
    "frontmatter-unclosed": b"---\n" + FIELDS,
    "frontmatter-empty": b"---\n" + BODY,
    "frontmatter-not-mapping": b"---\n- refunds\n" + BODY,
    "frontmatter-too-large": with_fields(b"# filler\n" * 30_000),
    "encoding-invalid": with_fields(body=b"caf\xe9\n"),
    "yaml-invalid": with_fields(b"a: b: c\n"),
    "yaml-alias": with_fields(b"a: &x 1\n"),
    "yaml-tag": with_fields(b"a: !!int 1\n"),
    "yaml-key": with_fields(b"1: a\n"),
    "yaml-duplicate-key": with_fields(b"name: refunds\n"),
    "yaml-number": with_fields(b"a: .inf\n"),
    "yaml-too-deep": with_fields(b"a: " + b"[" * 40 + b"]" * 40 + b"\n"),
    "name-missing": b"---\ndescription: x\n" + BODY,
    "name-invalid": b"---\nname: Re_Funds\ndescription: x\n" + BODY,
    "name-mismatch": b"---\nname: payments\ndescription: x\n" + BODY,
    "description-missing": b"---\nname: refunds\n" + BODY,
    "description-blank": b"---\nname: refunds\ndescription: ' '\n" + BODY,
    "description-too-long": b"---\nname: refunds\ndescription: " + b"x" * 1025 + b"\n" + BODY,
    "license-invalid": with_fields(b"license: 2\n"),
    "compatibility-invalid": with_fields(b"compatibility: " + b"x" * 501 + b"\n"),
    "metadata-invalid": with_fields(b"metadata: {version: 1.0}\n"),
    "allowed-tools-invalid": with_fields(b"allowed-tools: [Read]\n"),
    "declared-invalid": with_fields(b"version: 1.10\n"),
    "body-empty": with_fields(body=b"\n\n"),
    "link-broken": with_fields(body=b"[x](gone.md)\n"),
    "link-outside": with_fields(body=b"[x](../x.md)\n"),
    "hidden-text": with_fields(body=b"Do it.<!-- or something else -->\n"),
    "hidden-placeholder": with_fields(body=b"Do it.<!-- name -->\n"),
}

READING = (
    "frontmatter-",
    "yaml-",
    "name-",
    "description-",
    "encoding-",
    "license-",
    "compatibility-",
    "metadata-",
)
TEXT = {"allowed-tools-invalid", "declared-invalid", "body-empty", "link-broken", "link-outside"}
TEXT |= {"hidden-text", "hidden-placeholder"}


def problems(data: bytes) -> list[Diagnostic]:
    """All that the rules of the format say about a SKILL.md in the folder ``refunds``."""
    try:
        document = parse_skill_md(data)
    except FormatError as error:
        return [from_error(error, "refunds/SKILL.md")]
    return [
        *check_frontmatter(document, "refunds", "refunds/SKILL.md"),
        *check_declared(document, "refunds/SKILL.md"),
        *check_text(SkillText("refunds", "SKILL.md", data.decode(), {"", "SKILL.md"})),
    ]


@rule("F1", "F2", "F3", "F4", "F6", "U3", "U6", "P6", "B1", "B6")
def test_each_kind_is_reported_alone_for_a_text_that_breaks_its_rule() -> None:
    """As the kind says."""
    found = {reference: problems(data) for reference, data in SAMPLES.items()}
    assert {reference: [problem.reference for problem in found[reference]] for reference in found} == {
        reference: [reference] for reference in SAMPLES
    }
    for reference, [problem] in found.items():
        assert problem.rule == KINDS[reference].rule
        assert problem.file == "refunds/SKILL.md"
        assert problem.message
        assert problem.hint
        assert problem.line is not None
        assert 1 <= problem.line <= SAMPLES[reference].count(b"\n") + 1


@rule("F7")
def test_every_kind_the_rules_of_the_format_can_report_has_a_sample() -> None:
    """A new kind comes with a text that shows it."""
    assert set(SAMPLES) == {kind for kind in KINDS if kind.startswith(READING) or kind in TEXT}


@rule("F1", "F2", "F3")
def test_a_good_skill_has_no_problems() -> None:
    assert problems(with_fields(b"license: MIT\nmetadata: {version: '1'}\n", b"Do [it](./SKILL.md).\n")) == []


@rule("F7")
def test_what_cannot_be_named_or_read_is_refused_and_what_can_be_served_is_served() -> None:
    """Few kinds leave a skill out, and only errors do."""
    served = {reference for reference in SAMPLES if not KINDS[reference].refuses}
    assert served == {
        "description-blank", "description-too-long", "license-invalid", "compatibility-invalid",
        "metadata-invalid",
        "allowed-tools-invalid", "declared-invalid", "body-empty", "link-broken", "link-outside", "hidden-text",
        "hidden-placeholder",
    }  # fmt: skip
    assert {KINDS[reference].severity for reference in KINDS if KINDS[reference].refuses} == {"error"}


@rule("F7")
def test_a_kind_has_a_searchable_name_a_rule_and_a_title() -> None:
    for reference, kind in KINDS.items():
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", reference)
        assert re.fullmatch(r"[A-Z]\d+[a-z]?", kind.rule), reference
        assert kind.severity in ("error", "warning", "note"), reference
        assert kind.title[0].isupper(), reference
        assert not kind.title.endswith("."), reference


@rule("F7")
def test_a_title_stands_for_one_kind() -> None:
    assert len({kind.title for kind in KINDS.values()}) == len(KINDS)


@rule("F7")
def test_an_error_becomes_a_diagnostic_with_its_place() -> None:
    error = FormatError("yaml-invalid", "what", "do this", line=3, column=7)
    problem = from_error(error, "refunds/SKILL.md")
    assert problem == Diagnostic("yaml-invalid", "what", "do this", "refunds/SKILL.md", 3, 7)
    assert (problem.rule, problem.severity, problem.refuses) == ("F1", "error", True)


@rule("F7")
def test_a_diagnostic_moves_with_the_tree_it_is_about() -> None:
    """A mounted catalog names files as its users see them."""
    problem = Diagnostic("link-broken", "m", "h", "refunds/a.md", 1, 2, "src", "refunds")
    assert problem.under("acme") == Diagnostic(
        "link-broken", "m", "h", "acme/refunds/a.md", 1, 2, "src", "acme/refunds"
    )
    whole = Diagnostic("too-many-entries", "m", "h", "")
    assert (whole.under("acme").file, whole.under("acme").skill) == ("acme", None)
