"""Catalogs: everything that holds skills implements one contract.

contract · cursor             the interface, its wrapper and change notifications; pages
memory · directory · archive  skills in memory, in a folder or Python package, in an archive file
files · git                   skills in any storage that lists and reads files; in a Git repository
functions                     skills from functions, for fixed paths and for paths with variables
visibility                    the part of a catalog that a caller may see
union · uri_map · listing     several catalogs as one, skills under other URIs, a saved listing
snapshot · scan               the immutable state of local catalogs, and how a folder is read into it
safe_open · settings · watch  files on disk, skillwire.toml, and file events
names · packer · export       skills by name, as archives, and as folders on disk
check · verification · diff   reports about a folder, a server, and two catalogs
"""
