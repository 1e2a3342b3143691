"""Hosts: figures in the header, a toast for a lost or returned host, and the view of all hosts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.config.settings import Settings
from subdeck.core.doctor import Check, State
from subdeck.core.errors import SubdeckError
from subdeck.core.paths import Project
from subdeck.core.run.placement import HostState, HostStates, write_host_states
from subdeck.tui.hosts._figures import Reach, back_texts, figures, lost_texts
from subdeck.tui.hosts._rows import Shown, cells, facts, heading, layout
from subdeck.tui.hosts._survey import Examined, ask_hosts, examine_host
from subdeck.tui.hosts.screen import HostsScreen, empty_lines, fault_lines

from ..deck.test_hostile_text import HOSTILE
from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..runs.test_host_column import a_remote_run

NOW = datetime(2026, 11, 23, 14, 2, tzinfo=UTC)


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def a_host(name: str = "h07", **fields: Any) -> HostState:
    known: dict[str, Any] = {
        "carrier": "dask",
        "in_reach": True,
        "heard_at": iso(NOW - timedelta(seconds=3)),
        "slots": 16,
        "used": 12,
        "runs": 5,
        "load": 3.2,
        "cores": 32,
        "memory_mb": 64_000,
        "subdeck": "0.1.0",
        "python": "3.11.9",
        "carrier_version": "2026.8.0",
    }
    return HostState(name=name, **(known | fields))


def told(*hosts: HostState, at: datetime = NOW, faults: tuple[str, ...] = ()) -> HostStates:
    return HostStates(at=iso(at), hosts=hosts, faults=faults)


class Hosts:
    """An engine in its own project, with host reports of a relay."""

    def __init__(self, project_dir: Path, *runs: Any, **settings: Any) -> None:
        self.engine = FakeEngine(*runs)
        self.engine.project = Project(str(project_dir))
        Path(self.engine.project.runs).mkdir(parents=True, mode=0o700)
        self.engine.settings = Settings(**settings)

    def tell(self, *hosts: HostState, faults: tuple[str, ...] = (), at: datetime | None = None) -> None:
        write_host_states(self.engine.project, told(*hosts, at=at or datetime.now(UTC), faults=faults))


async def view_of(deck: Deck) -> HostsScreen:
    await deck.act("hosts")
    await deck.until(lambda: isinstance(deck.app.screen, HostsScreen), "the view of the hosts")
    screen = deck.app.screen
    assert isinstance(screen, HostsScreen)
    return screen


def header(deck: Deck) -> str:
    return deck.rows(deck.main._header)[0]


# --- figures ---------------------------------------------------------------------------------------------------------


def test_figures_are_of_hosts_in_reach() -> None:
    """Slots of unreachable hosts do not count; without fresh reports it is unknown which hosts are online."""
    states = told(a_host("h01"), a_host("h02", used=3), a_host("h03", in_reach=False))
    assert "hosts 2/3 · slots 15/32" == figures(states, NOW).words
    assert "hosts ?/3" == figures(states, NOW + timedelta(minutes=5)).words
    assert "" == figures(told(), NOW).words == figures(None, NOW).words


def test_a_host_is_told_of_once() -> None:
    """A lost or returned host is reported once; a new or removed host is not reported."""
    reach = Reach()
    up, down = a_host("h01"), a_host("h01", in_reach=False)
    looks = [told(up), told(up), told(down), told(down), told(), told(up, a_host("h02", in_reach=False)), None]
    seen = [tuple([host.name for host in hosts] for hosts in reach.look(look, NOW)) for look in looks]
    nothing: tuple[list[str], list[str]] = ([], [])
    assert [nothing, nothing, (["h01"], []), nothing, nothing, ([], ["h01"]), nothing] == seen


def test_an_old_word_is_no_news() -> None:
    """The old report of a dead relay causes no notification."""
    reach = Reach()
    reach.look(told(a_host()), NOW)
    assert ([], []) == reach.look(told(a_host(in_reach=False)), NOW + timedelta(minutes=5))


def test_words_of_lost_hosts() -> None:
    """Each lost host is reported with the state of its runs, several of them in one sentence."""
    lost = [a_host(f"h0{number}", runs=number) for number in range(3)]
    assert [
        "h00 is unreachable.",
        "h01 is unreachable. Its run is unknown until it is back online.",
        "h02 is unreachable. Its 2 runs are unknown until it is back online.",
    ] == lost_texts(lost)
    many = [a_host(f"h{number:02}", runs=1) for number in range(20)]
    assert [
        "20 hosts (h00, h01, h02 and 17 more) are unreachable. Their 20 runs are unknown until they are back online."
    ] == lost_texts(many)
    assert ["h00 is back online."] == back_texts(lost[:1])
    assert ["20 hosts (h00, h01, h02 and 17 more) are back online."] == back_texts(many)


# --- the header and the toasts ---------------------------------------------------------------------------------------


async def test_the_header_counts_hosts_while_they_are_used(project_dir: Path) -> None:
    """The header shows figures of hosts while a run is on a host."""
    hosts = Hosts(project_dir, a_run(1), a_remote_run(2))
    hosts.tell(a_host("h07"), a_host("h08", in_reach=False))
    async with opened(hosts.engine) as deck:
        await deck.until(lambda: "hosts 1/2 · slots 12/16" in header(deck), "the figures")
        hosts.engine.tell(a_remote_run(2, "completed"))
        await deck.until(lambda: "hosts 1" not in header(deck), "the header without them")


async def test_who_uses_no_hosts_is_not_asked(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a run on a host, host reports are not read."""
    hosts = Hosts(project_dir, a_run(1), a_remote_run(2, "completed"))
    hosts.tell(a_host())
    async with opened(hosts.engine) as deck:
        deck.main._tick()
        assert "_hosts" not in vars(deck.main)


async def test_a_host_that_is_lost_is_told_once(project_dir: Path) -> None:
    """An unreachable host is one toast for all of its runs, and its return is another one."""
    hosts = Hosts(project_dir, *(a_remote_run(number) for number in range(1, 6)))
    hosts.tell(a_host())
    async with opened(hosts.engine) as deck:
        await deck.until(lambda: "hosts 1/1" in header(deck), "the figures")
        hosts.tell(a_host(in_reach=False))
        await deck.until(lambda: deck.toasts, "the toast")
        hosts.engine.tell(*(a_remote_run(number, elsewhere=True) for number in range(1, 6)))
        await deck.until(lambda: "hosts 0/1" in header(deck), "the figures without it")
        assert ["h07 is unreachable. Its 5 runs are unknown until it is back online."] == deck.toasts
        hosts.tell(a_host())
        await deck.until(lambda: "h07 is back online." in deck.toasts, "the word that it is back")
        assert 2 == len(deck.toasts)


async def test_figures_give_way(project_dir: Path) -> None:
    """With little room slots are dropped first, then hosts: running runs are shown longest."""
    hosts = Hosts(project_dir, a_remote_run(1))
    hosts.tell(a_host())
    async with opened(hosts.engine, (200, 24)) as deck:
        await deck.until(lambda: deck.main._header.has_hosts, "the figures")
        said = [deck.main._header._fitting(room)[1] for room in range(160, 10, -1)]
        stages = [("slots" in words, "hosts 1/1" in words, "1 running" in words) for words in said]
        assert [(True, True, True), (False, True, True), (False, False, True)] == list(dict.fromkeys(stages))


# --- the view --------------------------------------------------------------------------------------------------------


def test_a_table_takes_no_room_for_nothing() -> None:
    """States are beside the names; labels have a column only if a host has one."""
    short, long = Shown(a_host("h1", labels={}), True, NOW), Shown(a_host("h" * 20, labels={"gpu": 1.0}), True, NOW)
    heads = [heading(layout(shown, 150)) for shown in ([short], [short, long])]
    assert [12, 21] == [layout(shown, 150).name for shown in ([short], [short, long])]
    assert [False, True] == ["resources" in head for head in heads]


@pytest.mark.parametrize("width", [20, 40, 60, 78, 118, 198])
@pytest.mark.parametrize("text", HOSTILE)
def test_rows_are_as_wide_as_the_table(width: int, text: str) -> None:
    """A host's texts neither move its columns nor control the terminal."""
    host = a_host(text, subdeck=text, python=text, carrier=text, carrier_version=text, labels={text: 1.0}, address=text)
    for is_current in (True, False):
        shown = Shown(host, is_current, NOW)
        table = layout([shown], width)
        row = "".join(part for part, _ in cells(shown, table))
        assert cell_len(row) <= width
        assert cell_len(heading(table)) == cell_len(row)
        for line in (row, facts(shown)):
            assert not [char for char in line if ord(char) < 32 or 0x7F <= ord(char) < 0xA0]


def test_all_of_a_host_in_words() -> None:
    """Details without a column are below the table, including a different version of subdeck."""
    host = a_host(in_reach=False, subdeck="0.0.9", labels={"gpu": 2.0}, address="me@h07")
    assert (
        "h07 · last seen 3 s ago · via dask (2026.8.0) · subdeck 0.0.9 (local 0.1.0, install the same version) · "
        "Python 3.11.9 · resources gpu 2 · ssh me@h07"
    ) == facts(Shown(host, True, NOW))


def test_what_is_wrong_stands_above() -> None:
    """Only the first few faults are shown above, in words."""
    faults = tuple(f"h{number}: Permission denied (publickey)" for number in range(6))
    lines = fault_lines(told(faults=faults))
    assert "! h0: Permission denied (publickey)" == lines[0]
    assert "! and 2 more" == lines[-1]


async def test_hosts_that_nobody_asks(project_dir: Path) -> None:
    """Without a relay hosts are not called unreachable; the time of their last report is shown."""
    hosts = Hosts(project_dir, a_run(1))
    hosts.tell(a_host("h07"), a_host("h08", in_reach=False), faults=("h09: gone",), at=NOW - timedelta(days=1))
    async with opened(hosts.engine, (80, 24)) as deck:
        await view_of(deck)
        await deck.until_text("– not checked")
        assert "Hosts · 2 known · last checked at 2026-11-2" in deck.screen_text
        assert "unreachable" not in deck.screen_text
        assert "h09" not in deck.screen_text


async def test_hosts_are_asked_where_no_relay_does(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The view asks configured hosts on its own if there are no reports, and again by a key."""
    asked: list[str] = []

    def ask_hosts(cwd: str) -> HostStates:
        asked.append(cwd)
        return told(a_host(f"h{len(asked):02}"), at=datetime.now(UTC))

    monkeypatch.setattr("subdeck.tui.hosts._survey.ask_hosts", ask_hosts)
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(ssh=("me@h01",)))
    hosts.tell(a_host("h00"), at=NOW - timedelta(days=1))
    async with opened(hosts.engine, (80, 24)) as deck:
        await view_of(deck)
        await deck.until_text("h01 ")
        assert "● online" in deck.screen_text
        await deck.press("f5")
        await deck.until_text("h02 ")
        assert ["/src/shop"] * 2 == asked


@pytest.mark.parametrize("key", ["f5", "exclamation_mark"])
async def test_a_read_only_app_asks_nobody(project_dir: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """A read-only app shows reports, but starts no command that could write."""
    for name in ("ask_hosts", "examine_host"):
        monkeypatch.setattr(f"subdeck.tui.hosts._survey.{name}", lambda *_: pytest.fail("somebody was asked"))
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(ssh=("me@h01",)))
    hosts.tell(a_host("h07"), at=NOW - timedelta(days=1))
    async with opened(hosts.engine, (80, 24), readonly=True) as deck:
        await view_of(deck)
        await deck.until_text("– not checked")
        await deck.press(key)
        await deck.until(lambda: deck.toasts, "the reason")
        assert "--readonly" in deck.toasts[0]


async def test_hosts_that_cannot_be_asked(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If hosts cannot be asked, the reason is shown with a way to find out more."""
    monkeypatch.setattr("subdeck.tui.hosts._survey.PROGRAM", "import sys; sys.exit('no route')")
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(ssh=("me@h01",)))
    hosts.engine.cwd = str(project_dir)
    async with opened(hosts.engine, (80, 24)) as deck:
        await view_of(deck)
        await deck.until(lambda: deck.toasts, "the reason")
        assert "cannot query the hosts: no route" in deck.toasts[0]
        await deck.until_text("Configured hosts: me@h01.")


async def test_the_doctor_of_a_host(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key shows the selected host's problems with their fixes."""
    spool = Check("spool", State.PROBLEM, "/tmp/spool cannot be written", "chmod u+w /tmp/spool")
    found = (Examined(None, (Check("tls", State.OK, "fine"),)), Examined("h07", (spool,)))
    monkeypatch.setattr("subdeck.tui.hosts._survey.examine_host", lambda _, name: found if name == "h07" else ())
    hosts = Hosts(project_dir, a_run(1))
    hosts.tell(a_host("h07"))
    async with opened(hosts.engine, (80, 24)) as deck:
        await view_of(deck)
        await deck.until_text("● online")
        await deck.press("exclamation_mark")
        await deck.until_text("/tmp/spool cannot be written")
        for expected in ("Doctor: h07", "→ chmod u+w /tmp/spool", "1 problem"):
            assert expected in deck.screen_text


@pytest.mark.processes
def test_a_host_that_is_not_there(project_dir: Path) -> None:
    """The view shows a refusal of the command line with its hint."""
    with pytest.raises(SubdeckError, match="no hosts to check") as refusal:
        examine_host(str(project_dir), "h99")
    assert refusal.value.hint


@pytest.mark.processes
def test_the_command_is_asked(project_dir: Path) -> None:
    """The view calls the command line in the project; without hosts there are none."""
    states = ask_hosts(str(project_dir))
    assert () == states.hosts == states.faults
    assert figures(states, datetime.now(UTC)).is_current


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (HostsSettings(), "subdeck hosts try 3"),
        (HostsSettings(ssh=("me@h1",)), "Configured hosts: me@h1."),
        (HostsSettings(scheduler="tls://head:8786"), "tls://head:8786"),
    ],
)
def test_who_has_no_hosts_is_told_how(settings: HostsSettings, expected: str) -> None:
    """An empty view explains how to add hosts, or that the configured ones were not asked yet."""
    assert expected in "\n".join(empty_lines(settings, has_faults=False))


async def test_an_empty_view(project_dir: Path) -> None:
    """The view opens without any reports, and `q` closes it."""
    async with opened(Hosts(project_dir, a_run(1)).engine, (80, 24)) as deck:
        await view_of(deck)
        await deck.until_text("subdeck hosts try 3")
        await deck.press("q")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
async def test_the_view_follows(project_dir: Path, size: tuple[int, int]) -> None:
    """The view follows new reports, and the cursor stays on its host."""
    hosts = Hosts(project_dir, a_run(1))
    hosts.tell(a_host("h07"), a_host("h08", in_reach=False), faults=("h09: Connection refused",))
    async with opened(hosts.engine, size) as deck:
        screen = await view_of(deck)
        await deck.until_text("? unreachable")
        for expected in ("1 of 2 online", "12/16", "! h09: Connection refused", "Python 3.11.9"):
            assert expected in deck.screen_text
        await deck.press("j")
        assert screen.host is not None and screen.host.name == "h08"
        hosts.tell(a_host("h01"), a_host("h07"), a_host("h08", slots=8))
        await deck.until_text("3 of 3 online")
        assert screen.host is not None and screen.host.name == "h08"


async def test_the_runs_of_a_host(project_dir: Path) -> None:
    """Enter shows only the runs on the host."""
    hosts = Hosts(project_dir, a_run(1), a_remote_run(2), a_remote_run(3, host="h08"))
    hosts.tell(a_host("h07"), a_host("h08"))
    async with opened(hosts.engine) as deck:
        await view_of(deck)
        await deck.until_text("● online")
        await deck.press("j", "enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert "host:h08" == deck.main.runs.listing.filter.text
        assert [run_id(3)] == deck.main.runs.listing.shown_ids()


class Programs:
    """Records programs that would have had the terminal."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, problem: str = "") -> None:
        self.argvs: list[tuple[str, ...]] = []

        def hand_over(_: Any, argv: tuple[str, ...]) -> str:
            self.argvs.append(argv)
            return problem

        monkeypatch.setattr("subdeck.tui.terminal.handover.hand_over", hand_over)


async def log_in(deck: Deck) -> None:
    await view_of(deck)
    await deck.until_text("● online")
    await deck.press("L")


async def test_going_to_a_host(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal is lent to ssh, with the unchanged address; no shell reads it."""
    programs = Programs(monkeypatch)
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(ssh=("me@h07;reboot",)))
    hosts.tell(a_host(address="me@h07;reboot"))
    async with opened(hosts.engine) as deck:
        await log_in(deck)
        assert [("ssh", "-t", "--", "me@h07;reboot")] == programs.argvs


async def test_an_address_is_one_of_the_settings(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay file that came with a checkout leads to no machine outside the user's settings."""
    programs = Programs(monkeypatch)
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(ssh=("me@h07",), attach={"h08": "me@h08"}))
    hosts.tell(a_host(address="me@evil.example"), a_host("h09", address="h08"))
    async with opened(hosts.engine) as deck:
        await view_of(deck)
        await deck.until_text("● online")
        assert "evil" not in deck.screen_text
        for name, key in (("h07", "up"), ("h09", "down")):
            await deck.press(key, "L")
            await deck.until(
                lambda name=name: f"{name} is reachable only through" in "".join(deck.toasts), "the reason"
            )
        assert [] == programs.argvs


@pytest.mark.parametrize(("code", "is_current"), [(1, False), (130, False), (255, True)])
async def test_how_ssh_ended(project_dir: Path, monkeypatch: pytest.MonkeyPatch, code: int, is_current: bool) -> None:
    """A failure of ssh is reported; the exit code of the last command there is not."""
    Programs(monkeypatch, f"ssh failed with exit code {code}")
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(attach={"h07": "me@h07"}))
    hosts.tell(a_host(address="me@h07"))
    async with opened(hosts.engine) as deck:
        await log_in(deck)
        assert is_current == bool(deck.toasts)


@pytest.mark.parametrize(
    ("address", "readonly", "expected"),
    [
        ("", False, "add it to hosts.ssh"),
        ("-oProxyCommand=x", False, "add it to hosts.ssh"),
        ("me@h", True, "--read"),
    ],
)
async def test_no_way_to_a_host(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, address: str, readonly: bool, expected: str
) -> None:
    """If a host cannot be opened, the reason is shown and nothing is started."""
    programs = Programs(monkeypatch)
    hosts = Hosts(project_dir, a_run(1), hosts=HostsSettings(ssh=("-oProxyCommand=x", "me@h")))
    hosts.tell(a_host(address=address))
    async with opened(hosts.engine, readonly=readonly) as deck:
        await log_in(deck)
        await deck.until(lambda: deck.toasts, "the reason")
        assert expected in deck.toasts[0]
        assert [] == programs.argvs
