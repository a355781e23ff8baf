"""O1: where a server is, as every host's file writes it; what is wrong is said, and no secret with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rules import rule
from skillwire.client.servers import (
    CommandServer,
    UrlServer,
    find_configs,
    find_server,
    parse_server,
    read_servers,
)
from skillwire.errors import FormatError, NotFoundError, SkillwireError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SECRET = "s3cr3t"
VARIABLES = {"TOKEN": SECRET, "HOME": "/home/me", "EMPTY": "", "NESTED": "${TOKEN}"}


def refusal(act: Callable[[], object]) -> SkillwireError:
    with pytest.raises((FormatError, NotFoundError)) as caught:
        act()
    assert caught.value.hint
    assert SECRET not in str(caught.value)
    return caught.value


def write(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────

URL = "https://example.com/mcp"
SHAPES: dict[str, tuple[dict[str, Any], object]] = {
    "Claude Desktop": (
        {"mcpServers": {"it": {"command": "npx", "args": ["-y", "pkg"], "env": {"KEY": "x"}}}},
        CommandServer(("npx", "-y", "pkg"), {"KEY": "x"}),
    ),
    "Claude Code": (
        {"mcpServers": {"it": {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${TOKEN}"}}}},
        UrlServer(URL, {"Authorization": f"Bearer {SECRET}"}),
    ),
    "VS Code": (
        {"inputs": [], "servers": {"it": {"type": "stdio", "command": "srv", "cwd": "${HOME}/x", "envFile": "x"}}},
        CommandServer(("srv",), {}, "/home/me/x"),
    ),
    "Gemini": ({"theme": "x", "mcpServers": {"it": {"httpUrl": URL, "timeout": 5}}}, UrlServer(URL)),
    "Gemini, both": ({"mcpServers": {"it": {"url": "https://example.com/sse", "httpUrl": URL}}}, UrlServer(URL)),
    "Windsurf": ({"mcpServers": {"it": {"serverUrl": URL, "disabled": False}}}, UrlServer(URL)),
}  # fmt: skip


@rule("O1")
@pytest.mark.parametrize("name", SHAPES)
def test_the_file_of_each_host_is_read(name: str, tmp_path: Path) -> None:
    """Labels are the host's; what else stands in an entry is not ours."""
    document, expected = SHAPES[name]
    servers = read_servers(write(tmp_path / "mcp.json", document))
    assert servers.keys() == {"it"}
    assert parse_server(servers["it"], VARIABLES) == expected


@rule("O1")
def test_both_spellings_in_one_file_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "x", {"mcpServers": {"a": {"url": URL}}, "servers": {"b": {"url": URL}}})
    assert read_servers(path).keys() == {"a", "b"}


@rule("Z1")
def test_comments_and_trailing_commas_are_read_and_strings_respected(tmp_path: Path) -> None:
    entry = {"command": "a", "args": ["https://a/*b*/", "// c", ",}", ',]"\\']}
    inside = json.dumps(entry).removesuffix("]}") + ", /* last */ ], // end\n}"
    text = f'// mine\n{{"mcpServers": {{"it": {inside}, /* "not": {{}}, */ }},}} // "servers": {{}}'
    assert read_servers(write(tmp_path / "mcp.json", text), strict=True) == {"it": entry}
    twice = '{"mcpServers": {"it": {"url": "a"}, /* , */ "it": {"url": "b"},}}'
    path = write(tmp_path / "mcp.json", twice)
    assert refusal(lambda: read_servers(path, strict=True)).reference == "label-duplicate"


@rule("F6")
def test_a_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """Editors on Windows write one."""
    path = tmp_path / "x"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"mcpServers": {"a": {"url": URL}}}).encode())
    assert read_servers(path).keys() == {"a"}


@rule("O1")
@pytest.mark.parametrize(
    "document",
    [{}, [], {"mcpServers": []}, {"mcpServers": {"a": "x"}}],
    ids=["no-table", "no-object", "table-is-a-list", "entry-is-text"],
)
def test_a_file_without_servers_has_none(document: Any, tmp_path: Path) -> None:
    """Another file of the host's is no mistake."""
    assert read_servers(write(tmp_path / "x", json.dumps(document))) == {}


HIDDEN = {
    "a label twice": (
        f'{{"mcpServers": {{"it": {{"url": "{URL}/1"}}, "it": {{"url": "{URL}/2"}}}}}}', "label-duplicate", "'it'",
    ),
    "a label in both tables": (
        f'{{"mcpServers": {{"it": {{"url": "{URL}/1"}}}}, "servers": {{"it": {{"url": "{URL}/2"}}}}}}',
        "label-duplicate", "'it'",
    ),
    "a table twice": (
        '{"x": 1, "x": 2, "x": 3, "mcpServers": {"a": {}}, "mcpServers": {"b": {}}}',
        "config-invalid", "'mcpServers'",
    ),
    "no entry": (f'{{"mcpServers": {{"it": "{URL}"}}}}', "server-invalid", "'it'"),
    "no table": (f'{{"mcpServers": [{{"url": "{URL}"}}]}}', "config-invalid", "'mcpServers'"),
    "no object": ("[]", "config-invalid", "'mcp.json'"),
}  # fmt: skip


@rule("N1", "O1")
@pytest.mark.parametrize("name", HIDDEN)
def test_a_server_that_would_be_dropped_is_an_error_if_all_are_wanted(name: str, tmp_path: Path) -> None:
    """And who only looks through a host's file can use it all the same."""
    text, reference, named = HIDDEN[name]
    path = write(tmp_path / "mcp.json", text)
    error = refusal(lambda: read_servers(path, strict=True))
    assert error.reference == reference
    assert named in error.message
    assert "'mcp.json'" in error.message
    read_servers(path)


@rule("O1")
def test_what_hides_nothing_is_read_strictly_too(tmp_path: Path) -> None:
    """The same server in both spellings, and whatever else a host keeps in its file."""
    entry = f'{{"url": "{URL}", "n": 1, "n": 1}}'
    text = f'{{"x": 1, "x": {{"y": 1, "y": 2}}, "mcpServers": {{"a": {entry}}}, "servers": {{"a": {entry}}}}}'
    assert read_servers(write(tmp_path / "x", text), strict=True) == {"a": {"url": URL, "n": 1}}
    assert read_servers(write(tmp_path / "y", '{"mcpServers": null}'), strict=True) == {}


# ── variables ────────────────────────────────────────────────────────────────────────────────────────────────


@rule("O1")
@pytest.mark.parametrize(
    ("written", "filled"),
    [
        pytest.param("a${TOKEN}b${HOME}", f"a{SECRET}b/home/me", id="two"),
        pytest.param("${env:TOKEN}", SECRET, id="env"),
        pytest.param("${TOKEN:-none}", SECRET, id="default-not-needed"),
        pytest.param("${env:UNSET:-a:-b}", "a:-b", id="default"),
        pytest.param("${UNSET:-}", "", id="empty-default"),
        pytest.param("${EMPTY:-x}", "", id="set-and-empty"),
        pytest.param("$TOKEN", "$TOKEN", id="without-braces"),
        pytest.param("${TOKEN", "${TOKEN", id="not-closed"),
        pytest.param("${NESTED}", "${TOKEN}", id="value-with-a-variable"),
    ],
)
def test_variables_are_filled_in_once(written: str, filled: str) -> None:
    """Set, by default, in either spelling; what a value holds is not filled in again."""
    entry = {"command": "srv", "args": [written], "env": {"X": written}, "cwd": f"/x{written}"}
    assert parse_server(entry, VARIABLES) == CommandServer(("srv", filled), {"X": filled}, f"/x{filled}")
    headers = {"url": f"{URL}?x={written}", "headers": {"X": written}}
    assert parse_server(headers, VARIABLES) == UrlServer(f"{URL}?x={filled}", {"X": filled})


@rule("O1")
@pytest.mark.parametrize("where", ["url", "headers.X", "command", "env.X", "cwd"])
def test_a_variable_that_is_not_set_is_an_error_never_empty_text(where: str) -> None:
    """It names the variable, and where it is needed."""
    for written in ("a${TOKEN}${UNSET}", "${env:UNSET}"):
        error = refusal(lambda written=written: parse_server(entry_with(where, written), VARIABLES))
        assert error.reference == "variable-unset"
        assert f"'{where}'" in error.message
        assert "UNSET" in error.message
        assert "UNSET" in error.hint


@rule("O1")
@pytest.mark.parametrize("written", ["${input:key}", "${}", "${1}"], ids=["input", "empty", "number"])
def test_a_variable_that_only_the_host_knows_is_refused_by_name(written: str) -> None:
    """Guessing would send something else to the server."""
    error = refusal(lambda: parse_server(entry_with("env.X", written), VARIABLES))
    assert error.reference == "variable-unknown"
    assert written in error.message
    assert "'env.X'" in error.message


def entry_with(where: str, text: str) -> dict[str, Any]:
    """An entry with ``text`` at one place."""
    field, _, key = where.partition(".")
    entry: dict[str, Any] = {"url": URL} if field in ("url", "headers") else {"command": "srv"}
    return entry | {field: {key: text} if key else text}


@rule("O1")
def test_variables_come_from_the_environment_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLWIRE_TEST", "set")
    entry = {"command": "${SKILLWIRE_TEST}"}
    assert parse_server(entry) == CommandServer(("set",))
    assert refusal(lambda: parse_server(entry, {})).reference == "variable-unset"


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────────────────


@rule("O1")
def test_what_may_be_secret_is_in_no_representation() -> None:
    """Tracebacks and logs show these."""
    url = parse_server(
        {"url": "https://me:${TOKEN}@example.com/mcp?key=${TOKEN}", "headers": {"Authorization": "${TOKEN}"}},
        VARIABLES,
    )
    command = parse_server(
        {"command": "srv", "args": ["--key", "${TOKEN}"], "env": {"KEY": "${TOKEN}"}}, VARIABLES
    )
    for place in (url, command):
        assert SECRET not in repr(place)
        assert SECRET not in f"{place}"
    assert "example.com/mcp" in repr(url)
    assert "srv" in repr(command)
    assert isinstance(url, UrlServer)
    assert url.url == f"https://me:{SECRET}@example.com/mcp?key={SECRET}"


@rule("O1")
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"url": "ftp://me:${TOKEN}@example.com/x?key=${TOKEN}"}, id="password-and-query"),
        pytest.param({"url": "https://me:${TOKEN}/x@example.com/mcp"}, id="password-with-a-slash"),
        pytest.param({"url": "https://me:${TOKEN}?x@example.com/mcp"}, id="password-with-a-question-mark"),
        pytest.param({"url": "https://me:${TOKEN}@example.com/mcp\r"}, id="line-end-in-the-url"),
        pytest.param({"url": URL, "headers": {"X": f"Bearer {SECRET} ${{UNSET}}"}}, id="unset-variable"),
        pytest.param({"command": "srv", "args": [SECRET, 5]}, id="argument"),
        pytest.param({"command": "srv", "env": {"KEY": SECRET, "OTHER": None}}, id="env"),
        pytest.param({"command": "srv", "env": {"KEY": "${TOKEN}${input:x}"}}, id="unknown-variable"),
        pytest.param({"env": {"KEY": SECRET}}, id="neither-command-nor-url"),
        pytest.param({"url": URL, "headers": {"X": "Bearer ${TOKEN}\r"}}, id="line-end-in-a-header"),
        pytest.param({"url": URL, "headers": {f"X: Bearer {SECRET}": ""}}, id="header-as-a-name"),
    ],
)
def test_no_refusal_repeats_a_secret(entry: dict[str, Any]) -> None:
    assert SECRET not in repr(refusal(lambda: parse_server(entry, VARIABLES)))


@rule("O1")
@pytest.mark.parametrize(
    "value",
    [f"{SECRET}\r", f"{SECRET}\0", f"\t{SECRET}", f"{SECRET}é", f" {SECRET}", f"{SECRET} "],
    ids=["line-end", "control-character", "tab-first", "not-ascii", "space-first", "space-last"],
)
def test_a_header_that_http_would_refuse_is_named_without_its_value(value: str) -> None:
    """HTTP's own refusal repeats the value; a token from a file of Windows has such a line end."""
    entry = {"url": URL, "headers": {"X": "y", "Authorization": "${HEADER}"}}
    for act in (
        lambda: parse_server(entry, {"HEADER": value}),
        lambda: UrlServer(URL, {"Authorization": value}),
    ):
        error = refusal(act)
        assert error.reference == "server-invalid"
        assert "'headers.Authorization'" in error.message


@rule("O1")
@pytest.mark.parametrize("name", ["", "X Y", "X:", "É"], ids=["empty", "space", "colon", "not-ascii"])
def test_a_name_that_no_header_has_is_refused(name: str) -> None:
    error = refusal(lambda: UrlServer(URL, {name: "x"}))
    assert (error.reference, "'headers'" in error.message) == ("server-invalid", True)


@rule("O1")
@pytest.mark.parametrize("value", ["", "Bearer a b", "a\tb"], ids=["empty", "words", "tab"])
def test_every_header_that_http_takes_is_taken(value: str) -> None:
    assert UrlServer(URL, {"X-A_b.1": value}).headers == {"X-A_b.1": value}


@rule("O1")
def test_a_program_that_was_given_its_arguments_is_not_shown_with_them() -> None:
    """Some write the whole line where the program belongs."""
    place = parse_server({"command": "srv --key ${TOKEN}"}, VARIABLES)
    assert "srv …" in repr(place)
    assert SECRET not in repr(place)


# ── what is wrong ────────────────────────────────────────────────────────────────────────────────────────────


@rule("O1")
@pytest.mark.parametrize(
    ("entry", "reference", "named"),
    [
        pytest.param({"url": None}, "server-invalid", "'command'", id="neither"),
        pytest.param({"command": ["npx", "x"]}, "server-invalid", "'command'", id="command-is-a-list"),
        pytest.param({"command": ""}, "server-invalid", "", id="command-is-empty"),
        pytest.param({"command": "x", "args": "-y pkg"}, "server-invalid", "'args'", id="args-are-text"),
        pytest.param({"command": "x", "args": [5]}, "server-invalid", "'command'", id="argument-is-a-number"),
        pytest.param({"command": "x", "env": ["A=1"]}, "server-invalid", "'env'", id="env-is-a-list"),
        pytest.param({"command": "x", "env": {"P": 80}}, "server-invalid", "'env.P'", id="env-has-a-number"),
        pytest.param({"command": "x", "cwd": 5}, "server-invalid", "'cwd'", id="cwd-is-a-number"),
        pytest.param({"url": 5}, "server-invalid", "'url'", id="url-is-a-number"),
        pytest.param({"url": URL, "headers": "X: y"}, "server-invalid", "'headers'", id="headers-are-text"),
        pytest.param({"url": ""}, "url-invalid", "''", id="url-is-empty"),
        pytest.param({"url": "example.com/mcp"}, "url-invalid", "example.com", id="no-scheme"),
        pytest.param({"url": "https:///mcp"}, "url-invalid", "https:///mcp", id="no-host"),
        pytest.param({"url": "https://example.com:x/mcp"}, "url-invalid", "example.com:x", id="port-is-a-word"),
        pytest.param({"url": "https://example.com:0/mcp"}, "url-invalid", "example.com:0", id="port-is-zero"),
        pytest.param({"url": "https://example.com/mcp\n"}, "url-invalid", "'url'", id="line-end"),
        pytest.param({"url": "file:///etc/passwd"}, "url-invalid", "file://", id="other-scheme"),
        pytest.param({"url": URL, "type": "sse"}, "transport-unsupported", "", id="sse"),
    ],
)
def test_an_entry_that_cannot_be_used_names_what_is_wrong(
    entry: dict[str, Any], reference: str, named: str
) -> None:
    error = refusal(lambda: parse_server(entry, VARIABLES))
    assert isinstance(error, FormatError)
    assert error.reference == reference
    assert named in error.message


@rule("B1")
def test_a_long_address_makes_a_short_message() -> None:
    assert len(refusal(lambda: UrlServer("x" * 100_000)).message) < 300


@rule("O1")
def test_a_command_of_no_words_is_refused() -> None:
    assert refusal(lambda: CommandServer(())).reference == "server-invalid"


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────


@rule("B1")
@pytest.mark.parametrize(
    "text",
    ["", '/* open\n{"mcpServers": {}}', "[" * 100_000, '{"mcpServers": {"a": {"n": ' + "9" * 5000 + "}}}"],
    ids=["empty", "open-comment", "deep", "number-too-long"],
)
def test_a_file_that_is_no_json_is_refused_by_name(text: str, tmp_path: Path) -> None:
    error = refusal(lambda: read_servers(write(tmp_path / "mcp.json", text)))
    assert (type(error), error.reference) == (FormatError, "config-invalid")
    assert "'mcp.json'" in error.message


@rule("B1")
def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(b'{"mcpServers": {"\xff": {}}}')
    assert refusal(lambda: read_servers(path)).reference == "config-invalid"


@rule("B1")
def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """Although it is JSON."""
    path = write(tmp_path / "mcp.json", json.dumps({"mcpServers": {"a": {"url": URL}}}).ljust(4 * 1024**2))
    assert read_servers(path).keys() == {"a"}
    path.write_text(path.read_text() + " ")
    assert refusal(lambda: read_servers(path)).reference == "config-invalid"


def test_a_file_that_cannot_be_read_is_named_without_its_path(tmp_path: Path) -> None:
    """Messages name no path of the machine."""
    missing = refusal(lambda: read_servers(tmp_path / "gone.json"))
    folder = refusal(lambda: read_servers(tmp_path))
    assert (type(missing), missing.reference) == (NotFoundError, "config-unreadable")
    assert folder.reference == "config-unreadable"
    assert "'gone.json'" in missing.message
    assert str(tmp_path) not in str(missing)


PLACES = [
    "home/.claude.json", "home/.cursor/mcp.json", "home/.config/Claude/claude_desktop_config.json",
    "home/Library/Application Support/Claude/claude_desktop_config.json", "home/.config/Code/User/mcp.json",
    "home/Library/Application Support/Code/User/mcp.json",
    "work/.mcp.json", "work/.cursor/mcp.json", "work/.vscode/mcp.json",
]  # fmt: skip


@rule("O1", "Z1")
def test_the_users_own_files_come_before_those_of_the_project(tmp_path: Path) -> None:
    """Made in another order."""
    for place in sorted(PLACES, reverse=True):
        write(tmp_path / place, {})
    found = list(find_configs(tmp_path / "work", tmp_path / "home"))
    assert [str(path.relative_to(tmp_path)) for path in found] == PLACES


@rule("O1")
def test_what_is_not_there_and_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "work/.mcp.json").mkdir(parents=True)
    write(tmp_path / "home/.claude.json", {})
    assert [path.name for path in find_configs(tmp_path / "work", tmp_path / "home")] == [".claude.json"]
    assert list(find_configs(tmp_path / "x", tmp_path / "y")) == []


@rule("O1", "Z1")
def test_a_project_does_not_override_a_label_of_the_user(tmp_path: Path) -> None:
    write(tmp_path / "work/.mcp.json", {"mcpServers": {"it": {"url": f"{URL}/0"}}})
    write(tmp_path / "home/.claude.json", {"mcpServers": {"other": {"url": f"{URL}/1"}}})
    own = write(tmp_path / "home/.cursor/mcp.json", {"mcpServers": {"it": {"url": f"{URL}/2"}}})
    path, entry = find_server("it", find_configs(tmp_path / "work", tmp_path / "home"))
    assert (path, entry) == (own, {"url": f"{URL}/2"})


@rule("V5")
def test_files_behind_the_one_that_has_it_are_not_read(tmp_path: Path) -> None:
    """A broken file further away is no hindrance."""
    write(tmp_path / "work/.mcp.json", "broken")
    write(tmp_path / "home/.claude.json", {"mcpServers": {"it": {"url": URL}}})
    assert find_server("it", find_configs(tmp_path / "work", tmp_path / "home"))[1] == {"url": URL}


@rule("O1")
def test_a_label_that_nobody_has_is_answered_with_those_there_are(tmp_path: Path) -> None:
    write(tmp_path / "work/.mcp.json", {"mcpServers": {"zeta": {"env": {"KEY": SECRET}}, "alpha": {}}})
    write(tmp_path / "home/.claude.json", {"mcpServers": {"beta": {}}})
    error = refusal(lambda: find_server("Alpha", find_configs(tmp_path / "work", tmp_path / "home")))
    assert (type(error), error.reference) == (NotFoundError, "server-unknown")
    assert "'Alpha'" in error.message
    assert "alpha, beta, zeta" in error.message
    assert ".claude.json, .mcp.json" in error.message


@rule("O1")
def test_a_label_without_any_file_is_unknown(tmp_path: Path) -> None:
    error = refusal(lambda: find_server("it", find_configs(tmp_path, tmp_path)))
    assert (type(error), error.reference) == (NotFoundError, "server-unknown")
    assert "--config" in error.hint


@rule("B1")
def test_very_many_labels_make_a_bounded_message(tmp_path: Path) -> None:
    path = write(tmp_path / "x", {"mcpServers": {f"label-{number}": {} for number in range(5000)}})
    assert len(refusal(lambda: find_server("it" * 500, iter([path]))).message) < 800
