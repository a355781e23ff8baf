"""Catalogs: everything that holds skills, behind one contract.

contract                      what a catalog is
memory · directory · package  skills in memory, in a folder, in a Python package
archive · local · packed      a skill in an archive; what a path holds; any skill as an archive
generated · template          skills from functions; from functions and values in their path
combined                      several catalogs as one
snapshot · records · cursor   what local catalogs share
scan · beneath · ignore · watch   how a folder is read, safely, and kept current
"""
