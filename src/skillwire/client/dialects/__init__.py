"""One file per dialect: how a server of that kind lists, gets and reads skills.

Each gives the same ``SkillEntry`` values. What a dialect cannot promise is missing from them, never made up.
"""
