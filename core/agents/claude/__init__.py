"""Claude Code as an agent: its program, its stream, and how it applies a preset."""
