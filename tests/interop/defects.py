"""The lines that show each defect of a peer, and what they print; ``test_reproductions.py`` runs them.

They need none of our code: where a judge is needed, it is the official Inspector, or the official SDK's client.
"""

from __future__ import annotations

from dataclasses import dataclass

INSPECT = "node node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js"
PYTHON = "../../../.venv/bin/python"
OFFICIAL, EXT_SKILLS = "node serve_typescript.mjs", "node serve_ext_skills.mjs"
FASTMCP = f"{PYTHON} ../fastmcp_skills_server.py"


@dataclass(frozen=True)
class Shown:
    """Shell lines for ``tests/interop/peers``, and what they print."""

    code: str
    prints: str


def _skill(name: str, *, mark: str = "", more: str = "", end: str = r"\n") -> str:
    """Lines that make ``$skills``, a folder with one skill; the text is ``printf``'s."""
    return f"skills=$(mktemp -d)\n{_another(name, mark=mark, more=more, end=end)}"


def _another(name: str, *, mark: str = "", more: str = "", end: str = r"\n") -> str:
    """Lines that add a skill to it."""
    text = f"{mark}---{end}name: {name}{end}description: One.{end}{more}---{end}"
    return f"mkdir $skills/{name}\nprintf -- '{text}' > $skills/{name}/SKILL.md"


def _asked(server: str, method: str, keep: str, *, era: str = "modern") -> str:
    """A line in which the Inspector asks ``server``, and ``keep`` of the answer is shown."""
    return (
        f"{INSPECT} \\\n  {server} --protocol-era {era} --method {method} --format json 2>&1 |\n"
        f"  grep -oE '{keep}' | sort -u"
    )


def _verified(server: str, keep: str = '"(code|status)": ?"(frontmatter-)?mismatch"') -> str:
    """The same for what the Inspector finds when it verifies all skills."""
    return _asked(f"{server} $skills", "skills/list --verify", keep)


# What Agent Framework makes of files that a server of the bare SDK has.
READ_BY_AGENT_FRAMEWORK = f"""{PYTHON} -W ignore <<END
import asyncio, json
from urllib.parse import quote
from agent_framework import MCPSkillsSource
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import TextResource

entry = {{"name": "one", "type": "skill-md", "description": "One.", "url": "skill://one/SKILL.md"}}
files = {{"skill://index.json": json.dumps({{"skills": [entry]}})}}
files |= {{"skill://one/" + quote("100%.md"): "text", "skill://one/empty.md": ""}}

async def main():
    server = MCPServer("bare")
    for uri, text in files.items():
        server.add_resource(TextResource(uri=uri, name=uri, text=text))
    async with Client(server) as client:
        [skill] = await MCPSkillsSource(client=client).get_skills(None)
        for name in ("100%.md", "empty.md"):
            file = await skill.get_resource(name)
            print(name, file and await file.read())

asyncio.run(main())
END"""


KEPT = _skill("kept", more=r"notes: |+\n  one\n\n")
MARKED = _skill("marked", mark=r"\357\273\277")
SWITCH = _skill("switch", more=r"switch: on\n")
CRLF = _skill("crlf", end=r"\r\n")
DIFFERENT_FIELDS = '"code":"frontmatter-mismatch"'
REWRITTEN = r"name: crlf\n"  # and not \r\n
INSTALL = """\
../../../.venv/fast-agent/bin/python fast_agent_install.py 2>&1 <<END | grep -oE '"skill:[^"]*": "[^"]*"'
[{"era": "modern", "transport": "stdio", "at_most": 2, "into": "$skills/into",
  "target": ["node", "serve_typescript.mjs", "$skills"]}]
END"""
READ_CRLF, LINE = "resources/read --uri skill://crlf/SKILL.md", "name: crlf(.r)?.n"

SHOWN: dict[str, Shown] = {
    "ext-skills-bom": Shown(
        "\n".join([MARKED, _asked(f"{EXT_SKILLS} $skills", "skills/list", '"skills": ?[^,}]*')]), '"skills":[]'
    ),
    "ext-skills-kept": Shown(
        f"{KEPT}\nnode read_all.mjs legacy stdio {EXT_SKILLS} $skills | grep -o 'the entry has [^,]*'",
        r"the entry has \"one\\n\"",  # and not two line breaks
    ),
    "ext-skills-names": Shown(
        "\n".join(
            [
                _skill("spaces"),
                'echo hi > "$skills/spaces/two words.md"',
                _asked(
                    f"{EXT_SKILLS} $skills",
                    "resources/read --uri skill://spaces/two%20words.md",
                    "not found in skill|hi",
                ),
            ]
        ),
        "not found in skill",
    ),
    "ext-skills-text": Shown(
        "\n".join([_skill("latin"), r"printf 'na\357ve' > $skills/latin/notes.md", _verified(EXT_SKILLS)]),
        '"status":"mismatch"',
    ),
    "ext-skills-0.12-large": Shown(
        "\n".join(
            [
                _skill("big"),
                "head -c 5242880 /dev/zero > $skills/big/model.bin",
                _asked("node serve_ext_skills_0_12.mjs $skills", "skills/list", '"uri": ?"[^"]*"'),
            ]
        ),
        '"uri":"skill://big/SKILL.md"',
    ),
    **dict.fromkeys(
        ("fastmcp-yaml", "fastmcp-block"),
        Shown(
            "\n".join(
                [
                    SWITCH,
                    _another("literal", more=r"notes: |\n  one\n"),
                    _verified(FASTMCP, "Field .*(switch|notes).. differs"),
                ]
            ),
            'Field \\"notes\\" differs\nField \\"switch\\" differs',
        ),
    ),
    "fastmcp-description": Shown(
        "\n".join(
            [
                _skill("alone"),
                _asked(f"{FASTMCP} $skills", "resources/list", '"description": ?"(One|Skill)[^"]*"', era="legacy"),
            ]
        ),
        '"description":"Skill: alone"',
    ),
    "fastmcp-old-text": Shown("\n".join([CRLF, _asked(f"{FASTMCP} $skills old", READ_CRLF, LINE)]), REWRITTEN),
    "python-sdk-text": Shown(
        "\n".join([CRLF, _asked(f"{PYTHON} ../bare_server.py $skills", READ_CRLF, LINE)]), REWRITTEN
    ),
    "inspector-kept": Shown(f"{KEPT}\n{_verified(OFFICIAL)}", DIFFERENT_FIELDS),
    "conformance-kept": Shown(
        f"""{KEPT}
{OFFICIAL} $skills http 2> $skills/log &
until url=$(grep -so 'http:.*' $skills/log); do sleep 0.1; done
node node_modules/@modelcontextprotocol/conformance/dist/index.js server --url $url \\
  --scenario sep-2640-skills-enumeration --output-dir $skills/out > $skills/said 2>&1
kill $!
node -p 'require(process.argv[1]).filter((check) => check.status === "FAILURE").map((check) => check.id).join()' \\
  $skills/out/*/checks.json""",
        "sep-2640-entry-frontmatter-identical",
    ),
    **dict.fromkeys(
        ("fast-agent-yaml", "fast-agent-bom"),
        Shown(
            "\n".join([SWITCH, _another("marked", mark=r"\357\273\277"), INSTALL]),
            """\
"skill://marked/SKILL.md": "Failed to parse MCP skill manifest: Missing 'name' field"
"skill://switch/SKILL.md": "MCP skill frontmatter does not match the resource manifest\"""",
        ),
    ),
    **dict.fromkeys(
        ("agent-framework-names", "agent-framework-empty"),
        Shown(READ_BY_AGENT_FRAMEWORK, "100%.md None\nempty.md None"),
    ),
}
