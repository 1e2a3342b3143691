"""The four tools by which parent agents delegate: one schema and one handler each, for every client.

Stands on the engine; the command line and the MCP server import from it. It knows neither of them, and no protocol.
"""
