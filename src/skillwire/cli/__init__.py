"""The command line: one file per verb, a printer, exit codes in one place."""
