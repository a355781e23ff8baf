"""Conformance of other people's programs, seen from outside.

``checks/`` asks a server and compares its raw answers with every rule that can be observed; ``watching/`` is a
server that watches a host and says which duties it keeps. Neither trusts an SDK's parsing: what is judged are the
messages as they went over the wire. Both end in a ``Report`` (``outcome.py``), and all they wait for is bounded.
"""
