"""Settings: small YAML texts with line numbers, the kinds of values in them, and what is in force.

Presets read their frontmatter with the same parts. Knows nothing of runs.
"""
