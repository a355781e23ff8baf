"""The messages of each dialect, and the table from our errors to JSON-RPC errors."""
