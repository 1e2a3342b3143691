"""The view of the hosts: connection problems, a table, and all facts of the highlighted host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from ...core.run.describe import moment, runs_word
from ...core.text.plain import one_line
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, keys_line
from ..terminal.textual_internals import LeanScreen
from ..widgets.line_view import RowList
from ._figures import figures, is_current
from ._rows import HostTable, Shown, facts

if TYPE_CHECKING:
    from ...core.config.host_settings import HostsSettings
    from ...core.run.placement import HostState, HostStates

FAULTS = 4
"""Lines of problems; more are counted."""
FAULT = 300
"""Characters of one."""


class HostsScreen(LeanScreen):
    """Shows the hosts until it is closed; the deck below it sends the updates."""

    BINDINGS = bindings(KeyContext.HOSTS)
    CSS_PATH = "hosts.tcss"
    AUTO_FOCUS = "HostTable"

    def __init__(self, settings: HostsSettings, actions: Sequence[Action], on_act: Callable[[str], None]) -> None:
        """`on_act` does the actions that need the deck."""
        super().__init__()
        self._settings = settings
        self._actions = actions
        self._on_act = on_act
        self._states: HostStates | None = None
        self._is_known = False
        """Whether the known states have been read."""
        self.is_asking = False
        """Whether the hosts are being queried without a relay; changed by `show_asking`."""

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with Vertical(id="body"):
            yield Static(id="faults")
            yield HostTable()
            yield Static(id="facts")
        yield Static(Content(f" {keys_line(KeyContext.HOSTS, self._actions)}"), id="keys")

    def on_mount(self) -> None:
        self._draw()

    @property
    def host(self) -> HostState | None:
        """The highlighted host."""
        shown = self.query_one(HostTable).shown
        return shown.host if shown else None

    def show_settings(self, settings: HostsSettings) -> None:
        """Use these settings for the text shown without hosts."""
        self._settings = settings
        if self.is_mounted and self.is_attached:
            self._draw()

    def show_states(self, states: HostStates | None) -> None:
        """Show these states, unless newer ones are shown; called repeatedly, as ages change."""
        self._is_known = True
        if states is not None and (self._states is None or states.at >= self._states.at):
            self._states = states
        if self.is_mounted and self.is_attached:
            self._draw()

    def show_asking(self, is_asking: bool) -> None:
        """Show that the hosts are being queried, without a relay."""
        self.is_asking = is_asking
        if self.is_mounted and self.is_attached:
            self._draw()

    @property
    def wants_to_ask(self) -> bool:
        """Whether hosts are configured and no current states are known."""
        are_current = self._states is not None and is_current(self._states, datetime.now(UTC))
        return self._is_known and not (are_current or self.is_asking) and self._settings.is_set

    def _draw(self) -> None:
        now, states = datetime.now(UTC), self._states
        are_current = states is not None and is_current(states, now)
        hosts = states.hosts if states else ()
        shown = [Shown(host, are_current, now) for host in hosts]
        asking = " · refreshing…" if self.is_asking else ""
        self.query_one("#title", Static).update(Content(f" {title(states, now)}{asking}"))
        lines = fault_lines(states) if are_current and states else []
        wrong = Content("\n").join(Content.styled(line, "$text-warning") for line in lines)
        self.query_one("#faults", Static).update(wrong)
        self.query_one("#faults").display = bool(wrong)
        empty = empty_lines(self._settings, has_faults=bool(wrong)) if self._is_known and not self.is_asking else []
        self.query_one(HostTable).show_hosts(shown, empty)
        self._show_facts()

    @on(RowList.Highlighted)
    def _show_facts(self) -> None:
        shown = self.query_one(HostTable).shown
        self.query_one("#facts", Static).update(Content(facts(shown) if shown else ""))

    # --- keys --------------------------------------------------------------------------------------------------------

    def action_move(self, where: str) -> None:
        self.query_one(HostTable).action_move(where)

    @on(RowList.Chosen)
    def show_runs(self) -> None:
        self._on_act("runs")

    def action_ask_deck(self, what: str) -> None:
        """Pass an action on the highlighted host to the deck."""
        self._on_act(what)

    def action_cancel(self) -> None:
        self._on_act("close")


def title(states: HostStates | None, now: datetime) -> str:
    """`Hosts · 18 of 20 online · 431 of 500 slots used · 12 runs of this project`."""
    totals = figures(states, now)
    if not totals.hosts:
        return "Hosts"
    if states is not None and not totals.is_current:
        updated_at = moment(states.at)
        return f"Hosts · {totals.hosts} known" + (f" · last checked at {_when(updated_at, now)}" if updated_at else "")
    parts = (
        "Hosts",
        f"{totals.reached} of {totals.hosts} online",
        f"{totals.used} of {totals.slots} slots used",
        f"{runs_word(totals.runs)} of this project",
    )
    return " · ".join(parts)


def _when(at: datetime, now: datetime) -> str:
    """Return a time of today as `14:02`, of another day with the date."""
    here = at.astimezone()
    return f"{here:%H:%M}" if here.date() == now.astimezone().date() else f"{here:%Y-%m-%d %H:%M}"


def fault_lines(states: HostStates) -> list[str]:
    """Return the connection problems."""
    lines = [f"! {one_line(fault, FAULT)}" for fault in states.faults]
    return [*lines[:FAULTS], *([f"! and {len(lines) - FAULTS} more"] if len(lines) > FAULTS else [])]


def empty_lines(settings: HostsSettings, *, has_faults: bool) -> list[str]:
    """Return how to set up hosts, or when their states appear."""
    if has_faults:
        return ["No hosts found."]
    if settings.scheduler or settings.ssh:
        named = ", ".join(filter(None, (settings.scheduler or "", *settings.ssh)))
        return [
            f"Configured hosts: {one_line(named, 200)}.",
            "",
            "Their state appears here once a run uses them. Launch one with the runner hosts.",
            "  subdeck hosts          check them now",
            "  subdeck hosts doctor   find problems and fixes",
        ]
    return [
        "No hosts yet. All runs are on this machine.",
        "",
        "  subdeck hosts try 3    start three on this machine to try it out",
        "  hosts.ssh              setting: machines reachable by ssh",
        "  hosts.scheduler        setting: a dask cluster, also on Slurm",
        "",
        "Then launch with the runner hosts, or set runner: hosts in a preset.",
    ]
