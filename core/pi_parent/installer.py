"""Install the pi extension and its prompt templates, and remove exactly the installed files."""

from __future__ import annotations

import json
import os
import re
import sys
from enum import StrEnum

from msgspec import Struct

from ..errors import SubdeckError, UsageError
from ..paths import hex_digest
from ..system.files import make_private_directory, write_whole

EXTENSION = "subdeck.ts"
PROMPTS = ("inspect.md", "plan.md", "implement.md", "review.md", "revise.md")

_HERE = os.path.dirname(os.path.abspath(__file__))
_COMMAND = 'const COMMAND: string[] = ["subdeck"];'
_MARKED = "put here by `subdeck connect pi`, {digest}; `subdeck disconnect pi` takes it away\n"
_MARKED_BEFORE = "put here by `subdeck pi install`, {digest}; `subdeck pi uninstall` takes it away\n"
"""The mark of 0.1."""
_MARKS = "|".join(marked.format(digest="([0-9a-f]{16})") for marked in (_MARKED, _MARKED_BEFORE))
_MARK = re.compile(f"^(?://|#) (?:{_MARKS})", re.MULTILINE)


class State(StrEnum):
    """The state of the path of one of subdeck's files."""

    ABSENT = "absent"
    CURRENT = "current"
    OUTDATED = "outdated"
    """subdeck's file, of another version or with another command."""
    EDITED = "edited"
    """subdeck's file, edited by someone else."""
    FOREIGN = "not ours"


class InstalledFile(Struct, frozen=True):
    """A file's intended path and content."""

    path: str
    content: str

    @property
    def state(self) -> State:
        if not os.path.lexists(self.path):
            return State.ABSENT
        if os.path.islink(self.path) or not os.path.isfile(self.path):
            return State.FOREIGN
        with open(self.path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        mark = _MARK.search(text)
        if mark is None:
            return State.FOREIGN
        if hex_digest((text[: mark.start()] + text[mark.end() :]).encode(), 16) != (mark[1] or mark[2]):
            return State.EDITED
        return State.CURRENT if text == self.content else State.OUTDATED

    def put(self) -> bool:
        """Write the file unless an edited or unknown one exists; return False in that case. Raises OSError."""
        state = self.state
        if state in (State.ABSENT, State.OUTDATED):
            make_private_directory(os.path.dirname(self.path))
            write_whole(self.path, self.content.encode())
        return state not in (State.EDITED, State.FOREIGN)

    def take_away(self) -> bool:
        """Remove the file if it is unedited; return False if it was missing or kept. Raises OSError."""
        if self.state not in (State.CURRENT, State.OUTDATED):
            return False
        os.unlink(self.path)
        return True


class Installation(Struct, frozen=True):
    """subdeck's files in a directory of pi: its own, or the `.pi` of a project."""

    extension: InstalledFile
    prompts: tuple[InstalledFile, ...]

    @property
    def files(self) -> tuple[InstalledFile, ...]:
        return (self.extension, *self.prompts)

    @property
    def is_there(self) -> bool:
        return self.extension.state not in (State.ABSENT, State.FOREIGN)

    def install(self) -> tuple[str, ...]:
        """Install all files; return the paths of templates that were kept because they are not subdeck's or were
        edited.

        Raises UsageError, before any write, if another file is in the extension's place.
        """
        state = self.extension.state
        if state in (State.EDITED, State.FOREIGN):
            why = "it was edited" if state is State.EDITED else "subdeck did not create it"
            what = f"cannot install the extension: a file is in its place, and {why}"
            raise UsageError(what, where=self.extension.path, hint="move it out of the way, then try again")
        self.extension.put()
        return tuple(prompt.path for prompt in self.prompts if not prompt.put())

    def uninstall(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Remove unedited files; return the removed paths, and the paths kept because of edits."""
        edited = tuple(file.path for file in self.files if file.state is State.EDITED)
        return tuple(file.path for file in self.files if file.take_away()), edited


def installation(directory: str, command: tuple[str, ...] | None = None) -> Installation:
    """Return the files for a directory of pi; raises SubdeckError if files of this package are missing or damaged."""
    code = _read(EXTENSION)
    if code.count(_COMMAND) != 1:
        raise SubdeckError("the extension of this subdeck is damaged", where=EXTENSION, hint="install subdeck again")
    words = json.dumps(list(command or own_command()))
    extension = InstalledFile(
        os.path.join(directory, "extensions", EXTENSION),
        _marked(code.replace(_COMMAND, f"const COMMAND: string[] = {words};"), "//", after=""),
    )
    # In a prompt, the mark is a comment in the frontmatter, which the model never sees.
    prompts = {name: _marked(_read(os.path.join("prompts", name)), "#", after="---\n") for name in PROMPTS}
    return Installation(
        extension,
        tuple(InstalledFile(os.path.join(directory, "prompts", name), text) for name, text in prompts.items()),
    )


def own_command() -> tuple[str, ...]:
    """Return the command that starts this installation of subdeck from anywhere."""
    return (os.path.abspath(sys.executable), "-P", "-E", "-m", "subdeck.tui.main")


def _marked(text: str, comment: str, *, after: str) -> str:
    return after + f"{comment} {_MARKED.format(digest=hex_digest(text.encode(), 16))}" + text.removeprefix(after)


def _read(name: str) -> str:
    path = os.path.join(_HERE, name)
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise SubdeckError("a file of subdeck is missing", where=path, hint="install subdeck again") from error
