"""The server for MCP clients: `subdeck mcp`.

It implements the protocol itself, because clients wait only about a second for a server, and importing the official SDK
takes 0.6 to 2.5 s. Before the first list or call it loads little more than the engine.
"""
