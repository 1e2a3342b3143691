"""A host's report about itself: figures sent with each pull, and the answers for the doctor."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from .. import __version__
from ..agent_kinds import KINDS
from ..agents.choice import choose_agent
from ..config.settings import Settings
from ..config.workspace import load_settings
from ..errors import SubdeckError
from ..git import program as git
from ..paths import Project
from ..system import files
from ..text.plain import one_line
from .protocol import PROTOCOL, AgentVersion, Examine, Examined, HostFacts

_PROBE = ".probe"
_LEAST_FREE_MB = 200
"""Minimum on the spool's disk."""


def fitting_name(name: str) -> str:
    """Return a machine's name with only the characters allowed in host names: `h07`, `build-1.example.org`."""
    clean = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).lstrip(".-")
    return clean[:64] or "host"


def host_facts(*, slots: int, used: int, labels: Mapping[str, float], carrier: str) -> HostFacts:
    """Return current slots and load."""
    return HostFacts(
        slots=slots,
        used=used,
        labels=dict(labels),
        load=round(os.getloadavg()[0], 2),
        cores=len(os.sched_getaffinity(0)),
        memory_mb=_free_memory_mb(),
        subdeck=__version__,
        python=".".join(map(str, sys.version_info[:3])),
        carrier=one_line(carrier, 80),
    )


def examined(
    asked: Examine, *, host: str, spool: str, facts: HostFacts, expiry: Callable[[], float] = float
) -> Examined:
    """Check everything that a run needs here; the only program it starts is `git version`."""
    problems = list(_spool_problems(spool))
    settings = Settings()
    try:
        settings = load_settings(Project(spool))
    except SubdeckError as error:
        problems.append(f"cannot read the host's settings: {error}")
    version, problem = _git()
    problems += filter(None, (problem,))
    names = asked.agents or tuple(dict.fromkeys((*KINDS, *settings.agents)))
    return Examined(
        host=host,
        spool=one_line(spool, 1000),
        facts=facts,
        agents=tuple(_agents(names, settings))[:100],
        missing_variables=tuple(name for name in asked.variables if name not in os.environ),
        git=version,
        clock=time.time(),
        problems=tuple(one_line(text, 1000) for text in problems),
        certificates_until=max(0.0, expiry()),
        protocol=PROTOCOL,
    )


def _agents(names: Iterable[str], settings: Settings) -> Iterator[AgentVersion]:
    for name in names:
        try:
            choice = choose_agent(name, settings)
        except SubdeckError as error:
            where = f"{error.where}: " if os.sep in error.where else ""
            yield AgentVersion(one_line(name, 64), problem=one_line(f"{where}{error.what}", 1000))
        else:
            yield AgentVersion(one_line(name, 64), one_line(choice.version or "", 200))


def _spool_problems(spool: str) -> Iterator[str]:
    """Yield problems of the spool that could lose runs or start them twice."""
    path = os.path.join(spool, _PROBE)
    try:
        files.write_whole(path, b"subdeck\n", durable=True)
        first, second = files.open_lock(path), files.open_lock(path)
        try:
            if not (files.try_lock(first) and not files.try_lock(second)):
                yield f"file locks do not work in {spool}: keep the spool on a local disk"
        finally:
            os.close(first)
            os.close(second)
    except OSError as error:
        yield f"cannot use the spool {spool}: {error.strerror}"
    finally:
        files.remove(path)
    if not files.is_local(spool):
        yield f"{spool} may not be on a local disk: locks may be unreliable there, and lost runs may stay unknown"
    try:
        free = shutil.disk_usage(spool).free // 2**20
    except OSError:
        return
    if free < _LEAST_FREE_MB:
        yield f"only {free} MB free on the disk of {spool}"


def _git() -> tuple[str, str]:
    """Return git's version, and what is wrong with it."""
    try:
        version = git.version()
        git.check_version(git.OLDEST)
    except SubdeckError as error:
        return "", f"{error}"
    return ".".join(map(str, version)), ""


def _free_memory_mb() -> int:
    match = re.search(rb"^MemAvailable:\s+([0-9]+) kB", files.content("/proc/meminfo"), re.MULTILINE)
    return int(match[1]) // 1024 if match else 0
