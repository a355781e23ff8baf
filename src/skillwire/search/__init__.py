"""Full-text search over the skills of any catalog.

index   what callers use: built on first use, kept current
query   PURE: what somebody typed becomes words; nothing typed is syntax
words   PURE: how text is cut into words, in every script
plan    PURE: which words to look for first, so that common ones cost little
fts5    the engine: SQLite's full-text index, and the only file here that speaks to it
news    what changed in the catalog since it was last asked
"""
