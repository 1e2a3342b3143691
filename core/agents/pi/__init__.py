"""pi as a child: its program, its stream, its models, and the session files that it keeps."""
