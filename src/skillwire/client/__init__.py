"""A client of MCP servers with skills, in every dialect.

connect                        ``connect``: a URL, a command or a server object becomes a ``SkillsClient``
connection · stdio · http      a session with bounds that reconnects (B1, B2, B4)
meter · failures               what a server has sent so far; errors of the SDK as errors of this package
servers · jsonc                where a server is, from configuration files
dialects/                      one file per dialect: how it lists, gets and reads skills
skills                         ``SkillsClient``: typed calls, verified by default
remote · entry_table · link    ``RemoteCatalog``: a server as a ``Catalog``, kept current and cached
"""
