"""The ``native`` dialect on a server: what is active, what that brings, and who is refused what."""
