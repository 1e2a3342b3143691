"""Every agent that speaks the Agent Client Protocol; `core/acp_bridge/` is the client that talks to it."""
