"""Benchmarks: scripts that print a report. Ratios against a floor measured in the same run, never timed tests."""
