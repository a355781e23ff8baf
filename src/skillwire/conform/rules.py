"""The rules that can be checked from outside, for servers and for hosts: title, check and fix.

The ids are those of the project. ``BASE`` is the rules of the base protocol, which every message has to follow.
"""

from __future__ import annotations

from skillwire.conform.report import ConformanceRule

_SERVER_RULES = """
BASE: every response is valid JSON-RPC of its era
  All responses: version, id, result or error; 'resultType' and cache fields only in the stateless era; an
  unknown method is -32601, an unknown resource -32602.
  Fix: compare the response with the protocol schema of that version

K1: the extension is declared, with resources
  The capabilities of server/discover or initialize: directoryRead is the only setting, and declared methods
  exist.
  Fix: declare "extensions": {"io.modelcontextprotocol/skills": {}} and "resources"

L1: skills/list returns pages of entries
  Every page: 'skills' is a list, 'nextCursor' is a string; 'ttlMs' and 'cacheScope' in the stateless era.
  Fix: return {skills, nextCursor?}, with the cache fields of the era

L3: cursors work, and invalid ones are refused
  All pages: no cursor and no entry appears twice, and a cursor returns the same page again; an unknown cursor
  and a number are refused with -32602.
  Fix: answer an unknown cursor with -32602, and never return the same cursor twice

E1: an entry has a URI and the complete frontmatter
  Every entry has 'uri' and 'frontmatter'; the frontmatter equals that of the SKILL.md.
  Fix: send every field of the parsed frontmatter unchanged, and add none

E2: an entry lists all its files, or is dynamic
  'resources' is a list with SKILL.md and each file once, or the string "dynamic". A warning if all files of a
  dynamic skill were read twice with the same bytes.
  Fix: list every file of the skill once, or send "resources": "dynamic"

E2b: every file has a size
  Files with a digest but no size, which is an older generation of the format.
  Fix: send a 'size' for each file; a newer version of the library does that

E3: digests and sizes have the right format
  'sha256:' and 64 lowercase hexadecimal digits; sizes are integers.
  Fix: hash the raw bytes with SHA-256 and write the digest in lowercase

E4: files are inside their skill
  Every file's URI is below the skill's root; the files of a nested skill are also in the enclosing entry.
  Fix: list the files below the skill's directory, and no others

E6: skills are small enough for every host
  At most 512 files and 16 MiB; hosts may decline larger skills, so it is a warning.
  Fix: split the skill, or remove files that it does not need

U1: a skill's URI names its SKILL.md
  Every entry's URI is scheme://path/SKILL.md.
  Fix: end the URI with /SKILL.md

U3: the last segment before SKILL.md is the name
  The last folder in the URI equals the name in the frontmatter.
  Fix: give the folder the name of the skill

U7: URIs are encoded, and path traversal is refused
  Every URI has only characters of RFC 3986 and no '.', '..' or empty segment; resources/read refuses '..', its
  encoded forms, encoded slashes, backslashes and NUL.
  Fix: percent-encode each segment; compare decoded segments and refuse segments that are not plain names

F1: SKILL.md begins with frontmatter
  The bytes of every SKILL.md.
  Fix: do not serve folders whose SKILL.md has no frontmatter

F2: names are 1-64 of a-z, 0-9 and single hyphens
  The frontmatter of every entry.
  Fix: do not serve skills with an invalid name, and report them to their author

F3: the known fields have the right types
  Description, license, compatibility, metadata and allowed-tools of every SKILL.md; such skills are served, so
  it is a warning.
  Fix: report it to the author of the skill

F4: frontmatter is read as YAML 1.2
  If a SKILL.md has yes, on, 012, 1:30, a date or 1_000: the entry has them as strings or numbers.
  Fix: read frontmatter with the YAML 1.2 core schema

F5: a block scalar at the end keeps its line break
  If the frontmatter ends in one: the string in the entry ends in a line break too.
  Fix: give the YAML parser the line break before the closing ---

F6: BOM, CRLF and other bytes are preserved
  If files have them: digest and size are of the raw bytes, and those bytes are sent.
  Fix: read and hash files as bytes, and convert no line breaks

G1: skills/get returns every skill, and nothing else
  Every listed skill returns its listed entry, without 'nextCursor'; an unknown URI, a supporting file, a missing
  and an invalid 'uri' are refused with -32602.
  Fix: answer from the same catalog as skills/list, and -32602 otherwise

R1: files are sent as text or base64, with a type
  Every file: one content, 'text' if it is UTF-8 and 'blob' otherwise, with a 'mimeType'; SKILL.md is
  text/markdown, and has its name and description in resources/list.
  Fix: send UTF-8 as 'text' and everything else as base64 'blob'

R2: the bytes match the entry
  Every file of every skill: its length and SHA-256 equal the size and digest in the entry.
  Fix: hash what you send, or send what you hashed; refuse a read that does not match

R3: annotations have an audience and a priority
  If skills are in resources/list or directories: audience, priority, lastModified and size are valid, and the
  size equals that of the entry. A warning if they are missing.
  Fix: send annotations with audience and priority, and the size of the file

R4: _meta keys have a reverse-domain prefix
  Every '_meta' of every response.
  Fix: write keys like com.example/owner

D1: directories list their children
  If directoryRead is declared: every directory of the entries lists its direct files and folders once, folders
  as inode/directory; a file, an unknown URI and an unknown cursor are refused with -32602.
  Fix: list direct children only, folders as inode/directory, and answer -32602 otherwise

S1: changes are served
  Cannot be checked from outside: a client cannot change the files of the server.
  Fix: try it with 'skillwire list' before and after a change

T1: templates can be completed
  If resource templates match the URIs of skills and completion is declared: completion/complete returns at most
  100 values.
  Fix: answer completion/complete for the listed template

I1: the index has one of its two formats
  If skill://index.json exists: JSON with 'skills'; each entry has one of the two formats, a readable URL and a
  matching digest.
  Fix: write {name, type, description, url} or {frontmatter, url, digest}

I2: archives contain the skill, with SKILL.md at the root
  Every archive that the index names: its type, digest and members.
  Fix: pack the contents of the folder, not the folder

P1: sep-2076: skills are listed by name
  If skills/list uses this dialect: the 'skills' capability, a name for each skill, and fields of the right
  types.
  Fix: send {name, description?, …} for each skill

P2: sep-2076: skills/get returns instructions
  Every listed skill without required arguments: 'instructions' is a string without frontmatter; an unknown name
  is -32602.
  Fix: answer skills/get by name with 'instructions'

P3: sep-2076: dependencies exist on the server
  The tools in the dependencies of skills are in tools/list.
  Fix: offer the tools, or remove them from the skill

P4: sep-2076: files can be read
  The files in skills/get can be read with resources/read.
  Fix: serve the files, or do not list them

M1: native: skills are listed by name
  If skills/list uses this dialect: a name for each skill, and fields of the right types.
  Fix: send {name, description} for each skill

M2: native: activation returns complete definitions
  The first listed skill is activated: instructions, and definitions with 'inputSchema'; an unknown name is
  -32602.
  Fix: answer skills/activate with instructions and complete definitions
"""

_HOST_RULES = """
K2: skills are requested only from servers that declare them
  No skills/* and no directory read on a server that does not declare them, or before the declaration was read.
  See it by connecting to all servers of the configuration.
  Fix: check capabilities.extensions before calling skills/*, and directoryRead before reading directories

K3: the client declares the extension
  The capabilities of initialize, or of each request of the stateless era, when skills/* is called.
  Fix: declare io.modelcontextprotocol/skills in the client's capabilities

L3: cursors are sent back unchanged
  The cursors of skills/list and of directories. See it by listing all skills: there are two pages.
  Fix: send nextCursor back unchanged

B3: a repeated cursor ends the list
  One server repeats its cursor endlessly. See it by listing the skills of all servers in the config file.
  Fix: stop at a repeated cursor, and limit pages and entries

V1: nothing is read without an entry, or after a mismatch
  The files of a skill are requested only after its entry; after a SKILL.md that does not match its entry, no
  other file of the skill is requested. See it by loading 'wrong-digest' and 'wrong-size'.
  Fix: compare size and digest before using a file, and stop at a mismatch

V2: only files that the entry lists are read
  A SKILL.md mentions a file that exists but is not in the entry. See it by loading 'guide' and its
  references/steps.md, and requesting references/unlisted.md.
  Fix: resolve reads against the entry, and refuse other files without a request

V3: the entry is fetched again after a mismatch
  Whether skills/get is sent between a mismatch and the next read of that skill. See it by loading 'wrong-digest'
  twice.
  Fix: send skills/get before reading a skill again that did not match

V4: a SKILL.md with other frontmatter is not used
  After a SKILL.md whose frontmatter differs from the entry, no other file of the skill is read. See it by
  loading 'wrong-frontmatter'.
  Fix: compare every field of the frontmatter with the entry

V5: files are fetched only when needed
  No SKILL.md of an unneeded skill, no file before its SKILL.md, not all files at once. See it by listing skills,
  and loading one.
  Fix: read a file when it is needed: not on connecting, listing or approving

V7: generated skills are declined by default
  Whether the "dynamic" skill is read; the user may have chosen so, so it is a warning. See it by requesting
  'generated'.
  Fix: decline unverifiable skills, unless the user chose otherwise

W3: a directory does not extend an entry
  A directory contains a file that the entry does not list. See it by listing the references of 'guide'.
  Fix: show and read only files that the entry lists

O3: a skill causes no reads elsewhere
  A skill of one server names a file of this machine, and a skill that only the other server has. See it by
  connecting to all servers and loading 'guide'.
  Fix: read a skill's files from its own server only, and never file:
"""


def _parse(text: str) -> dict[str, ConformanceRule]:
    """Each paragraph is a rule: its id and title in the first line, how it is checked, and the fix."""
    rules: dict[str, ConformanceRule] = {}
    for paragraph in text.strip().split("\n\n"):
        heading, *lines = paragraph.split("\n")
        name, _, title = heading.partition(": ")
        how, _, fix = " ".join(map(str.strip, lines)).partition(" Fix: ")
        rules[name] = ConformanceRule(name, title, how, fix)
    return rules


SERVER_RULES = _parse(_SERVER_RULES)
HOST_RULES = _parse(_HOST_RULES)
EXTENSION = (
    "L1", "L3", "E1", "E2", "E2b", "E3", "E4", "E6", "U1", "U3", "U7", "F1", "F2", "F3", "F4", "F5", "F6",
    "G1", "R1", "R2", "R3", "D1", "S1", "T1",
)  # fmt: skip
INDEX = ("I1", "I2")
SEP_2076 = ("P1", "P2", "P3", "P4")
NATIVE = ("M1", "M2")
