"""The kinds of agents, each played by a scripted program, and their differences."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPTED = Path(__file__).parents[1] / "children" / "scripted"


class Kind(NamedTuple):
    name: str
    program: str = ""
    """Its scripted program; empty for the offline agent, which needs none."""
    model: str = ""
    talks: bool = True
    """Whether it takes messages and asks people."""
    steers: bool = True
    """Whether a message joins the current turn; otherwise it ends that turn and begins the next."""
    asks: bool = False
    """Whether it asks for permission on its own, without any rule."""
    priced: bool = True
    """Whether it reports its model's cost."""
    reports_each_message: bool = True
    """Whether it reports tokens while it works, so that limits can end a turn."""
    reports_after_calls: bool = False
    """Whether it reports the tokens of a message only once the calls in it have ended."""
    counts_turns: bool = True
    cut: str = "truncated"
    """The reason of a run whose answer reached the length limit."""
    takes_reasons: bool = True
    """Whether the reason of a denial reaches its model."""

    command_tool: str = "bash"
    """The tool that runs commands, as named in its events."""
    asked_rule: str = "bash(touch *)"
    """A rule about a call that the agent makes."""

    @property
    def kind(self) -> str:
        return self.name.partition("-")[0]

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-I", "-S", str(SCRIPTED / self.program)] if self.program else []


PI = Kind("pi", "pi.py", "fake/scripted")
PI_JSON = PI._replace(name="pi-json", talks=False)
CLAUDE = Kind("claude", "claude.py", "anthropic/claude-scripted", asks=True, cut="model_error")
CODEX = Kind("codex", "codex.py", "openai/gpt-scripted", priced=False, reports_after_calls=True, cut="model_error")
ACP = Kind(
    "acp",
    "acp.py",
    steers=False,
    asks=True,
    reports_each_message=False,
    counts_turns=False,
    takes_reasons=False,
    command_tool="execute",
)
OFFLINE = Kind("offline", model="offline/reader", asked_rule="read(auth.py)")

KINDS = (PI, PI_JSON, CLAUDE, CODEX, ACP, OFFLINE)


def each(holds: Callable[[Kind], bool] = lambda _: True) -> pytest.MarkDecorator:
    """Run a test with each kind that meets a condition."""
    return pytest.mark.parametrize("kind", [*filter(holds, KINDS)], ids=lambda kind: kind.name)


def scripted(kind: Kind) -> bool:
    """Return whether it plays scripts; only the offline agent doesn't."""
    return bool(kind.program)


def talks(kind: Kind) -> bool:
    return kind.talks


def scripted_talks(kind: Kind) -> bool:
    """Return whether it plays scripts and takes messages: one mode of each kind that has a scripted program."""
    return scripted(kind) and talks(kind)


def direct(kind: Kind) -> bool:
    """The same without the kind behind a bridge, which takes a second to start."""
    return scripted_talks(kind) and kind is not ACP
