"""Every rule of a server that can be seen from outside: what it says, how it is looked at, what to do about it.

The ids are those of the project's rules; ``BASE`` stands for what the protocol says of every message.
"""

from __future__ import annotations

from skillwire.conform.outcome import Rule

_RULES = (
    Rule(
        "BASE",
        "every answer is a JSON-RPC answer of its era",
        "All answers: version, id, result or error, 'resultType' and cache fields in the stateless era and only "
        "there; an unknown method is -32601, an unknown resource -32602.",
        "compare the answer with the protocol's schema of that version",
    ),
    Rule(
        "K1",
        "the extension is declared, with resources",
        "The capabilities of server/discover or initialize: no setting but directoryRead; what is declared has to "
        "be answered.",
        'declare "extensions": {"io.modelcontextprotocol/skills": {}} and "resources"',
    ),
    Rule(
        "L1",
        "skills/list gives pages of entries",
        "Every page: 'skills' is a list, 'nextCursor' is text; 'ttlMs' and 'cacheScope' in the stateless era.",
        "return {skills, nextCursor?}, with the cache fields of the era",
    ),
    Rule(
        "L3",
        "cursors are honoured, and bad ones refused",
        "All pages are walked: no cursor and no entry comes twice, a cursor gives the same page again; text that "
        "was never a cursor, and a number, are refused with -32602.",
        "answer -32602 to a cursor that the listing did not give, and never give one twice",
    ),
    Rule(
        "E1",
        "an entry has a URI, and everything the author wrote",
        "Every entry has 'uri' and 'frontmatter'; the frontmatter equals that of its SKILL.md, field by field.",
        "send the parsed frontmatter whole: every field, nothing added, nothing renamed",
    ),
    Rule(
        "E2",
        "an entry lists all its files, or is dynamic",
        "'resources' is a list with SKILL.md in it and each file once, or the text \"dynamic\". A warning if "
        "all files of a dynamic skill were read twice with the same bytes.",
        'list every file of the skill once, or send "resources": "dynamic"',
    ),
    Rule(
        "E2b",
        "the generation before sizes is not sent",
        "Files with a digest and no size.",
        "update the library that makes the entries: each file has a 'size'",
    ),
    Rule(
        "E3",
        "digests and sizes are spelled right",
        "'sha256:' and 64 lowercase hexadecimal digits; sizes are whole numbers.",
        "hash the raw bytes with SHA-256 and write the digest in lowercase",
    ),
    Rule(
        "E4",
        "files are inside their skill, nested ones too",
        "Every file's URI is below the skill's root; files of a nested skill are in the enclosing entry too.",
        "list the files below the skill's directory, and no others",
    ),
    Rule(
        "E6",
        "skills are within what every host accepts",
        "At most 512 files and 16 MiB by the entry; above that hosts may decline, so it is a warning.",
        "split the skill, or leave out what no reader needs",
    ),
    Rule(
        "U1",
        "a skill's URI names its SKILL.md",
        "Every entry's URI is scheme://path/SKILL.md.",
        "write the URI with /SKILL.md at its end",
    ),
    Rule(
        "U3",
        "the last segment before SKILL.md is the name",
        "The URI's last folder equals the frontmatter's name.",
        "name the folder like the skill",
    ),
    Rule(
        "U7",
        "URIs are encoded, and no spelling leads out",
        "Every URI has only RFC 3986's characters and no '.', '..' or empty segment; resources/read refuses '..',"
        " its encoded forms, encoded slashes, backslashes and NUL.",
        "percent-encode each segment; compare decoded segments and refuse what is no plain name",
    ),
    Rule(
        "F1",
        "SKILL.md begins with frontmatter",
        "The bytes of every SKILL.md.",
        "leave out folders whose SKILL.md has no frontmatter",
    ),
    Rule(
        "F2",
        "names are 1-64 of a-z, 0-9 and single hyphens",
        "The frontmatter of every entry.",
        "do not serve skills whose name breaks the format, and say so to their author",
    ),
    Rule(
        "F3",
        "the known fields have their shapes",
        "Description, license, compatibility, metadata and allowed-tools of every SKILL.md; served all the same, "
        "so a warning.",
        "tell the skill's author",
    ),
    Rule(
        "F4",
        "frontmatter is read as YAML 1.2",
        "Where a SKILL.md has yes, on, 012, 1:30, a date or 1_000: the entry has them as text or numbers.",
        "read frontmatter with the YAML 1.2 core schema",
    ),
    Rule(
        "F5",
        "a block scalar at the end keeps its line break",
        "Where a SKILL.md's frontmatter ends in one: the entry's text ends in a line break too.",
        "give the YAML parser the line break before the closing ---",
    ),
    Rule(
        "F6",
        "BOM, CRLF and other bytes survive",
        "Where files have them: digest and size are of the raw bytes, and those bytes come.",
        "read and hash files as bytes, and send text undecoded by any newline rule",
    ),
    Rule(
        "G1",
        "skills/get knows every skill, and nothing else",
        "Every listed skill gives its listed entry, without 'nextCursor'; an unknown URI, a supporting file, a "
        "missing and a wrong 'uri' are refused with -32602.",
        "answer from the same catalog as skills/list, and -32602 otherwise",
    ),
    Rule(
        "R1",
        "files are read as text or base64, with a type",
        "Every file: one content about it, 'text' if it is UTF-8 and else 'blob', with a 'mimeType'; SKILL.md is "
        "text/markdown, and has its name and description in resources/list.",
        "send UTF-8 as 'text' and everything else as base64 'blob'",
    ),
    Rule(
        "R2",
        "the bytes are what the entry says",
        "Every file of every skill: its length is the entry's size, its SHA-256 the entry's digest.",
        "hash what you send, or send what you hashed; refuse a read that does not match",
    ),
    Rule(
        "R3",
        "annotations say for whom and how important",
        "Where skills are in resources/list or directories: audience, priority, lastModified and size have their "
        "shapes, and the size is the entry's. A warning if there are none.",
        "send annotations with audience and priority, and the file's size",
    ),
    Rule(
        "R4",
        "_meta keys have a reverse-domain prefix",
        "Every '_meta' of every answer.",
        "write keys like com.example/owner",
    ),
    Rule(
        "D1",
        "directories show what is in them",
        "If directoryRead is declared: every directory of the entries shows its files and folders, directly and "
        "once, folders as inode/directory; a file, an unknown URI and a bad cursor are refused with -32602.",
        "list direct children only, folders as inode/directory, and answer -32602 otherwise",
    ),
    Rule(
        "S1",
        "changes are noticed",
        "Cannot be seen from outside: nothing here may change the server's files.",
        "try it with 'skillwire list' before and after a change",
    ),
    Rule(
        "T1",
        "templates can be completed",
        "Where resource templates fit the skills' URIs and completion is declared: completion/complete gives at "
        "most 100 values.",
        "answer completion/complete for the template that you list",
    ),
    Rule(
        "I1",
        "the index has one of its two shapes",
        "If skill://index.json is there: JSON with 'skills', each entry of either generation, its URL readable "
        "and its digest true.",
        "write {name, type, description, url} or {frontmatter, url, digest}",
    ),
    Rule(
        "I2",
        "archives hold the skill, SKILL.md at their root",
        "Every archive that the index names: its type, digest and members.",
        "pack the contents of the folder, not the folder",
    ),
    Rule(
        "P1",
        "sep-2076: skills are listed by name",
        "If skills/list means this dialect: the 'skills' capability, names and text where they belong.",
        "send {name, description?, …} for each skill",
    ),
    Rule(
        "P2",
        "sep-2076: skills/get gives instructions",
        "Every listed skill without required arguments: 'instructions' is text without frontmatter; an unknown "
        "name is -32602.",
        "answer skills/get by name with 'instructions'",
    ),
    Rule(
        "P3",
        "sep-2076: dependencies exist on the server",
        "The tools that skills depend on are in tools/list.",
        "offer the tools, or take them out of the skill",
    ),
    Rule(
        "P4",
        "sep-2076: files can be read",
        "The files that skills/get names are answered by resources/read.",
        "serve the files, or leave them out",
    ),
    Rule(
        "M1",
        "native: skills are listed by name",
        "If skills/list means this dialect: names, and text where it belongs.",
        "send {name, description} for each skill",
    ),
    Rule(
        "M2",
        "native: activation gives all that a client needs",
        "The first listed skill is activated: instructions, and definitions with 'inputSchema'; an unknown name "
        "is -32602.",
        "answer skills/activate with instructions and complete definitions",
    ),
)

RULES: dict[str, Rule] = {rule.id: rule for rule in _RULES}
EXTENSION = (
    "L1", "L3", "E1", "E2", "E2b", "E3", "E4", "E6", "U1", "U3", "U7", "F1", "F2", "F3", "F4", "F5", "F6",
    "G1", "R1", "R2", "R3", "D1", "S1", "T1",
)  # fmt: skip
INDEX = ("I1", "I2")
SEP_2076 = ("P1", "P2", "P3", "P4")
NATIVE = ("M1", "M2")
