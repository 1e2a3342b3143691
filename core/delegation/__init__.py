"""The four tools with which parent agents delegate: one schema and one handler each, for every client.

Based on the engine; the command line and the MCP server import it. It depends on neither of them, nor on any protocol.
"""
