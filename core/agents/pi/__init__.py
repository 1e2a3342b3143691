"""pi as an agent: its program, its stream, its models, and its session files."""
