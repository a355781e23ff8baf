"""The HTTP API of a registry: publish, query, administer.

``OPERATIONS`` of each file is its part of the table of operations. ``routes.py`` makes the routes from it, and
``openapi.py`` the OpenAPI document. After the path of a skill comes ``/-/``, which cannot be part of such a path:
``/v1/skills/acme/refunds/-/versions/1.2.0``.

An error is ``{"error": {"reference", "message", "hint"}}``. A namespace that the caller may not read gives the
same bytes as one that does not exist. Bodies are counted while they arrive.
"""
