"""The pages of a registry: those of a catalog, with versions, differences, reviews, and the log of changes."""
