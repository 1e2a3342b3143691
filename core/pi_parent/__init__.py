"""pi as a parent: the extension and the prompts that a pi session delegates with, and how they are installed.

The command line imports `installer`. It knows pi's directories, and nothing of runs: the extension calls
`subdeck tool`.
"""
