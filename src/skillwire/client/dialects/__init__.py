"""One file per dialect: how to list, get and read the skills of such a server.

All dialects return ``SkillEntry`` values. Information that a dialect does not have is missing from them, never
invented.
"""
