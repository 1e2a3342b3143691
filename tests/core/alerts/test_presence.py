"""Decks that have the user's attention."""

from __future__ import annotations

import os
import signal

import pytest
from subdeck.core.alerts.alert import Alert
from subdeck.core.alerts.presence import Deck, Presence, decks
from subdeck.core.run.enumerations import AlertKind

RUN = "20261128-120000-abcdef"


def alert(project: str = "/shop", run_id: str = RUN) -> Alert:
    return Alert(id="n", kind=AlertKind.FAILED, at=1.0, what="failed", project=project, run_id=run_id)


def test_a_deck_shows_its_project() -> None:
    """A deck shows the runs of its project and the budgets; a deck that was opened on some runs shows only those."""
    whole, single, short = Deck("/shop"), Deck("/shop", (RUN,)), Deck("/shop", ("abc",))
    assert [whole.shows(alert()), single.shows(alert()), short.shows(alert())] == [True] * 3
    assert not whole.shows(alert("/other")) and not single.shows(alert(run_id="20261128-120000-999999"))
    assert whole.shows(alert("", "")) and single.shows(alert("", ""))


def test_only_open_decks_are_there() -> None:
    """A deck is there with its last change until it is closed."""
    assert [] == decks()
    presence = Presence(Deck("/shop"))
    assert [Deck("/shop")] == decks()
    presence.show(Deck("/shop", has_focus=True))
    assert [Deck("/shop", has_focus=True)] == decks()
    presence.show(Deck("/s"))
    assert [Deck("/s")] == decks()
    presence.close()
    assert [] == decks()


@pytest.mark.processes
def test_a_killed_deck_is_not_there() -> None:
    """The kernel shows that a deck has died."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        Presence(Deck("/shop", has_focus=True))
        os.write(writer, b"\n")
        signal.pause()
    os.read(reader, 1)
    assert [Deck("/shop", has_focus=True)] == decks()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert [] == decks()
    for descriptor in (reader, writer):
        os.close(descriptor)
