"""A client of MCP servers with skills, in every dialect.

connect                       ``connect``: a URL, a command or a server object becomes a ``SkillsClient``
connection                    a session that reconnects; errors of the SDK as ours
bounds · stdio                what a server may send, over HTTP and stdio (B1, B2, B4); untrusted JSON
servers · jsonc               where a server is, from configuration files
dialects/                     how each dialect lists, gets and reads skills
skills                        ``SkillsClient``: typed calls, verified by default
remote · entry_table · link   ``RemoteCatalog``: a server as a ``Catalog``, kept current and cached
relocation                    skills that a server identifies by name, with URIs and a ``SKILL.md``
"""
