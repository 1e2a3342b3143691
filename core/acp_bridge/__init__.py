"""An ACP client for one task: it starts an agent, sends the task, and passes on the agent's messages.

The engine only uses its command line; it imports nothing of subdeck. The official SDK runs in this separate process, so
that the wrapper stays small.
"""
