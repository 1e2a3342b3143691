"""The door for clients of the Model Context Protocol: `subdeck mcp`.

The only package that knows asyncio and the SDK, and loaded by that command alone: importing the SDK costs about a
second and 60 MB.
"""
