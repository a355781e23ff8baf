"""Catalogs: everything that holds skills implements one contract.

contract · changes · cursor   the interface, change notifications, pages
memory · directory · package  skills in memory, in a folder, in a Python package
archive · packer              a skill in an archive file; archives of any skill
generated · template          skills from functions; from functions with variables in the path
combined · visibility         several catalogs as one; the part of a catalog that a caller may see
listing                       a saved listing
snapshot · records            the immutable state that local catalogs share
scan · safe_open · scan_cache reading a folder safely, and the cache of the last scan
settings · watch · watcher    skillwire.toml, and file events
names · skill_content         skills by name; verified content
check · verification · diff   reports about a folder, a server, and two catalogs
export                        a skill as a folder on disk
"""
