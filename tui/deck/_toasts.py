"""Report finished runs: one toast each or one for several, never more than three on the screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from time import monotonic
from typing import Any, cast

from textual.screen import ModalScreen
from textual.widget import Widget

from ...core.config.settings import Notifications
from ...core.run.columns import about
from ...core.run.describe import doing, runs_word, state
from ...core.run.need import has_failed
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ...core.text.visible import recounted
from ..terminal.escapes import notification, through_tmux
from ..terminal.textual_internals import set_timer, write_to_terminal
from ..text.cells import cells as width_of
from ..toasts import TOASTS_ON_SCREEN, ToastList

SECONDS = 6.0
"""Time that a toast stays."""
SECONDS_OF_WARNING = 12.0
SECONDS_IN_SIGHT = 3.0
"""The same if the run's transcript is on the screen."""
GATHER_S = 0.2
"""Wait for more runs that finish at the same time."""
DIALOG_POLL_S = 0.5
"""Between two checks for a closed dialog, only while a result is waiting."""
LINES = 4
"""Lines of one toast; further runs are counted."""
CELLS = 56
"""Cells of a line on a wide screen."""
REQUESTS = "requests"
"""Kind of the toasts about requests; one is on the screen at a time."""
LEAST_TASK = 20
"""Cells of a task that matter more than its preset."""
LEAST_CELLS = 16
"""Cells of a run's activity, in a line with others."""
COUNT_CELLS = 4
"""Cells at the end of a line for the number of equal ones."""
WRAP_CELLS = 8
"""Cells that wrapping may leave empty at the end of a line."""


class Toasts:
    """Holds results back while a dialog is open or the screen is full, and reports them together later."""

    def __init__(self, node: Widget, settings: Notifications, toasts: ToastList) -> None:
        self._node = node
        self.settings = settings
        """Replaced if the settings were read again."""
        self._list = toasts
        self._waiting: list[RunSnapshot] = []
        self._in_sight: str | None = None
        self._leaving: list[float] = []
        """When each toast on the screen disappears."""
        self._armed = False

    def report(
        self, ended: Sequence[RunSnapshot], *, looked_at: Collection[str] = (), in_sight: str | None = None
    ) -> None:
        """Report these finished runs, except runs being read; the run whose transcript is in sight gets few words.

        The bell and the desktop reach you elsewhere: they get every batch, even if no toast is shown.
        """
        if ended:
            self._alert(ended)
        self._in_sight = in_sight
        if not self.settings.toasts:
            self._note(ended)
            return
        self._note(run for run in ended if run.run_id in looked_at)
        self._waiting.extend(run for run in ended if run.run_id not in looked_at)
        if self._waiting and not self._armed:
            self._arm(GATHER_S)

    def ask(self, asked: Sequence[RunSnapshot], *, in_sight: str | None, at_start: bool = False) -> None:
        """Report requests at once: these runs are waiting. Requests from before the start (`at_start`) are only
        counted.
        """
        if not at_start:
            self._alert(asked)
        text = requests_text(asked, min(CELLS, self._node.app.size.width // 2 - 4), named=not at_start)
        if not self.settings.toasts or [run.run_id for run in asked] == [in_sight]:
            self._list.add(text, "warning")
            return
        app = cast(Any, self._node.app)  # its toasts have a kind
        app.notify(text, severity="warning", timeout=SECONDS, markup=False, kind=REQUESTS)

    def warn(self, text: str) -> None:
        """Warn you at once, even if you are looking elsewhere."""
        if self.settings.bell:
            self._node.app.bell()
        if self.settings.desktop != "off":
            sequence = through_tmux(notification(self.settings.desktop, "subdeck", text))
            write_to_terminal(self._node, sequence)
        if self.settings.toasts:
            self._node.notify(text, severity="warning", timeout=SECONDS_OF_WARNING, markup=False)
        else:
            self._list.add(text, "warning")

    def tell_hosts(self, lost: Sequence[str], back: Sequence[str]) -> None:
        """Report lost hosts, with bell and desktop, and hosts that are back."""
        for text in lost:
            self.warn(text)
        for text in back:
            if self.settings.toasts:
                self._node.notify(text, timeout=SECONDS, markup=False)
            else:
                self._list.add(text, "information")

    def _alert(self, runs: Sequence[RunSnapshot]) -> None:
        """Ring, and notify the desktop, that these runs have finished or need input."""
        if self.settings.bell:
            self._node.app.bell()
        if self.settings.desktop != "off":
            title = "subdeck" if len(runs) > 1 else _who(runs[0])
            what = "finished" if runs[0].has_ended else "need input"
            body = f"{runs_word(len(runs))} {what}" if len(runs) > 1 else doing(runs[0], 160)
            sequence = through_tmux(notification(self.settings.desktop, title, body))
            write_to_terminal(self._node, sequence)

    def _arm(self, seconds: float) -> None:
        self._armed = True
        set_timer(self._node, seconds, self._show)

    def _show(self) -> None:
        self._armed = False
        now = monotonic()
        self._leaving = [leaves for leaves in self._leaving if leaves > now]
        if isinstance(self._node.app.screen, ModalScreen):
            self._arm(DIALOG_POLL_S)
            return
        if len(self._leaving) >= TOASTS_ON_SCREEN:
            self._arm(min(self._leaving) - now)
            return
        ended, self._waiting = self._waiting, []
        in_sight = [run.run_id for run in ended] == [self._in_sight]
        seconds = SECONDS_IN_SIGHT if in_sight else SECONDS
        self._leaving.append(now + seconds)
        failed = any(map(has_failed, ended))
        cells = min(CELLS, self._node.app.size.width // 2 - 4)
        text = _who(ended[0], cells) if in_sight else ends_text(ended, cells)
        self._note([] if in_sight else only_counted(ended, cells))
        self._node.notify(text, severity="error" if failed else "information", timeout=seconds, markup=False)

    def _note(self, runs: Iterable[RunSnapshot]) -> None:
        """Add results that no toast names to the list of messages."""
        for run in runs:
            severity = "error" if has_failed(run) else "information"
            self._list.add(ends_text([run]), severity)


def requests_text(asked: Sequence[RunSnapshot], cells: int = CELLS, *, named: bool = True) -> str:
    """Return the runs that need input and their requests; several with a line each."""
    if len(asked) == 1 and named:
        return f"{_who(asked[0], cells)}\n{doing(asked[0], 2 * cells - WRAP_CELLS)}"
    head = f"{runs_word(len(asked))} {'needs' if len(asked) == 1 else 'need'} input"
    if not named:
        return f"{head}."
    lines = [_line(run, cells) for run in asked[: LINES - 1]]
    more = [f"and {runs_word(len(asked) - len(lines))} more"] if len(asked) > len(lines) else []
    return "\n".join((f"{head}:", *lines, *more))


def ends_text(ended: Sequence[RunSnapshot], cells: int = CELLS) -> str:
    """Return the finished runs and their results: one in two lines, several with a line each, equal lines once."""
    if len(ended) == 1:
        return f"{_who(ended[0], cells)}\n{doing(ended[0], 2 * cells - WRAP_CELLS)}"
    alike = Counter(_lines(ended, cells))
    lines = [line if count == 1 else f"{line} ×{count}" for line, count in alike.items()][:LINES]
    if omitted := sum(list(alike.values())[LINES:]):
        lines.append(f"and {runs_word(omitted)} more")
    return "\n".join(lines)


def only_counted(ended: Sequence[RunSnapshot], cells: int) -> list[RunSnapshot]:
    """Return the runs that `ends_text` does not name."""
    lines = _lines(ended, cells)
    named = list(dict.fromkeys(lines))[:LINES]
    return [run for run, line in zip(ended, lines, strict=True) if line not in named]


def unseen_text(runs: Sequence[RunSnapshot]) -> str:
    """Sum up in one line the runs that finished while you were away; a second line names a single one."""
    counts = Counter("recorded by a newer subdeck" if run.newer_schema else run.status.value for run in runs)
    words = [f"{counts[word]} {word}" for word in sorted(counts, key=_WORDS.index)]
    named = f"\n{_who(runs[0])}" if len(runs) == 1 else ""
    return f"While you were away, {runs_word(len(runs))} finished: {', '.join(words)}.{named}"


_WORDS = ("completed", "failed", "aborted", "recorded by a newer subdeck")


def _lines(runs: Sequence[RunSnapshot], cells: int) -> list[str]:
    """Return a line for each run with its task; with its preset if that makes too many lines few enough."""
    lines = [_line(run, cells) for run in runs]
    if len(set(lines)) <= LINES:
        return lines
    by_preset = [_line(run, cells, name=one_line(run.meta.preset, cells // 3)) for run in runs]
    return by_preset if len(set(by_preset)) <= LINES else lines


def _line(run: RunSnapshot, cells: int, name: str = "") -> str:
    who = f"{state(run)}  {name or _cut(about(run), cells // 3)}: "
    room = cells - COUNT_CELLS
    line = who + doing(run, max(LEAST_CELLS, room - len(who)))
    return recounted(line, room, width_of) if run.is_waiting else _cut(line, room)


def _who(run: RunSnapshot, cells: int = CELLS) -> str:
    """Name a run by its task, with the preset before it if there is room."""
    shown, preset, task = state(run), one_line(run.meta.preset, 40), about(run)
    room = cells - len(shown) - 2
    task_room = room - len(preset) - 3
    if preset and (len(task) <= task_room or task_room >= LEAST_TASK):
        return f"{shown}  {preset} ▸ {_cut(task, task_room)}"
    return f"{shown}  {_cut(task, room)}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1].rstrip()}…"
