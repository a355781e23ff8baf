"""Catalogs: everything that holds skills, behind one contract.

contract                      what a catalog is
memory · directory · package  skills in memory, in a folder, in a Python package
generated · combined          skills from functions; several catalogs as one
snapshot · records · cursor   what local catalogs share
scan · beneath · ignore · watch   how a folder is read, safely, and kept current
"""
