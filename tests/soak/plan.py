"""A trial's plan: drawn only from its seed and number, so that it can be repeated."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from . import puppet


class Victim(StrEnum):
    WRAPPER = "wrapper"
    CHILD = "child"
    LAUNCHER = "launcher"
    LOOKER = "looker"
    """`subdeck status`, which finishes lost runs."""
    FOLLOWER = "follower"
    """It reports results, each once; see `teller`."""
    TMUX_SERVER = "tmux-server"
    TMUX_CLIENT = "tmux-client"
    """The one by which a launcher opens a window; a trap's `run` is its number, from 0."""
    MCP = "mcp"
    STANDBY = "standby"
    """The wrapper that a launcher has started before it knows for which run."""
    ALL = "all"
    """Every process at once, as when a machine is switched off."""


class Scene(StrEnum):
    ALONE = "alone"
    QUEUE = "queue"
    """Three runs with one slot."""
    STICKY = "sticky"
    """Three runs that share one agent session."""
    TMUX = "tmux"
    MCP = "mcp"
    """Two runs, launched by a server."""
    OFFLINE = "offline"
    """The bundled agent."""
    WORKTREE = "worktree"
    """Two runs, each in its git worktree; at the end everything is cleaned up."""


RUNS: Mapping[Scene, int] = {Scene.QUEUE: 3, Scene.STICKY: 3, Scene.TMUX: 2, Scene.MCP: 2, Scene.WORKTREE: 2}
"""Number of runs in a scene, if it is not one."""

SCENES: Mapping[Victim, Sequence[Scene]] = {
    Victim.WRAPPER: tuple(Scene),
    Victim.CHILD: (Scene.ALONE, Scene.QUEUE, Scene.STICKY, Scene.TMUX, Scene.MCP, Scene.WORKTREE),
    Victim.LAUNCHER: (Scene.ALONE, Scene.QUEUE, Scene.STICKY, Scene.TMUX, Scene.WORKTREE),
    Victim.LOOKER: (Scene.ALONE, Scene.QUEUE, Scene.STICKY, Scene.TMUX),
    Victim.FOLLOWER: (Scene.ALONE, Scene.QUEUE, Scene.MCP),
    Victim.TMUX_SERVER: (Scene.TMUX,),
    Victim.TMUX_CLIENT: (Scene.TMUX,),
    Victim.MCP: (Scene.MCP,),
    Victim.STANDBY: (Scene.ALONE, Scene.STICKY),
    Victim.ALL: (Scene.ALONE, Scene.QUEUE, Scene.STICKY, Scene.TMUX, Scene.WORKTREE),
}
"""Scenes in which each can be hit."""


class Anchor(StrEnum):
    """The moment from which a kill counts its delay."""

    LAUNCHED = "launched"
    BEGUN = "begun"
    """The child has written its first line."""
    ENDING = "ending"
    """The child is about to report its end."""
    ENDED = "ended"
    """There is a result."""


class Kill(Struct, frozen=True):
    """SIGKILL at a moment."""

    victim: Victim
    run: int
    anchor: Anchor
    delay: float
    """Seconds."""
    life: float = 0.0
    """Seconds from the start of a looker to its kill; also how long a follower is absent."""


class Trap(Struct, frozen=True):
    """An injection by strace into one process at a counted system call: a kill, or an error."""

    victim: Victim
    run: int
    call: str
    count: int
    error: str = ""
    """As `EIO`; empty for a kill."""
    for_good: bool = False
    """Whether every later call also fails."""
    anchor: Anchor = Anchor.LAUNCHED
    """When a looker is started; all others begin with their role."""
    delay: float = 0.0


class Mischief(StrEnum):
    """A disturbance of a run that may not change its result."""

    STOP = "SIGSTOP"
    """A process is stopped for a while."""
    NO_LOCK = "lock removed"
    NO_DOORBELL = "doorbell removed"


class Disturbance(Struct, frozen=True):
    kind: Mischief
    victim: Victim
    """The stopped process; the wrapper for the files of its run."""
    run: int
    anchor: Anchor
    delay: float
    length: float
    """Seconds for which a process is stopped."""


class Plan(Struct, frozen=True):
    seed: int
    number: int
    scene: Scene
    behaviours: tuple[str, ...]
    """Of each run's child."""
    kills: tuple[Kill, ...] = ()
    traps: tuple[Trap, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    followed_from: float = 0.0
    """Seconds after which there is a follower; until then only lookers find lost runs."""
    stop: float | None = None
    """Seconds after which the first run is asked to stop; None for never."""
    stops_by_force: bool = False
    is_slow_to_start: bool = False
    """Whether the moment between fork and exec of a child is made long."""
    has_groups: bool = True
    """Whether runs may get control groups, if available."""

    @property
    def victims(self) -> frozenset[Victim]:
        return frozenset(hit.victim for hit in (*self.kills, *self.traps))


class Calls(Struct, frozen=True):
    """How often a process makes a system call, undisturbed."""

    before: int
    """During Python's own start: until the first call that concerns the project."""
    total: int


Usual = Mapping[Victim, Mapping[str, Calls]]

KILLED_AT = (
    *("openat", "write", "pwrite64", "close", "flock", "unlink", "link", "rename", "fsync", "read", "poll", "wait4"),
    *("vfork", "clone3", "pidfd_open", "pidfd_send_signal", "getdents64", "mkdir", "pipe2", "newfstatat", "sendmsg"),
    *(
        "recvmsg",
        "epoll_wait",
        "exit_group",
        "linkat",
        "renameat",
        "unlinkat",
        "mkdirat",
        "ftruncate",
        "waitid",
        "pread64",
    ),
)
ERRORS: Mapping[str, Sequence[str]] = {
    "openat": ("EMFILE", "EIO", "ENOSPC", "EINTR", "ENOMEM"),
    "write": ("ENOSPC", "EIO", "EINTR", "EDQUOT"),
    "pwrite64": ("ENOSPC", "EIO"),
    "pread64": ("EIO",),
    "read": ("EIO", "EINTR"),
    "link": ("ENOSPC", "EIO"),
    "linkat": ("ENOSPC", "EIO"),
    "rename": ("ENOSPC", "EIO"),
    "renameat": ("ENOSPC", "EIO"),
    "unlinkat": ("EIO",),
    "ftruncate": ("EIO",),
    "fallocate": ("ENOSPC",),
    "fsync": ("EIO", "ENOSPC", "EINTR"),
    "mkdir": ("ENOSPC", "EIO"),
    "mkdirat": ("ENOSPC", "EIO"),
    "flock": ("ENOLCK", "EINTR"),
    "getdents64": ("EIO",),
    "pidfd_open": ("EMFILE",),
    "pidfd_send_signal": ("EPERM",),
    "pipe2": ("EMFILE",),
    "poll": ("EINTR",),
    "waitid": ("EINTR",),
    "vfork": ("EAGAIN", "ENOMEM"),
}
"""Possible errors by call. Not `newfstatat`: nearly all of them belong to imports, and Python 3.11 crashes by one."""
STOPPED = frozenset(Victim) - {Victim.LOOKER, Victim.TMUX_CLIENT, Victim.STANDBY, Victim.ALL}
"""Victims that live long enough to be stopped."""
MORE_DISTURBANCES = (0, 0, 1, 2)
MORE_HITS = (0, 1, 2, 3, 4, 6)
"""Number of processes hit in a trial besides the first."""
LATEST = {Anchor.LAUNCHED: 0.8, Anchor.BEGUN: 0.6, Anchor.ENDING: 0.15, Anchor.ENDED: 0.05}
"""The longest delay after each, in seconds."""


def draw(seed: int, number: int, only: Sequence[Victim], usual: Usual) -> Plan:
    """Draw a trial; `only` are the victims to choose from, `usual` is empty without strace."""
    chance = random.Random(f"{seed}/{number}")
    first = chance.choice(only or list(Victim))
    scene = chance.choice(SCENES[first])
    near = [victim for victim in only or Victim if scene in SCENES[victim]]
    runs = RUNS.get(scene, 1)
    behaviours = tuple(_behaviour(chance, scene) for _ in range(runs))
    kills: list[Kill] = []
    traps: list[Trap] = []
    together = chance.random() < 0.4
    moment = _moment(chance, first, behaviours[0])
    for victim in (first, *chance.choices(near, k=chance.choice(MORE_HITS))):
        run = chance.randrange(runs)
        if _can_be_trapped(victim, run, traps, usual) and chance.random() < 0.5:
            anchor, delay = moment if together else _moment(chance, victim, behaviours[run])
            of_its_own = random.Random(chance.random())  # counts vary a little from time to time
            traps.append(_trap(of_its_own, victim, run, usual[victim], anchor, delay))
        elif victim is not Victim.TMUX_CLIENT:
            anchor, delay = moment if together else _moment(chance, victim, behaviours[run])
            kills.append(Kill(victim, run, anchor, delay, life=chance.uniform(0.02, 0.4)))
    disturbances = tuple(_disturbance(chance, near, behaviours) for _ in range(chance.choice(MORE_DISTURBANCES)))
    return Plan(
        seed=seed,
        number=number,
        scene=scene,
        behaviours=behaviours,
        kills=tuple(kills),
        traps=tuple(traps),
        disturbances=disturbances,
        followed_from=chance.uniform(0.5, 3) if Victim.LOOKER in near and chance.random() < 0.5 else 0.0,
        stop=chance.uniform(0.2, 2.5) if chance.random() < 0.25 else None,
        stops_by_force=chance.random() < 0.3,
        is_slow_to_start=bool(usual) and not traps and chance.random() < 0.1,
        has_groups=chance.random() < 0.7,
    )


def _disturbance(chance: random.Random, near: Sequence[Victim], behaviours: Sequence[str]) -> Disturbance:
    kind = chance.choices(list(Mischief), weights=(6, 1, 1))[0]
    stopped = [victim for victim in near if victim in STOPPED] or [Victim.WRAPPER]
    victim = chance.choice(stopped) if kind is Mischief.STOP else Victim.WRAPPER
    run = chance.randrange(len(behaviours))
    anchor, delay = _moment(chance, victim, behaviours[run])
    return Disturbance(kind, victim, run, anchor, delay, length=chance.uniform(0.1, 1.5))


def _can_be_trapped(victim: Victim, run: int, traps: Sequence[Trap], usual: Usual) -> bool:
    """Return whether a victim can be started under strace, and is not yet."""
    alike = [trap for trap in traps if trap.victim is victim]
    if victim is Victim.LOOKER:
        return victim in usual
    if victim in (Victim.WRAPPER, Victim.LAUNCHER):
        return victim in usual and all(trap.run != run for trap in alike)
    return victim in usual and not alike


def _behaviour(chance: random.Random, scene: Scene) -> str:
    # Runs that wait for others should not wait long, and a hanging one lasts as long as its time limit.
    share = 0.3 if scene in (Scene.QUEUE, Scene.STICKY) else 0.4
    functions = puppet.HANGING if chance.random() < share else puppet.FINISHING
    return chance.choice(functions).__name__.replace("_", "-")


def _moment(chance: random.Random, victim: Victim, behaviour: str) -> tuple[Anchor, float]:
    """Draw a moment that will come: a child that hangs does not end."""
    weights = (9, 1, 1, 0) if victim in (Victim.LAUNCHER, Victim.MCP) else (3, 4, 3, 1)
    if puppet.BEHAVIOURS[behaviour] in puppet.HANGING:
        weights = (weights[0], weights[1], 0, weights[3])
    anchor = chance.choices(list(Anchor), weights=weights)[0]
    return anchor, LATEST[anchor] * chance.random() ** 2


def _trap(
    chance: random.Random, victim: Victim, run: int, usual: Mapping[str, Calls], anchor: Anchor, delay: float
) -> Trap:
    """Draw a call that the victim makes; errors only during its own work, kills now and then before that."""
    is_kill = victim is Victim.TMUX_CLIENT or chance.random() < 0.5
    calls = [call for call in (KILLED_AT if is_kill else ERRORS) if _own(usual, call)]
    call = chance.choice(calls)
    lowest = 1 if is_kill and chance.random() < 0.15 else usual[call].before + 1
    # A looker that finds something lost has more to do than the counted one.
    more = _own(usual, call) if victim is Victim.LOOKER else 0
    count = chance.randint(lowest, usual[call].total + more)
    error = "" if is_kill else chance.choice(ERRORS[call])
    for_good = error == "ENOSPC" and chance.random() < 0.5
    return Trap(victim, run, call, count, error, for_good, anchor, delay)


def _own(usual: Mapping[str, Calls], call: str) -> int:
    return usual[call].total - usual[call].before if call in usual else 0
