"""A client of the Agent Client Protocol for one task: it starts an agent, asks it, and passes on what the agent says.

The engine knows it by its command line only; of ours it imports nothing. The official SDK speaks the protocol here, in
a process of its own, so that the wrapper stays small.
"""
