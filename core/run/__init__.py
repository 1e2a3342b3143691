"""One run: its types, its files, its events, and the sums over them.

Every other package may import it; it imports only `system`, `text`, `agent_kinds`, `paths` and `errors`.
"""
