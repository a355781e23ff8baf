"""A server that watches a host: bait to behave badly with, and a judgement of what was seen on the wire."""
