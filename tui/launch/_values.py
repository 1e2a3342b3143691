"""What is in the fields of a launch dialog, or would be for a run that exists; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.config.host_settings import read_needs
from ...core.run.model import PresetSource, RunnerKind, WorktreeFrom
from ...core.run.outcome import FINALIZE_TOOL
from ...core.spec.request import RunRequest
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...core.run.model import RunMeta
    from ...core.run.snapshot import RunSnapshot

PREVIOUS = "{previous}"
"""In a task: the answer of an earlier run."""
COPIES = 16
"""Runs that are launched at once at most."""
NO_TOOLS = "none"
"""Written into a field of tools for a run without any."""


class SaveAs(Struct, frozen=True):
    """The preset that an ad hoc run becomes."""

    name: str
    where: str
    """For this project or for all, in the dialog's words."""
    description: str


class LaunchValues(Struct, frozen=True, kw_only=True):
    """As written, nothing in it is checked."""

    task: str = ""
    agent: str = ""
    """Its name, or `auto`; empty for that of preset and settings."""
    model: str = ""
    cwd: str = ""
    runner: str = ""
    host: str = ""
    """With the runner hosts: the only one; empty for any."""
    needs: str = ""
    """What that has to have, as `gpu=1 mem=32`."""
    copies: str = "1"
    tools: str = ""
    prompt: str = ""
    context: bool = True
    """Whether a conversation is handed over where there is one."""
    previous: bool = True
    """Whether `{previous}` stands for an answer."""
    worktree: WorktreeFrom = WorktreeFrom.NONE
    """What it begins with."""
    check: str = ""
    """Name of the one that is run at the end; empty for none."""
    budget: str = ""
    """Dollars; empty for those of preset and settings, and so with the tokens."""
    max_tokens: str = ""
    save_as: SaveAs | None = None

    @property
    def dollars(self) -> float | None:
        """What may be spent; None where nothing is written, 0 for what is no amount."""
        if not self.budget.strip():
            return None
        written = self.budget.strip().removeprefix("$").replace(",", "")
        is_amount = written.replace(".", "", 1).isdecimal() and written.isascii() and len(written) < 16
        return float(written) if is_amount else 0.0

    @property
    def tokens(self) -> int | None:
        """How many may be used; None where nothing is written, 0 for what is no number."""
        if not self.max_tokens.strip():
            return None
        written = self.max_tokens.strip().replace(",", "").replace("_", "")
        is_number = written.isdecimal() and written.isascii() and len(written) < 16
        return int(written) if is_number else 0

    @property
    def is_remote(self) -> bool:
        return self.runner == RunnerKind.HOSTS

    @property
    def needed(self) -> dict[str, float]:
        """What the host has to have, by label. Raises UsageError."""
        return read_needs(self.needs.replace(",", " ").split())

    @property
    def count(self) -> int:
        """How many runs; 0 for a number that cannot be launched, or no number at all."""
        written = self.copies.strip() or "1"
        count = int(written) if written.isdecimal() and len(written) < 10 else 0
        return count if count <= COPIES else 0


def tool_names(written: str) -> tuple[str, ...] | None:
    """Read a field of tools: None for the agent's own set, nothing at all where `none` is written."""
    names = tuple(written.replace(",", " ").split())
    return () if names == (NO_TOOLS,) else names or None


def request_again(run: RunSnapshot) -> RunRequest:
    """Ask for the same as a run did; the prompt of an ad hoc run is not in its snapshot."""
    meta, is_remote = run.meta, run.is_remote
    adhoc = meta.preset_source is PresetSource.ADHOC
    return RunRequest(
        task=meta.task,
        preset=None if adhoc else meta.preset,
        model=asked_model(meta) or None,
        cwd=meta.origin_cwd,
        worktree=worktree_of(meta),
        agent=meta.agent,
        runner=meta.runner,
        host=meta.host if is_remote else None,
        needs=meta.needs if is_remote else None,
        description=meta.description,
        tools=meta.tools.resolved if adhoc else None,
        rerun=meta.run_id,
        check=meta.check,
        budget=meta.limits.budget,
        max_tokens=meta.limits.max_tokens,
    )


def written_amount(amount: float | None) -> str:
    """Return dollars or tokens as they are written into a field; empty for none."""
    return "" if amount is None else f"{amount:.15g}"


def written_needs(needs: Mapping[str, float] | None) -> str:
    """Return what a host has to have as it is written into a field: `gpu=1 mem=32`."""
    return " ".join(f"{one_line(name, 64)}={amount:.15g}" for name, amount in (needs or {}).items())


def worktree_of(meta: RunMeta) -> WorktreeFrom:
    """Return what the worktree of a run like it begins with."""
    plan = meta.worktree
    if plan is None:
        return WorktreeFrom.NONE
    return WorktreeFrom.HEAD if plan.from_head else WorktreeFrom.FILES


def asked_model(meta: RunMeta) -> str:
    """Return the model as it was asked for; "" where the agent or a parent decided."""
    from ...core.models.catalog import INHERIT

    return "" if meta.requested_model == INHERIT else one_line(meta.requested_model)


def asked_tools(meta: RunMeta) -> str:
    """Return the tools that a run was given, as the field of an ad hoc run has them."""
    if meta.tools.resolved is None:
        return ""
    return one_line(" ".join(tool for tool in meta.tools.resolved if tool != FINALIZE_TOOL)) or NO_TOOLS
