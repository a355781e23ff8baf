"""Conformance checks of other programs, from outside.

``server.py`` sends requests to a server and compares the raw responses with every observable rule. ``host.py``
runs servers that record the requests of a host (``honeypot.py``), and judges them (``verdicts.py``). The verdicts
are about the messages on the wire, not about what an SDK parses. Both produce a ``Report`` (``report.py``), and
every wait has a bound.
"""
