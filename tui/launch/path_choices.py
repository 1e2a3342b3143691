"""What a path that is being typed can go on to; looks at the disk."""

from __future__ import annotations

import os

ENTRIES = 5000
"""Of how many entries of a directory the names are looked at."""


def matching_paths(typed: str, base: str, *, files: bool) -> tuple[str, ...]:
    """Answer the directories, with `files` the files too, whose paths begin as typed; directories end in a slash.

    `~` is the home directory, what is relative starts at `base`. Names that begin with a dot are answered only where
    one is typed; those that a screen cannot show as they are not at all.
    """
    if typed == "~":
        return ("~/",)
    head, beginning = typed[: typed.rfind("/") + 1], typed[typed.rfind("/") + 1 :]
    try:
        with os.scandir(os.path.join(base, os.path.expanduser(head))) as entries:
            found = [
                name + ("/" if is_directory else "")
                for _, entry in zip(range(ENTRIES), entries, strict=False)
                if (name := entry.name).startswith(beginning)
                and name.isprintable()
                and name.startswith(".") <= beginning.startswith(".")
                and ((is_directory := entry.is_dir()) or files)
            ]
    except OSError:
        return ()
    return tuple(head + name for name in sorted(found, key=str.lower))
