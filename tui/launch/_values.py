"""The values of a launch dialog's fields, or those for an existing run; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.config.host_settings import read_needs
from ...core.run.limits import LIMITS, Unit
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
"""Maximum number of runs in one launch."""
ASKED_LIMITS = {name: limit for name, limit in LIMITS.items() if limit.label}
"""The limits that are fields of the dialog."""
NO_TOOLS = "none"
"""In the tools field: a run without tools."""


class SaveAs(Struct, frozen=True):
    """The preset to save from a one-off run."""

    name: str
    where: str
    """For this project or for all, in the dialog's words."""
    description: str


class LaunchValues(Struct, frozen=True, kw_only=True):
    """As typed, unchecked."""

    task: str = ""
    agent: str = ""
    """Its name, or `auto`; empty for that of preset and settings."""
    model: str = ""
    cwd: str = ""
    runner: str = ""
    host: str = ""
    """With the runner hosts: the only allowed host; empty for any."""
    needs: str = ""
    """Requirements on the host, as `gpu=1 mem=32`."""
    copies: str = "1"
    tools: str = ""
    prompt: str = ""
    context: bool = True
    """Whether to pass on a conversation if there is one."""
    previous: bool = True
    """Whether `{previous}` stands for an answer."""
    worktree: WorktreeFrom = WorktreeFrom.NONE
    """Its starting point."""
    check: str = ""
    """Name of the check after the run; empty for none."""
    limits: dict[str, str] = {}
    """By field; without a field its value is the preset's or the settings'."""
    save_as: SaveAs | None = None

    def limit(self, name: str) -> float | None:
        """Return a typed limit; None if empty, 0 if invalid."""
        written = self.limits.get(name, "").strip()
        if not written:
            return None
        if LIMITS[name].unit is Unit.DOLLARS:
            written = written.removeprefix("$").replace(",", "")
            return float(written) if _is_number(written.replace(".", "", 1)) else 0.0
        written = written.replace(",", "").replace("_", "")
        return int(written) if _is_number(written) else 0

    @property
    def is_remote(self) -> bool:
        return self.runner == RunnerKind.HOSTS

    @property
    def needed(self) -> dict[str, float]:
        """The host's requirements, by label. Raises UsageError."""
        return read_needs(self.needs.replace(",", " ").split())

    @property
    def count(self) -> int:
        """Number of runs; 0 if it is too large or not a number."""
        written = self.copies.strip() or "1"
        count = int(written) if written.isdecimal() and len(written) < 10 else 0
        return count if count <= COPIES else 0


def _is_number(text: str) -> bool:
    return text.isdecimal() and text.isascii() and len(text) < 16


def tool_names(written: str) -> tuple[str, ...] | None:
    """Parse a tools field: None for the agent's default, an empty tuple for `none`."""
    names = tuple(written.replace(",", " ").split())
    return () if names == (NO_TOOLS,) else names or None


def request_again(run: RunSnapshot) -> RunRequest:
    """Return the request of a run; the prompt of a one-off run is not in its snapshot."""
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
        **{name: getattr(meta.limits, name) for name in ASKED_LIMITS},
    )


def field_name(limit: str) -> str:
    """Return the name of a limit's field in the dialog."""
    return limit.replace("_", "-")


def written_amount(amount: float | None) -> str:
    """Return a limit as typed text; empty for none."""
    return "" if amount is None else f"{amount:.15g}"


def written_needs(needs: Mapping[str, float] | None) -> str:
    """Return the host's requirements as typed text: `gpu=1 mem=32`."""
    return " ".join(f"{one_line(name, 64)}={amount:.15g}" for name, amount in (needs or {}).items())


def worktree_of(meta: RunMeta) -> WorktreeFrom:
    """Return the worktree's starting point for a run like it."""
    plan = meta.worktree
    if plan is None:
        return WorktreeFrom.NONE
    return WorktreeFrom.HEAD if plan.from_head else WorktreeFrom.FILES


def asked_model(meta: RunMeta) -> str:
    """Return the requested model; "" if the agent or a parent decided."""
    from ...core.models.catalog import INHERIT

    return "" if meta.requested_model == INHERIT else one_line(meta.requested_model)


def asked_tools(meta: RunMeta) -> str:
    """Return a run's tools as typed in the field of a one-off run."""
    if meta.tools.resolved is None:
        return ""
    return one_line(" ".join(tool for tool in meta.tools.resolved if tool != FINALIZE_TOOL)) or NO_TOOLS
