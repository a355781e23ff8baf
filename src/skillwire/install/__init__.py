"""Verified skills in the folders where agents look for them, and what is remembered of where they came from.

A person asks for it each time: nothing is fetched, written or linked for an agent that nobody chose. Once a skill
lies in an agent's own folder, that agent treats it as its own; so the yes is given before, to exactly the bytes
that are written. The files of a skill are not altered.
"""
