"""The command line: one file per verb, and a few files that verbs share."""
