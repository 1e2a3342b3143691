"""pi as a parent: the extension and the prompts that a pi session delegates with, and how they are installed."""
