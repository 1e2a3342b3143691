"""The three tools by which parent agents delegate: one schema and one handler each, for every door."""
