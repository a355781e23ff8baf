"""The ``fallback`` on a server: skills as plain tools and prompts."""
