"""What somebody asks for: the fields of a run, and what is asked of one launch alone."""

from __future__ import annotations

from .fields import RunSpec


class RunRequest(RunSpec, frozen=True, kw_only=True):
    """What somebody asks for; nothing in it is resolved yet. Of tools and prompt it has those of a one-off run."""

    task: str
    preset: str | None = None
    """None asks for an ad hoc run."""
    written_model: str | None = None
    """What the caller's own resolver made `model` of, as it was written; it is shown, never resolved again."""
    cwd: str | None = None
    """None means the launcher's own."""
    description: str = ""
    previous: str | None = None
    """The run whose answer stands for `{previous}` in the task."""
    parent_tools: tuple[str, ...] | None = None
    """The tools that a parent has active: a denial starts from them. None where no parent says."""
    parent_has: tuple[str, ...] | None = None
    """All that a parent has, switched on or not: they bound an allowlist. None: no more than `parent_tools`."""
    parent_model: str | None = None
    """The model of a parent, for `default_model: inherit`."""
    parent_models: tuple[str, ...] | None = None
    """All models that a parent has, which is a pi then; None where no parent says."""
    parent_session: str | None = None
    """pi's session file of a parent; None where no parent is known."""
    isolated: bool | None = None
    """True for a run without its parent's context, False for one with it; None leaves it to preset and settings."""
    rerun: str | None = None
    follow_up: str | None = None
    """The run whose child session this one continues, where that is known."""
    child_session: str | None = None
    """Id of the child session to continue; None begins a new one, or takes the newest of a sticky preset."""
    by_hand: bool = False
    """Whether a person goes on with it, in the agent's own program."""
    only_lowers: bool = False
    """Whether its limits count only where they are below the preset's, as for a parent agent."""
    over_budget: bool = False
    """Whether it is launched although the day's budget is used up."""
