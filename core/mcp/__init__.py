"""The server for clients of the Model Context Protocol: `subdeck mcp`.

The only package that knows asyncio and the SDK. Nothing but that command imports it: the SDK costs about a second and
60 MB.
"""
