"""The command that shows the hosts, and the keys of that view."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import SubdeckError
from ..commands import Commands
from ..keys.command import DECK, RUNS, KeyContext, at, command, moves, unbound

if TYPE_CHECKING:
    from ...core.run.placement import HostState
    from ..dialogs.reader import ReadingScreen
    from .screen import HostsScreen

HOSTS = KeyContext.HOSTS
SSH_FAILED = 255
"""The exit code of ssh itself; others come from the program that ran there."""


class HostCommands(Commands):
    opens = ("._figures",)

    _screen: HostsScreen | None = None

    @command("hosts", unbound(DECK), "hosts")
    def open(self) -> None:
        """Show the machines that can run agents, and their load."""
        from .screen import HostsScreen

        deck = self._deck
        screen = self._screen = HostsScreen(self._bridge.engine.settings.hosts, deck.actions, self._act)
        deck.show_hosts(screen)
        self.spawn(self._fill_in, screen)

    async def _fill_in(self, screen: HostsScreen) -> None:
        from ...core.config.effective_hosts import effective_hosts, ssh_addresses
        from ...core.run.placement import read_host_states

        engine = self._bridge.engine
        screen.show_settings(await self._bridge.call(effective_hosts, engine.settings.hosts))
        addresses = ssh_addresses(engine.settings.hosts)
        screen.show_states(await self._bridge.call(read_host_states, engine.project, addresses))
        if screen.wants_to_ask and not self._bridge.readonly:
            await self._read_hosts(screen)

    async def _read_hosts(self, screen: HostsScreen) -> None:
        """Query the hosts once, even if a relay is doing so."""
        from ._survey import ask_hosts

        screen.show_asking(True)
        try:
            screen.show_states(await self._bridge.call(ask_hosts, self._bridge.engine.cwd))
        finally:
            screen.show_asking(False)

    # --- the view ----------------------------------------------------------------------------------------------------

    def _act(self, what: str) -> None:
        """Do the action of a key in the view."""
        if what == "close":
            self._deck.show_hosts(None)
        else:
            self._ask(what)

    @property
    def _host(self) -> HostState | None:
        """The highlighted host; reports it if there is none."""
        host = self._screen.host if self._screen else None
        if host is None:
            self._say("No host is highlighted.")
        return host

    @command("host_runs", at(HOSTS, "enter"), "runs", do="screen.ask_deck('runs')", footer=1)
    def show_runs(self) -> None:
        """Show only this host's runs."""
        from ._figures import name_of

        deck, host = self._deck, self._host
        if host is None:
            return
        deck.show_hosts(None)
        deck.runs.filter_by(f"host:{name_of(host)}")
        deck.runs.keep_layout()
        deck.panes.go_to(RUNS)

    @command("host_attach", at(HOSTS, "L"), "ssh", do="screen.ask_deck('attach')", footer=3, changes=True)
    def attach(self) -> None:
        """Open an ssh session to the host in this terminal. Exit the shell to return."""
        from ..terminal.handover import NO_TERMINAL, hand_over
        from ._figures import name_of

        host = self._host
        if host is None:
            return
        if not host.address or host.address.startswith("-"):
            why = "is reachable only through its dask worker" if host.carrier == "dask" else "has no ssh address"
            self._say(f"{name_of(host)} {why}. To open an ssh session, add it to hosts.ssh in your settings.")
            return
        if not self._deck.action_context.can_suspend:
            self._say(f"{NO_TERMINAL} In a shell: ssh {host.address}", error=True)
            return
        problem = hand_over(self.app, ("ssh", "-t", "--", host.address))
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: ssh {host.address}"
        if problem and ("exit code" not in problem or problem.endswith(f" {SSH_FAILED}")):
            self._say(problem, error=True)

    @command("ask_hosts", at(HOSTS, "f5"), "refresh", do="screen.ask_deck('ask')", footer=4, changes=True)
    def refresh(self) -> None:
        """Refresh the state of all hosts."""
        # Counts as a change: the subdeck command that queries the hosts finishes lost runs.
        if self._screen and not self._screen.is_asking:
            self.spawn(self._read_hosts, self._screen)

    @command("host_doctor", at(HOSTS, "!"), "doctor", do="screen.ask_deck('doctor')", footer=5, changes=True)
    def show_doctor(self) -> None:
        """Check everything that runs need on the host. Shows how to fix each problem."""
        from ..dialogs.reader import ReadingScreen
        from ._figures import name_of

        host = self._host
        if host is None:
            return
        screen = ReadingScreen(f"Doctor: {name_of(host)}", empty="Checking…")
        self.app.push_screen(screen)
        self.spawn(self._examine, screen, host)

    async def _examine(self, screen: ReadingScreen, host: HostState) -> None:
        from textual.content import Content

        from ..text.reports import check_lines, summary
        from ._figures import name_of
        from ._survey import examine_host

        try:
            reports = await self._bridge.call(examine_host, self._bridge.engine.cwd, host.name)
        except SubdeckError:
            if screen.is_current:
                screen.dismiss()
            raise
        if screen.is_current:
            entries = [
                Content.styled(name_of(host), "bold") if report.host else Content("all hosts") for report in reports
            ]
            lines = [
                line
                for entry, report in zip(entries, reports, strict=True)
                for line in (entry, *map(check_lines, report.checks), Content(""))
            ]
            screen.show(lines[:-1], summary([check for report in reports for check in report.checks]))

    @command("help_on_hosts", at(HOSTS, "?"), "help", do="screen.ask_deck('help')", footer=6)
    def show_help(self) -> None:
        """Show the most used keys here. Press it again for all keys."""
        self._show_help(key_context=HOSTS)

    in_view = moves((HOSTS,), "screen.move", "host_")
