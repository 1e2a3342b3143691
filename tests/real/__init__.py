"""Real agents (pi, Claude Code, Codex, and the last two behind the Agent Client Protocol) whose model is a script.

`model_server` answers them on loopback, in the protocol of each. `programs` configures its address in each. A `Lab` has
one of them run presets in a project. `fixtures` makes labs for tests.

Scripted agents, which need no model, are in `tests/children/scripted`; `tests/contract` drives those.
"""
