"""Search a text in all runs: the input line, the hits as they come, and the filter's `text:`.

The engine does the search; this package parses queries, and shows and opens hits.
"""
