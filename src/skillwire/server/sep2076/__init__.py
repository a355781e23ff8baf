"""The ``sep-2076`` dialect on a server: skills by name, and what they depend on."""
