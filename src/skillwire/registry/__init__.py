"""The registry: versions of skills, published by several people, with roles, channels and reviews."""
