"""What Copilot says itself in the place of its model: errors, retries, and that it was denied something.

Each is a chunk of its own. A request to the model begins with `usage_update`; a further one without a call of a tool
between them goes on with an answer that the length limit cut off, three times at most.
"""

from __future__ import annotations

import re

from ...run.events import Event, Notice, Retry
from ...run.model import NoticeLevel
from ...text.plain import one_line
from ..json_lines import error_words
from ..sentence import Sentence

_RETRIES = re.compile(r"Info: (.*) Retrying\.\.\.\s*")
_CANCELLED = "Info: Operation cancelled by user"
_ERROR = "Error: "
_KNOWN_ERROR = re.compile(
    r"Error: (\d{3}\b|Authentication failed|Model '.*' not found|Failed to get response|No response was returned)"
    r"|Error: .*\(HTTP \d{3}\)",
    re.DOTALL,
)
EMPTY = "No response was returned"
"""How the error of an empty answer begins."""
MOST_TRIES = 3
"""Requests for one answer: after so many the program takes it as it is."""


class Notes:
    """Takes the chunks of a turn; what the model wrote stays in the sentence, what the program did comes as events."""

    def __init__(self, writing: Sentence) -> None:
        self._writing = writing
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self.error = ""
        """The text of an error that nothing came after."""
        self._before = ""
        """What was written before the request at work."""
        self._requests = 0
        """For the answer that is being written."""
        self._is_retried = False
        self._has_text = False
        """Whether something came of the request at work."""
        self._tries = 0

    @property
    def is_certain(self) -> bool:
        """Whether the error is one that the program is known to write."""
        return _KNOWN_ERROR.match(self.error) is not None

    @property
    def words(self) -> str:
        return error_words(self.error.removeprefix(_ERROR).strip())

    @property
    def is_cut(self) -> bool:
        """Whether the program has given up to ask for the rest of the answer."""
        return self._requests >= MOST_TRIES

    @property
    def is_empty(self) -> bool:
        """Whether nothing came of the last request."""
        return self._requests > 0 and not self._has_text

    def asked(self) -> None:
        """Take the beginning of a request to the model."""
        if not self._is_retried:
            self._requests += 1
        self._is_retried = self._has_text = False
        self._before = self._writing.whole()

    def called(self) -> None:
        """Take a call of a tool: the next request is for another answer."""
        self._requests = 0
        self._has_text = True

    def take(self, text: str) -> list[Event] | None:
        """Return the events of a chunk of the program; None for text of the model."""
        if retry := _RETRIES.fullmatch(text):
            self.error = ""
            self._writing.clear()
            self._writing.add_text(self._before)
            self._is_retried = True
            self._tries += 1
            reason = one_line(error_words(retry[1]), 400)
            return [Retry(attempt=self._tries, max_attempts=0, delay_ms=0, reason=reason)]
        if text.strip() == _CANCELLED:
            return [Notice(level=NoticeLevel.INFO, text=text.strip().removeprefix("Info: "))]
        if self.error:
            self._writing.add_text(self.error)  # the model goes on after it, so that it is the model's
            self.error = ""
        elif text.startswith(_ERROR) and (not self._has_text or _KNOWN_ERROR.match(text)):
            self.error = text
            return []
        self._has_text = self._has_text or bool(text.strip())
        return None
