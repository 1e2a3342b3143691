"""All agents that use the Agent Client Protocol (ACP); `core/acp_bridge/` is the client that connects to them."""
