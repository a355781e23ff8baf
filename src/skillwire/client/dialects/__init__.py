"""The dialects: how to list, get and read the skills of a server that speaks one.

All dialects return ``SkillEntry`` values. Information that a dialect does not have is missing from them, never
invented.
"""
