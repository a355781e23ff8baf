"""The line that a person reads before a decision has every argument, and no secret."""

from __future__ import annotations

import pytest

from rules import rule
from skillwire.client.command_line import command_line
from skillwire.client.servers import CommandServer, address_of

SECRET = "s3cret"


@rule("O1")
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["npx", "-y", "@acme/server", "--dir", "/srv/a b"], "npx -y @acme/server --dir '/srv/a b'"),
        (["npx", "server", "--port=80", "--keyboard", "us"], "npx server --port=80 --keyboard us"),
        (["npx", "server", "--token", "${TOKEN}"], "npx server --token '${TOKEN}'"),
        (
            ["docker", "run", "-e", "HOME", "image@sha256:" + "a1" * 32],
            f"docker run -e HOME image@sha256:{'a1' * 32}",
        ),
    ],
)
def test_arguments_are_shown(command: list[str], shown: str) -> None:
    assert command_line(command) == shown


@rule("O1")
@pytest.mark.parametrize(
    "words",
    [
        ["--token", SECRET],
        [f"--api-key={SECRET}"],
        ["--db-password", SECRET],
        ["-e", f"ANYTHING={SECRET}"],
        ["--env", f"ANYTHING={SECRET}"],
        [f"ANYTHING={SECRET}"],
        ["-H", f"X-Anything: {SECRET}"],
        ["--header", SECRET],
        [f"https://user:{SECRET}@example.com/mcp?key={SECRET}#{SECRET}"],
        [f"--url=https://example.com/?key={SECRET}"],
        [f"ghp_{SECRET}abcdefgh"],
        [f"eyJhbGciOi{SECRET}.eyJzdWIi.{SECRET}"],
        ["-c", f"curl -H 'Authorization: Bearer {SECRET}' example.com"],
        ["-c", f"TOKEN={SECRET} exec server"],
        ["--token", "${TOKEN:-" + SECRET + "}"],
    ],
)
def test_secrets_are_hidden(words: list[str]) -> None:
    shown = command_line(["npx", "server", *words, "last"])
    assert SECRET not in shown
    assert shown.startswith("npx server ")
    assert shown.endswith(" last")


@rule("O1")
def test_a_whole_command_as_the_program_has_no_secret() -> None:
    assert command_line([f"npx server --token {SECRET}"]) == "npx server --token …"


def test_a_long_command_is_shortened() -> None:
    shown = command_line(["x", *(["y" * 2000] * 200)])
    assert len(shown) < 30_000
    assert shown.endswith("137 more")


@rule("O1")
def test_the_address_of_a_command_has_its_arguments_and_not_its_environment() -> None:
    assert address_of(CommandServer(("npx", "server"), {"KEY": SECRET})) == "npx server"
