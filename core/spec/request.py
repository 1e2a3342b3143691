"""A launch request: the fields of a run, and those of this launch only."""

from __future__ import annotations

from .fields import RunSpec


class RunRequest(RunSpec, frozen=True, kw_only=True):
    """An unresolved request. It has tools and a prompt only for a one-off run."""

    task: str
    preset: str | None = None
    """None for a one-off run."""
    written_model: str | None = None
    """The model as written, before the caller resolved it to `model`; shown, never resolved again."""
    cwd: str | None = None
    """None for the launcher's directory."""
    description: str = ""
    previous: str | None = None
    """The run whose answer replaces `{previous}` in the task."""
    parent_tools: tuple[str, ...] | None = None
    """The parent's active tools, from which denied tools are removed. None if unknown."""
    parent_has: tuple[str, ...] | None = None
    """All tools of the parent, active or not: they bound an allowlist. None for `parent_tools` only."""
    parent_model: str | None = None
    """The parent's model, for `default_model: inherit`."""
    parent_models: tuple[str, ...] | None = None
    """All models of the parent, which is then pi; None if unknown."""
    parent_session: str | None = None
    """The parent's pi session file; None without a known parent."""
    isolated: bool | None = None
    """True without the parent's context, False with it; None leaves it to preset and settings."""
    rerun: str | None = None
    follow_up: str | None = None
    """The run whose conversation this one continues, if known."""
    child_session: str | None = None
    """Id of the conversation to continue; None for a new one, or the newest of a sticky preset."""
    by_hand: bool = False
    """Whether a person continues it in the agent's own program."""
    only_lowers: bool = False
    """Whether its limits count only below the preset's, as for a parent agent."""
    over_budget: bool = False
    """Whether it is launched even if the day's budget is used up."""
