"""What outlives a process: one contract, and every implementation of it."""
