"""Claude Code as a child: its program, its stream, and what it makes of a preset."""
