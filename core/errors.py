"""The tree of errors. Each one says what is wrong, where, and what to do."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Iterable


class SubdeckError(Exception):
    """An error that the user can act on.

    `what` is one plain sentence, `where` a file, key or argument, `hint` the next step; the last two may be empty.
    """

    code = ""
    """Stable name of the error for programs, from `error_codes`; empty if it has none."""

    def __init__(
        self, what: str, *, where: str = "", hint: str = "", brief_hint: str | None = None, code: str = ""
    ) -> None:
        super().__init__(what)
        self.code = code or type(self).code
        self.what = what
        self.where = where
        self.hint = hint
        self.brief_hint = hint if brief_hint is None else brief_hint
        """The hint for a dialog that shows the fields: one line, without lists of choices or command-line options."""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.hint}" if self.hint else text

    @property
    def advice(self) -> str:
        """The problem and the next step in one line, for a reader who can see where."""
        return f"{self.what}; {self.hint}" if self.hint else self.what

    @property
    def brief(self) -> str:
        """The same for a dialog."""
        return f"{self.what}: {self.brief_hint}" if self.brief_hint else self.what


class UsageError(SubdeckError):
    """The request itself is wrong; nothing was started."""


class ContentError(UsageError):
    """A file's content is unusable: its encoding, its YAML, or a value."""

    def __init__(self, what: str, *, line: int | None = None, hint: str = "") -> None:
        super().__init__(what, hint=hint)
        self.line = line
        """Counted from 1; None if no single line is at fault."""

    @property
    def advice(self) -> str:
        return super().advice if self.line is None else f"line {self.line}: {super().advice}"

    def within(self, path: str) -> str:
        """Return `path:line`, or only the path if the line is unknown."""
        return path if self.line is None else f"{path}:{self.line}"


class SettingsError(UsageError):
    """A settings file cannot be used."""

    code = "settings.invalid"


class PresetError(UsageError):
    """A preset is unknown or its file cannot be used."""

    code = "preset.invalid"


class ModelError(UsageError):
    """No model could be resolved."""

    code = "model.invalid"


class AgentUnavailable(UsageError):
    """An agent's program is missing or cannot be executed."""

    code = "agent.unavailable"


class RunnerUnavailable(UsageError):
    """A runner's requirement is missing."""

    code = "runner.unavailable"


class UnknownRun(UsageError):
    """An id matches no run, or several."""

    code = "run.not_found"


class LaunchError(SubdeckError):
    """A valid request could not be started (disk, processes)."""

    code = "launch.failed"


class BudgetExceeded(UsageError):
    """The budget of the day or of the project does not allow a launch; a person may allow it once."""

    code = "budget.exceeded"


class RunBusy(SubdeckError):
    """The request needs a finished run, and this run has not finished."""

    code = "run.busy"


class RunDeleted(SubdeckError):
    """A run's directory was deleted while the run was in use."""

    def __init__(self, when: str = "while waiting for it", *, where: str = "") -> None:
        super().__init__(f"the run was deleted {when}", where=where)


class NotNoted(SubdeckError):
    """The action succeeded, but its undo information could not be written."""


class FollowingFailed(SubdeckError):
    """Runs can no longer be followed; the runs themselves continue."""


def not_for_agents(
    action: str, *, where: str, hint: str = "leave that to the user", kind: type[SubdeckError] = SubdeckError
) -> SubdeckError:
    """Return the error of an agent that tries what only a person may do."""
    return kind(f"an agent cannot {action}", where=where, hint=hint)


_FULL = (errno.ENOSPC, errno.EDQUOT)
_OS_CODES = {
    errno.ENOENT: "file.not_found",
    errno.EACCES: "file.permission_denied",
    **dict.fromkeys(_FULL, "disk.full"),
}
_UNEXPECTED = "internal.unexpected"
_FREE_SPACE = "free space on that disk (df shows it), then try again"


def explained(error: BaseException) -> SubdeckError:
    """Return any error in words for a person: a system error by its reason and path, an unexpected error by its type.
    Never its `str()`, which is written for programmers.
    """
    if isinstance(error, SubdeckError):
        return error
    if isinstance(error, OSError) and error.strerror:
        name = error.filename
        where = os.fsdecode(name) if isinstance(name, (str, bytes)) else ""
        hint = _FREE_SPACE if error.errno in _FULL else ""
        return SubdeckError(error.strerror, where=where, hint=hint, code=_OS_CODES.get(error.errno or 0, ""))
    if isinstance(error, TimeoutError) or type(error).__name__ == "TimeoutExpired":  # raised by subprocess
        return SubdeckError("timed out")
    return SubdeckError(
        f"an unexpected error ({type(error).__name__})", hint="set SUBDECK_LOG=FILE to log details", code=_UNEXPECTED
    )


def reason(error: BaseException) -> str:
    """Return the error for the middle of a sentence, without its hint."""
    fault = explained(error)
    return fault.what if not fault.where or fault.where in fault.what else f"{fault.where}: {fault.what}"


def in_one_line(error: BaseException) -> str:
    """Return the error, its place and its hint in one line."""
    return "; ".join(filter(None, (reason(error), explained(error).hint)))


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6, count: int = 3) -> str:
    """Return "did you mean …?" for the nearest known words, or an empty string."""
    close = nearest_of(word, known, cutoff=cutoff, count=count)
    return f"did you mean {', '.join(close)}?" if close else ""


def nearest_of(word: str, known: Iterable[str], *, cutoff: float = 0.5, count: int = 1) -> list[str]:
    """Return the known words closest to a word, the nearest first."""
    from difflib import get_close_matches  # the wrapper imports this module and never needs it

    return get_close_matches(word, list(known), n=count, cutoff=cutoff)
