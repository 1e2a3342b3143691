"""Where a run may be placed, and what is not possible on another machine."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from .. import paths
from ..agents.agent import Naming
from ..config.host_settings import HostsSettings, checked_host, checked_needs
from ..config.settings import Settings
from ..errors import RunnerUnavailable, UsageError
from ..presets.catalog import Preset
from ..run.model import RunnerKind
from ..spec.fields import RunSpec, table
from ..spec.request import RunRequest
from ..text.plain import one_line

NONE_HERE = (
    "the offline agent was chosen because no agent is installed here; set the agent (--agent pi) if your hosts have one"
)
LOCAL = "remove the runner, or use process"


class Placement(Struct, frozen=True):
    """Which hosts may take a run."""

    host: str = ""
    """The only possible host; empty for any, and on this machine."""
    needs: Mapping[str, float] = {}
    """Resources that the host must have."""
    warnings: tuple[str, ...] = ()
    """Parts of the preset that have no effect."""


def placement(
    request: RunRequest, preset: Preset | None, spec: RunSpec, runner: RunnerKind, settings: Settings
) -> Placement:
    """Decide where a run may be placed. Raises UsageError, or RunnerUnavailable if there are no hosts."""
    if runner is not RunnerKind.HOSTS:
        return _here(request, preset, runner)
    _refuse_without_hosts(settings.hosts)
    if spec.sticky:
        raise UsageError(
            "the preset is sticky: its conversation is a file on this machine, used by one run at a time",
            where="runner",
            hint=f'{LOCAL}, or remove "sticky"',
        )
    if request.by_hand:
        raise UsageError(
            "a run on another machine cannot be opened in the agent: the agent's UI needs this terminal",
            where="runner",
            hint=LOCAL,
        )
    return Placement(checked_host(spec.host or ""), checked_needs(spec.needs or {}))


def _here(request: RunRequest, preset: Preset | None, runner: RunnerKind) -> Placement:
    """Refuse a host requested for a run on this machine; warn instead if it comes from a preset whose runner the call
    replaced.
    """
    asked = [name for name in ("host", "needs") if getattr(request, name)]
    if asked:
        verb = "requires" if len(asked) == 1 else "require"
        raise UsageError(
            f'{" and ".join(asked)} {verb} "runner: hosts" (runner is {runner})',
            where=asked[0],
            hint=f"use --runner hosts, or remove {'it' if len(asked) == 1 else 'them'}",
        )
    written = [table()[name].key or name for name in ("host", "needs") if preset and getattr(preset, name)]
    if not written or preset is None:
        return Placement()
    if request.runner is None:
        verb = "requires" if len(written) == 1 else "require"
        raise UsageError(
            f'the preset sets {" and ".join(written)}, which {verb} "runner: hosts" (runner is {runner})',
            where=preset.path,
            hint='add "runner: hosts" to the preset, or choose another runner in the call',
        )
    return Placement(warnings=(f"{' and '.join(written)} in the preset has no effect with the runner {runner}",))


def _refuse_without_hosts(settings: HostsSettings) -> None:
    """Raise if the settings have no hosts, or contradict each other."""
    from ..config.effective_hosts import effective_hosts  # not needed by runs on this machine

    if not effective_hosts(settings).is_set:
        raise RunnerUnavailable(
            "no hosts are set up",
            code="hosts.none",
            where="runner hosts",
            hint="subdeck hosts try 3 starts three on this machine; add others to "
            f"{paths.user_settings_file()}, as hosts: {{ssh: [me@h1]}} or hosts: {{scheduler: "
            "tls://head:8786}",
        )
    if settings.sparse and settings.code != "git":
        raise UsageError(
            "hosts.sparse selects files to send, but hosts.code: path sends none",
            where="settings hosts.sparse",
            hint="set hosts.code: git, or remove hosts.sparse",
        )


def refuse_worktree() -> None:
    """Raise UsageError: a run on a host cannot use a worktree, which is a directory of this machine."""
    raise UsageError(
        "worktrees are on this machine, but the run is on a host",
        where="worktree",
        hint="launch it without a worktree; with hosts.code: git, each run on a host has its own files",
    )


def refuse_conversation(naming: Naming, agent: str) -> None:
    """Raise UsageError if a host cannot continue the conversation, because the agent keeps it where it began."""
    if naming is not Naming.FILE:
        raise UsageError(
            f"{one_line(agent, 64)} keeps a conversation on the machine where it began, so it cannot "
            "continue on a host",
            where="session id",
            hint=f"{LOCAL}, or remove the id to begin a new session",
        )
