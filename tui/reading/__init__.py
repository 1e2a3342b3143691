"""What the transcript pane shows of a run: its files in chunks, laid out where somebody looks."""
