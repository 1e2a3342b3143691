"""Tell the ends of runs: one toast each, several in one, never more than three on the screen."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from textual.widget import Widget

from ...core.config.settings import Notifications
from ...core.run.describe import doing, runs_word, state
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ..notices import TOASTS_ON_SCREEN, Notices
from ..runs.store import needs_operator
from ..terminal.escapes import notification, through_tmux
from ..terminal.textual_internals import write_to_terminal

if TYPE_CHECKING:
    from textual.app import App

SECONDS = 6.0
"""How long one stays."""
BRIEFLY = 3.0
"""The same for a run whose transcript says it too."""
GATHER = 0.2
"""Seconds to wait for others that end at the same time."""
DIALOG_GLANCE = 0.5
"""Seconds between two looks whether a dialog has closed, only while an end waits for that."""
LINES = 4
"""Lines of one toast; further runs are counted."""
CELLS = 56
"""Of a line where there is room."""
COUNT = 4
"""Cells at its end for how many are alike."""
WASTED = 8
"""Cells that the end of a word may leave empty where a text goes on in the next line."""


class Toasts:
    """Holds ends back while the screen is full and tells them together when there is room."""

    def __init__(
        self,
        node: Widget,
        wishes: Notifications,
        notices: Notices,
        clock: Callable[[], float] = time.monotonic,
        *,
        in_dialog: Callable[[], bool] = lambda: False,
        cells: Callable[[], int] = lambda: CELLS,
    ) -> None:
        """`in_dialog` says whether a dialog is open, which no toast comes over; `cells` how long a line may be."""
        self._node = node
        self._wishes = wishes
        self._notices = notices
        self._clock = clock
        self._in_dialog = in_dialog
        self._cells = cells
        self._waiting: list[RunSnapshot] = []
        self._in_sight: str | None = None
        self._leaving: list[float] = []
        """When each toast on the screen goes."""
        self._armed = False

    def tell(self, ended: Sequence[RunSnapshot], *, looked_at: str | None = None, in_sight: str | None = None) -> None:
        """Tell these ends, but for the run that is being read; that whose transcript is in sight gets few words.

        The bell and the desktop are for somebody who looks elsewhere: they tell each batch, whatever is on the screen.
        """
        if ended:
            self._tell_elsewhere(ended)
        self._in_sight = in_sight
        if not self._wishes.toasts:
            self._note(ended)
            return
        self._note(run for run in ended if run.run_id == looked_at)
        self._waiting.extend(run for run in ended if run.run_id != looked_at)
        if self._waiting and not self._armed:
            self._arm(GATHER)

    def _tell_elsewhere(self, ended: Sequence[RunSnapshot]) -> None:
        if self._wishes.bell:
            self._node.app.bell()
        if self._wishes.desktop != "off":
            title = "subdeck" if len(ended) > 1 else _who(ended[0])
            body = f"{runs_word(len(ended))} ended" if len(ended) > 1 else doing(ended[0], 160)
            sequence = through_tmux(notification(self._wishes.desktop, title, body))
            write_to_terminal(cast("App[Any]", self._node.app), sequence)

    def _arm(self, seconds: float) -> None:
        self._armed = True
        self._node.set_timer(seconds, self._show)

    def _show(self) -> None:
        self._armed = False
        now = self._clock()
        self._leaving = [leaves for leaves in self._leaving if leaves > now]
        if self._in_dialog():
            self._arm(DIALOG_GLANCE)
            return
        if len(self._leaving) >= TOASTS_ON_SCREEN:
            self._arm(min(self._leaving) - now)
            return
        ended, self._waiting = self._waiting, []
        known = [run.run_id for run in ended] == [self._in_sight]
        seconds = BRIEFLY if known else SECONDS
        self._leaving.append(now + seconds)
        failed = any(map(needs_operator, ended))
        text = _who(ended[0]) if known else ends_text(ended, self._cells())
        self._note([] if known else untold(ended, self._cells()))
        self._node.notify(text, severity="error" if failed else "information", timeout=seconds, markup=False)

    def _note(self, untold: Iterable[RunSnapshot]) -> None:
        """Keep ends that no toast names in the list of messages."""
        for run in untold:
            severity = "error" if needs_operator(run) else "information"
            self._notices.add(ends_text([run]), severity)


def ends_text(ended: Sequence[RunSnapshot], cells: int = CELLS) -> str:
    """Say which runs ended and how: one with what two lines hold, several in a line each, those alike in one."""
    if len(ended) == 1:
        return f"{_who(ended[0])}\n{doing(ended[0], 2 * cells - WASTED)}"
    alike = Counter(_line(run, cells) for run in ended)
    lines = [line if count == 1 else f"{line} ×{count}" for line, count in alike.items()][:LINES]
    if rest := sum(list(alike.values())[LINES:]):
        lines.append(f"and {runs_word(rest)} more")
    return "\n".join(lines)


def untold(ended: Sequence[RunSnapshot], cells: int = CELLS) -> list[RunSnapshot]:
    """Return those that the text of all these only counts."""
    named = list(dict.fromkeys(_line(run, cells) for run in ended))[:LINES]
    return [run for run in ended if _line(run, cells) not in named]


def unseen_text(runs: Sequence[RunSnapshot]) -> str:
    """Sum up in one line what ended while nobody looked."""
    counts = Counter("recorded by a newer subdeck" if run.newer_schema else run.status.value for run in runs)
    words = [f"{counts[word]} {word}" for word in sorted(counts, key=_WORDS.index)]
    return f"While you were away {runs_word(len(runs))} ended: {', '.join(words)}."


_WORDS = ("completed", "failed", "aborted", "recorded by a newer subdeck")


def _line(run: RunSnapshot, cells: int) -> str:
    line, room = f"{_who(run)}: {doing(run, CELLS)}", cells - COUNT
    return line if len(line) <= room else f"{line[: room - 1].rstrip()}…"


def _who(run: RunSnapshot) -> str:
    return f"{state(run)}  {one_line(run.meta.title, 40)}"
