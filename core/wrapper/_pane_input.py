"""The input line at the foot of a run's pane, for messages and for replies to the agent's requests.

Input goes into the run's inbox like any message; the agent never gets a key.
"""

from __future__ import annotations

import codecs
import os
import time
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import SubdeckError
from ..run.inbox import LONGEST_TEXT, EntryKind, InboxClosed, put
from ..run.model import RequestKind, Verdict
from ..run.requests import request_hash
from ._terminal import listen

if TYPE_CHECKING:
    from ..run.events import Request

BY = "the pane"
"""Sender of input from the pane."""
MOST = LONGEST_TEXT // 4
"""Characters of a line; further input is dropped."""
VISIBLE_S = 0.4
"""Seconds that a request must be in the pane before a key answers it: earlier keys were meant for another."""
_ERASE, _PASTE_ON, _PASTE_OFF = b"\r\x1b[K", b"\x1b[?2004h", b"\x1b[?2004l"
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_BELL = b"\a"
_MARK = "› "
_LEAVE = "? y allow, n deny, e deny with a reason "
_LEAVE_RUN = "? y allow, Y allow in this run, n deny, e deny with a reason "
_DENIED = "reason for denying › "
_REPLY = "reply › "
_NEW_LINE = "⏎"
_VERDICTS = {"y": Verdict.ALLOW, "Y": Verdict.ALLOW_RUN, "n": Verdict.DENY}


class Foot:
    """One run's line; the pane is this process's terminal."""

    def __init__(
        self,
        run_dir: str,
        show: Callable[[bytes], None],
        asked: Callable[[], Request | None],
        *,
        terminal: int = 0,
        delay: float = VISIBLE_S,
    ) -> None:
        """`show` writes to the pane, `asked` returns the current request; `delay` defaults to `VISIBLE_S`."""
        self.descriptor = terminal
        self._run_dir = run_dir
        self._show = show
        self._asked = asked
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line = ""
        self._answered: Request | None = None
        """The request when the line was begun."""
        self._is_denying = False
        self._is_pasting = False
        self._escape = ""
        """Start of an escape sequence from a key or the terminal."""
        self._is_open = True
        self._delay = delay
        self._seen: tuple[Request | None, float] = (None, 0.0)
        """The request, and since when it is in the pane."""
        refused = listen(self.descriptor)
        self._show(_PASTE_ON)
        if refused:
            self.show(b"[what was typed before the run had started was not sent]\n")

    def show(self, piece: bytes) -> None:
        """Show a piece of transcript above the line."""
        self._show(_ERASE + piece + self._drawn() if self._is_open else piece)

    def read(self) -> bool:
        """Read input; return False if no more can come."""
        try:
            typed = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return True
        except OSError:
            return False
        for sign in self._decoder.decode(typed):
            self._type(sign)
        self._redraw()
        return bool(typed)

    def close(self) -> None:
        """Accept no more input: the run has ended."""
        self._show(_ERASE + _PASTE_OFF)
        self._is_open = False

    # --- keys ---

    def _type(self, sign: str) -> None:
        if self._escape:
            self._continue_escape(sign)
            return
        request = self._asked()
        match sign:
            case "\x1b":
                self._escape = sign
            case "\r" | "\n" if self._is_pasting:
                self._add("\n")
            case "\r" | "\n":
                self._send(request)
            case "\x7f" | "\b":
                self._line = self._line[:-1]
            case "\x15":
                self._line, self._is_denying = "", False
            case "\x17":
                self._line = "".join(self._line.rstrip().rpartition(" ")[:2])
            case _ if self._answers(request, sign):
                pass
            case _ if sign.isprintable() or sign == "\t":
                self._add(sign)
            case _:
                pass

    def _continue_escape(self, sign: str) -> None:
        """Read the rest of a sequence: the start or end of a paste; others are ignored."""
        self._escape += sign
        if len(self._escape) == 2 and sign in "[O":
            return
        if len(self._escape) > 2 and not sign.isalpha() and sign != "~" and len(self._escape) < 20:
            return
        if self._escape in (_PASTE_BEGINS, _PASTE_ENDS):
            self._is_pasting = self._escape == _PASTE_BEGINS
        self._escape = ""

    def _add(self, sign: str) -> None:
        if not self._line and not self._is_denying:
            self._answered = self._asked()
        if len(self._line) < MOST:
            self._line += sign

    def _answers(self, request: Request | None, sign: str) -> bool:
        """Answer a permission request with one key, if the line is empty; return whether the key did."""
        is_asked = request is not None and request.kind is RequestKind.PERMISSION
        if not is_asked or self._line or self._is_denying or self._is_pasting or request is None:
            return False
        if sign == "e":
            self._is_denying, self._answered = True, request
            return True
        verdict = _VERDICTS.get(sign)
        if verdict is None or (verdict is Verdict.ALLOW_RUN and not request.run_rule):
            return False
        if self._is_new(request):
            self._show(_BELL)
        else:
            self._put(EntryKind.REPLY, request=request, verdict=verdict)
        return True

    def _is_new(self, request: Request | None) -> bool:
        """Whether the request has not been in the pane for long enough."""
        now = time.monotonic()
        if request is not self._seen[0]:
            self._seen = (request, now)
        return now - self._seen[1] < self._delay

    def _send(self, request: Request | None) -> None:
        text, self._line = self._line.strip(), ""
        is_denying, self._is_denying = self._is_denying, False
        if (is_denying or text) and request is not self._answered:
            self._answered = request
            self._refuse("the request has changed", text)
        elif is_denying and request is not None:
            self._put(EntryKind.REPLY, request=request, verdict=Verdict.DENY, text=text)
        elif text and request is not None and request.kind is not RequestKind.PERMISSION:
            self._put(EntryKind.REPLY, request=request, verdict=Verdict.REPLY, text=_chosen(request, text))
        elif text:
            self._put(EntryKind.MESSAGE, text=text)

    def _put(
        self, kind: EntryKind, *, text: str = "", request: Request | None = None, verdict: Verdict | None = None
    ) -> None:
        asked = request.id if request else ""
        read = request_hash(os.path.basename(self._run_dir), request) if request else ""
        try:
            put(self._run_dir, kind, by=BY, text=text, request=asked, verdict=verdict, read=read)
        except InboxClosed:
            self._refuse("the run accepts no more input", text)
        except (OSError, SubdeckError) as error:
            self._refuse(getattr(error, "strerror", None) or str(error), text)

    def _refuse(self, why: str, text: str) -> None:
        self._line = text
        self.show(f"[not sent: {why}]\n".encode("utf-8", "replace"))

    # --- the line ---

    def _redraw(self) -> None:
        if self._is_open:
            self._show(_ERASE + self._drawn())

    def _drawn(self) -> bytes:
        request = self._asked()
        self._is_new(request)
        prompt = _DENIED if self._is_denying else self._prompt(request)
        try:
            width = os.get_terminal_size(self.descriptor).columns or 80
        except OSError:
            width = 80
        line = self._line.replace("\n", _NEW_LINE).replace("\t", " ")
        return (prompt + _end(line, max(8, width - len(prompt) - 1))).encode("utf-8", "replace")

    def _prompt(self, request: Request | None) -> str:
        if request is None:
            return _MARK
        if request.kind is not RequestKind.PERMISSION:
            return _REPLY
        if self._line:
            return _MARK
        return (_LEAVE_RUN if request.run_rule else _LEAVE) + _MARK


def _chosen(request: Request, text: str) -> str:
    """Return a reply's meaning; a choice may be a number."""
    if text.isdecimal() and 0 < int(text) <= len(request.choices):
        return request.choices[int(text) - 1]
    return text


def _end(line: str, width: int) -> str:
    """Return the end of a line that fits into `width` cells."""
    cells = 0
    for number in range(len(line) - 1, -1, -1):
        cells += 2 if unicodedata.east_asian_width(line[number]) in "WF" else 1
        if cells > width:
            return line[number + 1 :]
    return line
