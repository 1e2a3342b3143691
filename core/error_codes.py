"""Exit codes, and the errors that have a stable code for programs; the error reference is generated from both."""

from __future__ import annotations

EXIT_CODES = {
    0: "The command succeeded. For `run`, `wait` and `replay`: the run completed.",
    1: "The run failed, or the command did its work only in part.",
    2: "Nothing was started or changed: the request, a settings file or a preset is wrong.",
    3: "The run was aborted. For `send` and `reply`: the message came too late.",
    4: "The run completed, but its check did not pass.",
    70: "An unexpected error. Runs that were started continue.",
    124: "The time of `--timeout` ran out. The runs continue.",
    130: "Interrupted with ctrl-C.",
}
"""By exit code."""
SIGNALLED = "The app was ended by signal N. Runs continue."
"""For the exit codes 128 + N."""

CODES = {
    "agent.not_installed": "The agent's program is not installed.",
    "agent.unavailable": "The agent cannot be started here.",
    "agent.unknown": "No agent has this name.",
    "budget.exceeded": "The budget of the day or of the project is used up.",
    "check.not_found": "No check of your settings has this name.",
    "directory.not_found": "The directory does not exist.",
    "disk.full": "The disk is full.",
    "file.not_found": "The file does not exist.",
    "file.permission_denied": "The file cannot be opened with your permissions.",
    "git.failed": "A git command failed.",
    "git.locked": "Another git process holds a lock in the repository.",
    "git.missing": "git is not installed, or too old.",
    "git.not_a_repository": "The directory is not in a git repository.",
    "hosts.none": "No hosts are set up to run on.",
    "internal.unexpected": "An unexpected error: please report it.",
    "launch.failed": "The run could not be started.",
    "model.invalid": "The model cannot be used as it is written.",
    "model.invalid_role": "The role is unknown, or its model cannot be used.",
    "model.missing": "Neither the call nor the preset nor the settings name a model.",
    "model.not_found": "The agent does not have this model.",
    "output.failed": "The output could not be written.",
    "permissions.not_enforceable": "The agent cannot enforce a permission rule.",
    "preset.invalid": "The preset cannot be used.",
    "preset.not_found": "No preset has this name.",
    "project.untrusted": "The project's `.pi/subagents` belongs to another user, or leads out of the project.",
    "request.changed": "The request is not the one that was read.",
    "request.not_found": "The run has no such open request.",
    "run.ambiguous": "Several runs match.",
    "run.busy": "The run has not finished.",
    "run.deleted": "The run is in the trash.",
    "run.finished": "The run has finished.",
    "run.not_found": "No run matches.",
    "run.not_interactive": "The run takes no messages.",
    "run.untrusted": "The run is untrusted: your subdeck did not make it.",
    "runner.tmux_missing": "tmux is not installed.",
    "runner.unavailable": "The runner cannot be used here.",
    "settings.invalid": "A settings file cannot be used.",
    "task.empty": "The task is empty.",
    "undo.nothing": "There is nothing to undo.",
    "usage.confirmation_required": "Confirmation is needed, but stdin is not a terminal. Pass `--yes`.",
    "usage.invalid_value": "The value of an option or argument is invalid.",
    "usage.missing_argument": "A required argument is missing.",
    "usage.terminal_required": "The command needs a terminal.",
    "usage.unexpected_argument": "There are more arguments than the command takes.",
    "usage.unknown_command": "No command has this name.",
    "usage.unknown_option": "The command does not have this option.",
}
"""What each code means, in one sentence."""
