"""A connected MCP server, whatever dialect it speaks, as skills that can be verified; and as a ``Catalog``.

connection · pipes · http   a session that is opened, bounded, lost and opened again (B1, B2, B4)
servers · jsonc             what a person or a configuration file says about where a server is
dialects/                   one file per dialect: how it lists, gets and reads
skills                      ``SkillsClient``: the typed calls, verified by default
remote                      the same server as a ``Catalog``
"""
