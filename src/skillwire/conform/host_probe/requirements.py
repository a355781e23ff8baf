"""Every duty of a host that can be seen on the wire: what it is, how it is seen, what to do about it."""

from __future__ import annotations

from skillwire.conform.outcome import Rule

_DUTIES = (
    Rule(
        "K2",
        "skills are asked for only where they are declared",
        "No skills/* and no directory read on a server that declares none, nor before any declaration was read. "
        "See it by connecting to all servers of the configuration.",
        "look at capabilities.extensions before calling skills/*, and at directoryRead before reading directories",
    ),
    Rule(
        "K3",
        "the client declares the extension",
        "The capabilities of initialize, or of each request of the stateless era, when skills/* is called.",
        "declare io.modelcontextprotocol/skills in the client's capabilities",
    ),
    Rule(
        "L3",
        "cursors are given back as they came",
        "The cursors of skills/list and of directories. See it by listing all skills: there are two pages.",
        "send nextCursor back unchanged",
    ),
    Rule(
        "B3",
        "a cursor that repeats ends the listing",
        "One server repeats its cursor for ever. See it by listing the skills of all servers in the config file.",
        "stop when a cursor comes a second time, and bound pages and entries",
    ),
    Rule(
        "V1",
        "nothing is read without an entry, or after a mismatch",
        "A skill's files are asked for only after its entry came; after a SKILL.md whose bytes are not what the "
        "entry says nothing else of the skill is. See it by loading 'wrong-digest' and 'wrong-size'.",
        "compare size and digest before using a file, and stop at a mismatch",
    ),
    Rule(
        "V2",
        "only files that the entry lists are read",
        "A SKILL.md mentions a file that exists and that the entry does not list. See it by loading 'guide' and "
        "its references/steps.md, and asking for references/unlisted.md.",
        "resolve reads against the entry that is held, and refuse the rest before asking the server",
    ),
    Rule(
        "V3",
        "a mismatch is answered by getting the entry again",
        "Whether skills/get comes between a mismatch and the next read of that skill. See it by loading 'wrong-"
        "digest' twice.",
        "ask skills/get before reading a skill that did not match again",
    ),
    Rule(
        "V4",
        "a SKILL.md with other fields is not acted on",
        "After a SKILL.md whose frontmatter differs from the entry nothing else of the skill is read. See it by "
        "loading 'wrong-frontmatter'.",
        "compare the frontmatter with the entry's, field by field",
    ),
    Rule(
        "V5",
        "nothing is fetched ahead of need",
        "No SKILL.md of a skill that nobody needs, no file before its SKILL.md, not everything at once. See it by"
        " listing skills, and loading one.",
        "read a file when it is needed: not on connecting, listing or approving",
    ),
    Rule(
        "V7",
        "generated skills are declined by default",
        'Whether the skill that says "dynamic" is read; a person may have chosen so, so it is a warning. See it by'
        " asking for 'generated'.",
        "decline skills that cannot be verified, unless a person chose otherwise",
    ),
    Rule(
        "W3",
        "a directory does not extend an entry",
        "A directory shows a file that the entry does not list. See it by listing the references of 'guide'.",
        "show and read only what the entry lists",
    ),
    Rule(
        "O3",
        "a skill causes no read elsewhere",
        "A skill of one server names a file of this machine, and a skill that only the other server has. See it "
        "by connecting to all servers and loading 'guide'.",
        "read a skill's files from its own server only, and never file:",
    ),
)

DUTIES: dict[str, Rule] = {duty.id: duty for duty in _DUTIES}
