"""The catalog in a browser: the served skills, as the caller of each request may see them."""
