"""One tree of errors; each says what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable


class SubdeckError(Exception):
    """Something the user can act on.

    `what` is one plain sentence, `where` a file, key or argument, `hint` the next step; the last two may be empty.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text

    @property
    def advice(self) -> str:
        """What is wrong and what to do, in one line, for a reader who can see where."""
        return f"{self.what}; {self.hint}" if self.hint else self.what


class UsageError(SubdeckError):
    """Nothing was started: the request itself is wrong."""


class ContentError(UsageError):
    """What a file holds cannot be used: its encoding, its YAML, or a value in it."""

    def __init__(self, what: str, *, line: int | None = None, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.line = line
        """Counted from 1; None where no single line is at fault."""

    @property
    def advice(self) -> str:
        return super().advice if self.line is None else f"line {self.line}: {super().advice}"

    def within(self, path: str) -> str:
        """Return `path:line`, or the path alone where the line is not known."""
        return path if self.line is None else f"{path}:{self.line}"


class SettingsError(UsageError):
    """A settings file cannot be used."""


class PresetError(UsageError):
    """A preset is unknown or its file cannot be used."""


class ModelError(UsageError):
    """No model could be resolved."""


class AgentUnavailable(UsageError):
    """The program of a child agent is missing or cannot be executed."""


class RunnerUnavailable(UsageError):
    """What a runner needs is missing."""


class UnknownRun(UsageError):
    """An id stands for no run, or for more than one."""


class LaunchError(SubdeckError):
    """A run could not be started although the request was right (disk, processes)."""


class RunBusy(SubdeckError):
    """The request needs a finished run, and this one has not ended."""


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.5, count: int = 3) -> str:
    """Return "did you mean …?" for the nearest known words, or an empty string."""
    from difflib import get_close_matches  # the wrapper imports this module and never needs it

    close = get_close_matches(word, list(known), n=count, cutoff=cutoff)
    return f"did you mean {', '.join(close)}?" if close else ""
