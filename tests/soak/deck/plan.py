"""The operations of a trial: drawn only from seed and number, so that a trial can be replayed."""

from __future__ import annotations

import random
from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct


class Act(StrEnum):
    """An action on the project, or on an open deck."""

    START = "start"
    """`subdeck bg` with a puppet as the agent."""
    START_ASKING = "start asking"
    """The same with the offline agent, which asks before it reads."""
    START_WAITED = "start waited"
    """`subdeck run`, which waits for its run."""
    START_GROUP = "start group"
    STOP = "stop"
    STOP_BY_FORCE = "stop by force"
    INTERRUPT = "interrupt"
    SEND = "send"
    ALLOW = "allow"
    DENY = "deny"
    CRASH_WRAPPER = "crash wrapper"
    CRASH_CHILD = "crash child"
    CRASH_WAITER = "crash waiter"
    """Kill a `subdeck run`: its run continues."""
    CANCEL_WAITER = "cancel waiter"
    """Press ctrl-C in a `subdeck run`: its run is stopped."""
    DELETE = "delete"
    RESTORE = "restore"
    UNDO = "undo"
    CLEAN = "clean"
    HOLD = "hold"
    RELEASE = "release"
    LOSE_META = "lose meta"
    """Remove the `meta.json` of a finished run."""
    LOSE_ACTIVITY = "lose activity"
    """Remove the activity file of an unfinished run."""
    LOSE_DIRECTORY = "lose directory"
    """Remove the directory of a finished run."""
    APPEAR = "appear"
    """Copy a finished run under another id, as a checkout with other people's runs does."""
    TRUST = "trust"
    KEYS = "keys"
    """Press keys in a deck."""
    FREEZE = "freeze"
    """Stop the process of a deck for a while."""
    REOPEN = "reopen"
    """Kill a deck and open another one."""
    RESIZE = "resize"


WEIGHTS = {
    Act.START: 20,
    Act.START_ASKING: 6,
    Act.START_WAITED: 6,
    Act.START_GROUP: 4,
    Act.STOP: 8,
    Act.STOP_BY_FORCE: 5,
    Act.INTERRUPT: 2,
    Act.SEND: 2,
    Act.ALLOW: 4,
    Act.DENY: 2,
    Act.CRASH_WRAPPER: 8,
    Act.CRASH_CHILD: 4,
    Act.CRASH_WAITER: 2,
    Act.CANCEL_WAITER: 2,
    Act.DELETE: 8,
    Act.RESTORE: 5,
    Act.UNDO: 3,
    Act.CLEAN: 2,
    Act.HOLD: 3,
    Act.RELEASE: 4,
    Act.LOSE_META: 3,
    Act.LOSE_ACTIVITY: 3,
    Act.LOSE_DIRECTORY: 2,
    Act.APPEAR: 4,
    Act.TRUST: 3,
    Act.KEYS: 8,
    Act.FREEZE: 3,
    Act.REOPEN: 1,
    Act.RESIZE: 1,
}
MORE_STARTS = 4
"""Runs that are started before anything else, so that there are targets."""


class Step(Struct, frozen=True):
    act: Act
    choice: float
    """Between 0 and 1: chooses among the possible targets at that moment."""
    pause: float
    """Seconds until the next step."""


class Plan(Struct, frozen=True):
    seed: int
    number: int
    decks: int
    """Number of decks open at once."""
    burners: int
    """Processes that only use the processor, during the steps."""
    max_running: int | None
    """The setting."""
    rounds: tuple[tuple[Step, ...], ...]
    """A quiet point follows each."""


def draw(seed: int, number: int, without: Collection[Act] = ()) -> Plan:
    """Draw a trial; leaving out the acts `without` does not change the others."""
    chance = random.Random(f"deck/{seed}/{number}")
    decks = 2 if chance.random() < 0.4 else 1
    burners = chance.choice((0, 1, 2, 3))
    max_running = chance.choice((None, None, 2, 3))
    rounds: list[tuple[Step, ...]] = []
    for index in range(chance.choice((2, 3, 4))):
        starts = [_step(chance, Act.START) for _ in range(MORE_STARTS if index == 0 else 1)]
        acts = chance.choices(list(WEIGHTS), weights=list(WEIGHTS.values()), k=chance.randint(5, 16))
        steps = [*starts, *(_step(chance, act) for act in acts)]
        if index:
            chance.shuffle(steps)
        rounds.append(tuple(step for step in steps if step.act not in without))
    return Plan(seed, number, decks, burners, max_running, tuple(rounds))


def _step(chance: random.Random, act: Act) -> Step:
    pause = 0.0 if chance.random() < 0.3 else chance.random() ** 2
    return Step(act, chance.random(), pause)
