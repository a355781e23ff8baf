"""Conformance checks of other programs, from outside.

``checks/`` sends requests to a server and compares the raw responses with every observable rule. ``host_probe/``
runs servers that record the requests of a host, and judges them. Neither relies on the parsing of an SDK: the
verdicts are about the messages on the wire. Both produce a ``Report`` (``report.py``), and every wait has a bound.
"""
