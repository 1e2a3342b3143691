"""Small files in which it is remembered what a user chose, in the user's own state directory."""

from __future__ import annotations

import os

from ..paths import user_state_dir
from ..text.digest import hex_digest
from .files import make_private_directory, write_whole


def state_file(*names: str) -> str:
    """Return the path of such a file; it may not be there."""
    return os.path.join(user_state_dir(), *names)


def name_of_project(root: str) -> str:
    """Return the name of a file that is about one project: 16 hex digits, whatever the project's path is."""
    return hex_digest(os.fsencode(os.path.realpath(root)), 16)


def write_state(path: str, content: bytes) -> None:
    """Write such a file whole, in directories that nobody else can look into. Raises OSError.

    No two threads may do so for one file at the same time.
    """
    make_private_directory(os.path.dirname(path))
    write_whole(path, content)
