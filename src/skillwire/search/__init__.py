"""Full-text search over the skills of any catalog.

index   the public part: built on first use, kept current
text    pure: splits text and queries into words in every script, and makes snippets
fts5    the engine: SQLite's full-text index, and the plan of a search; the only file here that uses SQLite
"""
