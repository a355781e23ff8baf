from __future__ import annotations

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.gateway.config import ApprovedContent, GatewayPolicy, parse_policy

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
    assert policy.approved == (ApprovedContent(upstream="acme", path="billing/refunds", fingerprint=PRINT),)


@pytest.mark.parametrize(
    ("label", "path", "allowed"),
    [
        ("acme", "billing/deep/down", True),
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
    ("text", "named", "allowed"),
    [
        pytest.param('mode = "strict"', "'mode'", "observe, admit", id="mode"),
        pytest.param("mode = 1", "'mode'", "observe, admit", id="mode-is-a-number"),
        pytest.param('servers = ""', "'servers'", "servers = ", id="empty-text"),
        pytest.param('read-only = "yes"', "'read-only'", "true", id="boolean-in-quotes"),
        pytest.param("modes = 1", "'modes'", "mode, read-only, servers", id="unknown-key"),
        pytest.param("upstream = 1", "'upstream'", "[upstream]", id="upstream-is-a-number"),
        pytest.param("[upstream.a]\nskill = []", "'upstream.a.skill'", "skills, timeout", id="unknown-setting"),
        pytest.param("[upstream.a]\nskills = 'x'", "'upstream.a.skills'", "", id="list-is-text"),
        pytest.param("[upstream.a]\nskills = [1]", "'upstream.a.skills[1]'", "", id="item-is-a-number"),
        pytest.param("[upstream.a]\nmax-bytes = 0", "'upstream.a.max-bytes'", "", id="zero"),
        pytest.param("[upstream.a]\nmax-bytes = true", "'upstream.a.max-bytes'", "", id="number-is-true"),
        pytest.param("[upstream.a]\nmax-skills = 1.5", "'upstream.a.max-skills'", "", id="fraction"),
        pytest.param("[upstream.a]\ntimeout = -1", "'upstream.a.timeout'", "", id="negative"),
        pytest.param("[upstream.a]\ntimeout = nan", "'upstream.a.timeout'", "", id="not-a-number"),
        pytest.param("[upstream.a]\ndialect = 'sep'", "'upstream.a.dialect'", "sep-2076", id="dialect"),
        pytest.param("[upstream.'a b']", "'a b'", "", id="label"),
        pytest.param("[upstream]\na = 1", "'upstream.a'", "[upstream.a]", id="settings-are-a-number"),
        pytest.param("approved = [1]", "'approved'", "[[approved]]", id="list-of-numbers"),
        pytest.param("[deny]\npath = 'x'", "'deny'", "[[deny]]", id="table-for-a-list"),
        pytest.param("[[approved]]\nupstream = 'a'\npath = 'b'", "'approved[1].fingerprint'", "", id="missing"),
        pytest.param(
            "[[approved]]\nupstream = 'a'\npath = 'b'\nfingerprint = 'x'", "fingerprint", "", id="fingerprint"
        ),
        pytest.param("[[deny]]\npath = 'a'\nwhy = 'b'", "'deny[1].why'", "path, upstream", id="unknown-field"),
        pytest.param("mode =", "", "docs/how-to/gateway.md", id="not-toml"),
    ],
)
def test_a_mistake_is_named_with_what_is_allowed(text: str, named: str, allowed: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_policy(text)
    assert caught.value.reference == "policy-invalid"
    assert named in caught.value.message
    assert caught.value.hint
    assert allowed in caught.value.hint
