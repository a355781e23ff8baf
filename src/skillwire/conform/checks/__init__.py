"""The checks of a server, one file for each family of rules, and the table of rules they are about."""
