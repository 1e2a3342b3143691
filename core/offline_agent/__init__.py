"""The built-in child agent: pi's JSON mode and flags, real read-only tools, no model, no key, no network.

It imports the standard library and `core.plain` only, so that it starts quickly.
"""

MODEL = "offline/reader"
"""What it answers as, whatever model was asked for: no model is behind it."""

NO_MODEL = f"No model was used: this is the built-in offline reader ({MODEL})."
"""The first line of each answer; where there is room for one line only, the second one tells more."""

TOOL_NAMES = ("read", "grep", "find", "ls")
"""The tools it has, by pi's names."""
