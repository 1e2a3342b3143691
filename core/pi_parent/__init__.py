"""pi as a parent: the extension and prompts with which a pi session delegates, and their installation.

The command line imports `installer`. It knows pi's directories, but no runs: the extension calls `subdeck tool`.
"""
