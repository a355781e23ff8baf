"""Installs verified skills into the folders of agents, and records where they came from.

The user starts every installation: nothing is fetched, written or linked for an agent that was not chosen. An
agent trusts everything in its own folder, so the user approves exactly the bytes that are written. The files of a
skill are not changed.
"""
