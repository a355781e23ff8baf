"""Checks of a server: one file per family of rules, and the run that uses them."""
