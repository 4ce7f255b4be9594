"""Tools of MCP servers. Nothing here imports the SDK before a run uses a server."""
