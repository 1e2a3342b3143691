"""The server for clients of the Model Context Protocol: `subdeck mcp`.

It speaks the protocol itself, because clients wait only about a second for a server: the official SDK alone takes
0.6 to 2.5 s to import. Before the first list or call it loads little more than the engine.
"""
