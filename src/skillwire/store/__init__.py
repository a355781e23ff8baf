"""Data that outlives a process: one contract and its implementations, and the cache of verified files."""
