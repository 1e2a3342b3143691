"""The first line: project, agent, needs, runs and costs; and the last line: background runs and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.events import Click
from textual.reactive import reactive
from textual.widget import Widget

from ...core.run.describe import NOTHING, background_counts, known_cost, runs_word, short_cost, tokens
from ...core.run.need import Need
from ...core.run.snapshot import Counts
from ...core.text.plain import one_line
from ..keys.keymap import Hint
from ..runs.store import RunStore, Totals
from ..text.cells import cells, two_sided
from ..text.format import short_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...core.agents.choice import AgentChoice
    from ...core.budget.allowance import DaySpending

GAP = "  "
APART = "   "
"""Between parts of the first line."""

NEED_STYLES = {
    Need.WAITING: "bold $text-warning",
    Need.FAILED: "bold $text-error",
    Need.ASKS: "bold $text-warning",
    Need.SILENT: "bold $text-accent",
}
"""The colours of the rows; glyph and word say the same without them."""

LEAST_PATH = 16
"""Cells of the project's path that matter more than the reason for the agent's choice."""
SHORTEST_PATH = 8
"""Cells of it that matter more than everything but the needs."""


def _spent(totals: Totals) -> str:
    paid = known_cost(short_cost(totals.cost), totals.unpriced) if totals.cost else ""
    return " ".join(filter(None, (f"{tokens(totals.tokens)} tok" if totals.tokens else "", paid)))


class DeckHeader(Widget):
    DEFAULT_CSS = """
    DeckHeader { height: 1; padding: 0 1; background: $surface; }
    """
    ALLOW_SELECT = False
    note = reactive("")
    """A message that replaces the rest of the line."""
    stopped = reactive("")
    """Why updates have stopped, and when the next try is."""
    is_gone = reactive(False)
    """Whether the project's directory is gone."""
    _agent = reactive("")
    _runs = reactive("")
    _used = reactive("")
    """Usage of today's runs."""
    _of_budget = reactive("")
    """The part of the day's budget that is spent."""
    _level = reactive("")
    """How much of the day's budget is left."""
    _needs = reactive[tuple[tuple[Need, str], ...]](())
    """The numbers of runs that need you, the most urgent reason first."""
    _unread = reactive("")
    """Number of other unread results."""
    _hosts = reactive("")
    """Number of online hosts and of their used slots."""

    def __init__(self, project: str, *, readonly: bool) -> None:
        super().__init__()
        self._readonly = readonly
        self._project = project
        self._short_agent = ""
        """Without the reason, for a narrow line."""
        self._short_hosts = ""
        """The same without the slots."""
        self._short_runs = ""
        """The same without the parts of the figure."""
        self._tooltip_text = ""
        """The tooltip's text."""

    def show_agent(self, agent: AgentChoice | None, problem: str) -> None:
        self._short_agent = one_line(f"{agent.name} {agent.version or ''}" if agent else "no agent", 40)
        self._agent = one_line(agent.label if agent else f"no agent: {problem}", 100)

    def show_figures(self, counts: Counts, store: RunStore, costs_key: str, hold_key: str) -> None:
        """Show the number of running runs and today's usage; the tooltip has the totals of all runs, and the key for
        details. A paused queue shows the key that resumes it.
        """
        today, whole = store.today, store.whole
        in_shell, in_parent = (len(store.waited_for[is_shell]) for is_shell in (True, False))
        contained = ((in_shell, "in a shell"), (in_parent, "in a parent"), (counts.out_of_reach, "unreachable"))
        parts = ", ".join(f"{count} {word}" for count, word in contained if count)
        queued = f", {counts.queued} queued" if counts.queued else ""
        running = f"{counts.running - counts.queued} running"
        held = bool(queued and store.held)
        self._short_runs = f"{running}{queued}{' (paused)' if held else ''}"
        resumes = f" (paused, {hold_key} resumes)" if held else ""
        self._runs = f"{running}{f' ({parts})' if parts else ''}{queued}{resumes}"
        spent = _spent(today)
        self._used = f"today {spent}" if spent else ""
        words = (
            f"Today's runs: {spent or NOTHING}",
            f"All runs: {_spent(whole) or NOTHING}",
            f"{costs_key} shows details",
        )
        text = "\n".join(words)
        if text != self._tooltip_text:
            self._tooltip_text = text
            self.tooltip = Content(text)

    def show_spending(self, spending: DaySpending | None) -> None:
        """Show the spent part of the day's budget, instead of today's usage."""
        self._of_budget = spending.words if spending else ""
        self._level = str(spending.level) if spending else ""

    def show_needs(self, needs: Mapping[Need, int]) -> None:
        """Show how many runs need you, and why; and the number of other unread results."""
        counts = ((need, need.counted(count)) for need in Need if (count := needs.get(need)))
        counted = [(need, f"{need.glyph} {words}") for need, words in counts]
        self._needs = tuple((need, words) for need, words in counted if need.needs_you)
        self._unread = next((words for need, words in counted if not need.needs_you), "")

    def show_hosts(self, words: str, short_words: str) -> None:
        """Show the state of the hosts; empty if no hosts are used."""
        self._short_hosts = short_words
        self._hosts = words

    @property
    def has_hosts(self) -> bool:
        return bool(self._hosts)

    @property
    def _spent(self) -> str:
        return self._of_budget or self._used

    def render(self) -> Content:
        width = self.content_size.width
        mode = "  read-only" if self._readonly else ""
        name = Content.assemble(("subdeck", "bold $text-primary"), (mode, "bold"), "  ")
        if self.stopped:
            return Content.assemble(name, (f"! {self.stopped}", "bold $text-error")).truncate(width, ellipsis=True)
        if self.note:
            return Content.assemble(name, (f"! {self.note}", "bold $text-warning")).truncate(width, ellipsis=True)
        gone = "  ! missing" if self.is_gone else ""
        room = width - name.cell_length - len(gone) - len(APART)
        needs, right = self._fitting(room)
        path = short_path(self._project, max(SHORTEST_PATH, room - len(right) - _cells(needs)))
        where = Content.assemble(path, (gone, "bold $text-warning"))
        left = [name + where, *(Content.styled(words, NEED_STYLES[need]) for need, words in needs)]
        return two_sided(Content(GAP).join(left), self._coloured(right), width)

    def _coloured(self, right: str) -> Content:
        """Colour the spent amount by how much is left; it is last, if it fits."""
        style = {"nearly used up": "bold $text-warning", "used up": "bold $text-error"}.get(self._level)
        if style is None or not right.endswith(self._spent):
            return Content(right)
        return Content.assemble(right.removesuffix(self._spent), (self._spent, style))

    def _fitting(self, room: int) -> tuple[Sequence[tuple[Need, str]], str]:
        """Return the needs and the rest that fit beside the path; needs are dropped last, the least urgent first."""
        needs, hosts, short_hosts = self._needs, self._hosts, self._short_hosts
        all_of_it = _joined(self._agent, self._unread, self._runs, hosts, self._spent)
        if len(all_of_it) + _cells(needs) <= room - LEAST_PATH:
            return needs, all_of_it
        shorter = (
            (self._short_agent, self._unread, self._runs, hosts, self._spent),
            (self._short_agent, self._unread, self._runs, short_hosts, self._spent),
            (self._short_agent, self._unread, self._runs, short_hosts),
            (self._unread, self._runs, short_hosts),
            (self._runs, short_hosts),
            (self._runs,),
            (self._short_runs,),
        )
        urgent = (needs[:count] for count in range(len(needs), 0, -1))
        choices = [(needs, _joined(*parts)) for parts in shorter] + [(some, self._short_runs) for some in urgent]
        fitting = (choice for choice in choices if len(choice[1]) + _cells(choice[0]) <= room - SHORTEST_PATH)
        return next(fitting, (needs[:1], "" if needs else self._short_runs))


def _cells(needs: Sequence[tuple[Need, str]]) -> int:
    return sum(len(GAP) + len(words) for _, words in needs)


def _joined(*parts: str) -> str:
    return APART.join(filter(None, parts))


class StatusBar(Widget):
    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; background: $surface; }
    """
    ALLOW_SELECT = False
    background = reactive(Counts())
    """Of the runs in the background."""
    hints = reactive[list[Hint]](list)

    @property
    def _figure(self) -> str:
        width = self.content_size.width
        figure = background_counts(self.background)
        if cells(figure) > width:
            figure = f"●{self.background.running}/{self.background.total}"
        return figure if cells(figure) <= width else ""

    def render(self) -> Content:
        width = self.content_size.width
        shown = [Content(self._figure)]
        for hint in fitting(self.hints, width - shown[0].cell_length):
            shown.append(Content.assemble(GAP, (hint.key, "bold $text-primary"), " ", (hint.name, "$text-muted")))
        return Content("").join(shown)

    async def on_click(self, event: Click) -> None:
        """Do the action of the hint under the mouse."""
        offset = event.get_content_offset(self)
        hint = self._hint_at(offset.x) if offset else None
        if hint is None:
            return
        if hint.command.startswith(("screen.", "app.")):
            await self.run_action(hint.command)
        else:
            self.app.simulate_key(hint.press)

    def _hint_at(self, x: int) -> Hint | None:
        start = cells(self._figure)
        for hint in fitting(self.hints, self.content_size.width - start):
            start += len(GAP)
            end = start + cells(hint.key) + 1 + cells(hint.name)
            if start <= x < end:
                return hint
            start = end
        return None


def fitting(hints: list[Hint], room: int) -> list[Hint]:
    """Drop the hints of the highest ranks until the others fit."""
    chosen: set[Hint] = set()
    for hint in sorted(hints):
        room -= len(GAP) + cells(hint.key) + 1 + cells(hint.name)
        if room < 0:
            break
        chosen.add(hint)
    return [hint for hint in hints if hint in chosen]


# --- budgets ---------------------------------------------------------------------------------------------------------


class UsedUp:
    def __init__(self) -> None:
        self._reported: set[tuple[str, str]] | None = None
        """Day and name of each; None before the first check, whose budgets only the header shows."""

    def look(self, spending: DaySpending | None, running: int) -> str:
        """Return a message for budgets used up since the last check; `running` is the number of running runs."""
        used = [] if spending is None else [(spending.day, name) for name, spent in spending.parts if spent.is_used_up]
        reported = set(used) if self._reported is None else self._reported
        new = [name for day, name in used if (day, name) not in reported]
        self._reported = reported.union(used)
        if spending is None or not new:
            return ""
        from ...core.budget.allowance import BUDGETS

        spent = dict(spending.parts)
        lines = [f"{BUDGETS[name].capitalize()} is used up: {spent[name].figures} spent." for name in new]
        if running:
            return "\n".join((*lines, f"New runs are refused. Still running: {runs_word(running)}."))
        return "\n".join((*lines, "New runs are refused."))
