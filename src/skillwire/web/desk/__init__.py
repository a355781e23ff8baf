"""The review desk: a person's view of a host, on loopback only. What it decides stands in the host's memory.

Every page works without JavaScript; every change is a form with a token, and is bound to the content that the
person was shown.
"""
