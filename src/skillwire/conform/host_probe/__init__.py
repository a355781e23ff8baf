"""A probe for hosts: servers with bait that record every request, and verdicts on what they recorded."""
