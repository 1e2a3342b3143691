"""Keys that may reply to a request, by the times of key and request."""

from __future__ import annotations

from itertools import pairwise

import pytest
from subdeck.tui.talk.block import REPLACED_S, VISIBLE_S, ReplyGuard
from subdeck.tui.terminal.key_queue import KeyTime

LONG_AGO = -100.0


def guard_of_visible(at: float = 10.0, delay: float = VISIBLE_S) -> ReplyGuard:
    guard = ReplyGuard()
    guard.restart(delay)
    guard.note_visible(at)
    return guard


def test_a_request_must_be_visible_for_a_moment() -> None:
    """A key counts from 400 ms after the request appeared on the screen, never before."""
    guard = ReplyGuard()
    guard.restart(VISIBLE_S)
    assert not guard.takes(KeyTime(10.0, LONG_AGO))
    guard.note_visible(10.0)
    assert not guard.takes(KeyTime(10.39, LONG_AGO))
    assert guard.takes(KeyTime(10.41, LONG_AGO))


def test_typing_must_have_paused() -> None:
    """A key counts only 300 ms after the last one, so none does while text is being typed."""
    guard = guard_of_visible()
    times = [9.0 + 0.25 * number for number in range(20)]
    assert not any(guard.takes(KeyTime(at, before)) for before, at in pairwise(times))
    assert guard.takes(KeyTime(times[-1] + 0.31, times[-1]))


def test_keys_after_one_that_counted() -> None:
    """After a key that counted the next one needs no pause, unless a key went elsewhere in between."""
    guard = guard_of_visible()
    assert guard.takes(KeyTime(11.0, LONG_AGO))
    assert guard.takes(KeyTime(11.1, 11.0))
    assert not guard.takes(KeyTime(11.3, 11.2))


def test_one_that_took_the_place_of_another() -> None:
    """A replaced request ignores keys for two seconds, and again after the next change."""
    guard = guard_of_visible(10.0, REPLACED_S)
    assert not guard.takes(KeyTime(11.9, LONG_AGO))
    assert guard.takes(KeyTime(12.1, LONG_AGO))
    guard.restart(VISIBLE_S)
    assert not guard.takes(KeyTime(12.2, 12.1))
    assert not guard.takes(KeyTime(99.0, LONG_AGO))


def test_what_leaves_the_screen_must_be_seen_again() -> None:
    """A request hidden by another pane must be visible again, only for a moment if it was visible for long enough."""
    guard = guard_of_visible(10.0, REPLACED_S)
    guard.note_hidden(11.0)
    assert not guard.takes(KeyTime(13.0, LONG_AGO))
    guard.note_visible(20.0)
    assert REPLACED_S == guard.seconds_left(20.0)
    guard.note_hidden(23.0)
    guard.note_visible(30.0)
    assert VISIBLE_S == pytest.approx(guard.seconds_left(30.0))
