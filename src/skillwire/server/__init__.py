"""Any catalog as an MCP server."""
