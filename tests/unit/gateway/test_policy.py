from __future__ import annotations

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.gateway.policy import ApprovedContent, GatewayPolicy, parse_policy

PRINT = "sha256:" + "a" * 64
WHOLE = f"""
mode = "admit"
servers = "servers.json"
read-only = true

[upstream.acme]
skills = ["billing/*", "release"]
deny = ["billing/drafts/*"]
materialize = ["generated/*"]
max-bytes = 1000
max-skills = 10
max-file-bytes = 100
timeout = 2.5
dialect = "index"

[upstream.mine]
folder = "./skills"

[upstream.off]
enabled = false

[[approved]]
upstream = "acme"
path = "billing/refunds"
fingerprint = "{PRINT}"

[[deny]]
path = "*/internal"

[[deny]]
upstream = "mi*"
path = "secret"
"""


def test_nothing_said_is_a_gateway_that_observes() -> None:
    assert parse_policy("") == GatewayPolicy()
    assert GatewayPolicy().mode == "observe"
    assert GatewayPolicy().allows("anything", "any/path")


def test_every_key_is_read() -> None:
    policy = parse_policy(WHOLE)
    assert (policy.mode, policy.servers, policy.read_only) == ("admit", "servers.json", True)
    acme = policy.upstream("acme")
    assert (acme.max_bytes, acme.max_skills, acme.max_file_bytes, acme.timeout) == (1000, 10, 100, 2.5)
    assert acme.dialect == "index"
    assert policy.upstream("mine").folder == "./skills"
    assert not policy.upstream("off").enabled
    assert policy.approved == {ApprovedContent("acme", "billing/refunds", PRINT)}


@pytest.mark.parametrize(
    ("label", "path", "allowed"),
    [
        ("acme", "billing/refunds", True),
        ("acme", "billing/deep/down", True),
        ("acme", "release", True),
        ("acme", "releases", False),
        ("acme", "billing/drafts/new", False),
        ("acme", "billing/internal", False),
        ("mine", "secret", False),
        ("other", "secret", True),
        ("other", "team/internal", False),
    ],
)
def test_a_glob_allows_and_a_denial_is_stronger(label: str, path: str, allowed: bool) -> None:
    assert parse_policy(WHOLE).allows(label, path) is allowed


@rule("A1")
def test_a_yes_in_the_file_is_for_one_content_of_one_skill() -> None:
    """Bound to content."""
    policy = parse_policy(WHOLE)
    assert policy.is_approved("acme", "billing/refunds", PRINT)
    assert not policy.is_approved("acme", "billing/refunds", "sha256:" + "b" * 64)
    assert not policy.is_approved("acme", "billing/other", PRINT)
    assert not policy.is_approved("other", "billing/refunds", PRINT)


@pytest.mark.parametrize(
    ("text", "names", "says"),
    [
        ('mode = "strict"', "'mode'", "observe, admit"),
        ("mode = 1", "'mode'", "observe, admit"),
        ("servers = 1", "'servers'", 'servers = "…"'),
        ('servers = ""', "'servers'", 'servers = "…"'),
        ('read-only = "yes"', "'read-only'", "true or false"),
        ("modes = 1", "'modes'", "mode, read-only, servers"),
        ("upstream = 1", "'upstream'", "[upstream]"),
        ("[upstream.a]\nskill = []", "'upstream.a.skill'", "skills, timeout"),
        ("[upstream.a]\nskills = 'x'", "'upstream.a.skills'", "square brackets"),
        ("[upstream.a]\nskills = [1]", "'upstream.a.skills[1]'", "…"),
        ("[upstream.a]\nenabled = 1", "'upstream.a.enabled'", "true or false"),
        ("[upstream.a]\nmax-bytes = 0", "'upstream.a.max-bytes'", "without quotes"),
        ("[upstream.a]\nmax-bytes = true", "'upstream.a.max-bytes'", "without quotes"),
        ("[upstream.a]\nmax-skills = 1.5", "'upstream.a.max-skills'", "without quotes"),
        ("[upstream.a]\ntimeout = -1", "'upstream.a.timeout'", "without quotes"),
        ("[upstream.a]\ntimeout = nan", "'upstream.a.timeout'", "without quotes"),
        ("[upstream.a]\ndialect = 'sep'", "'upstream.a.dialect'", "sep-2076"),
        ("[upstream.'a b']", "'a b'", "letters, digits"),
        ("[upstream]\na = 1", "'upstream.a'", "[upstream.a]"),
        ("approved = 1", "'approved'", "[[approved]]"),
        ("approved = [1]", "'approved'", "[[approved]]"),
        ("[deny]\npath = 'x'", "'deny'", "[[deny]]"),
        ("[[approved]]\nupstream = 'a'\npath = 'b'", "'approved[1].fingerprint'", "add it"),
        ("[[approved]]\nupstream = 'a'\npath = 'b'\nfingerprint = 'x'", "fingerprint", "64 hex"),
        ("[[deny]]\nupstream = 'a'", "'deny[1].path'", "add it"),
        ("[[deny]]\npath = 'a'\nwhy = 'b'", "'deny[1].why'", "path, upstream"),
        ("mode =", "not TOML", "docs/gateway.md"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(text: str, names: str, says: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_policy(text)
    assert caught.value.reference == "policy-invalid"
    assert names in caught.value.message
    assert says in caught.value.hint
