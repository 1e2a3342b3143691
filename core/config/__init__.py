"""Settings: small YAML files with line numbers, the kinds of their values, and the effective settings.

Presets read their frontmatter with the same parts. Independent of runs.
"""
