"""The arguments and options of `run` and `bg`, and the request that they make."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from ..config.yaml_tree import read_text
from ..engine import Engine
from ..errors import ContentError, UsageError
from ..run.model import RunRequest
from ..run.tool_policy import parse_tools
from ..text.plain import one_line
from .output import is_terminal, note

STDIN = "-"
DESCRIPTION_LENGTH = 80

EPILOG = (
    'TASK may be "-" for stdin. A task that begins with "-" goes after "--": subdeck run PRESET -- "-v prints …". '
    "Exit codes: 0 completed, 1 failed, 3 aborted; 2 when nothing was started."
)


_OPTIONS = (
    click.option("--model", metavar="M", help="Model as provider/id, instead of the preset's."),
    click.option("--cwd", metavar="DIR", help="Directory the child works in (default: the current one)."),
    click.option("--runner", metavar="R", help="How the child runs: process or tmux."),
    click.option("--agent", metavar="A", help="Which agent: pi, offline, or a name from the settings."),
    click.option("--previous", metavar="RUN", help="The run whose answer replaces {previous} in the task."),
    click.option(
        *("--session-id", "child_session"),
        metavar="ID",
        help="Continue this child session of the same preset and directory.",
    ),
    click.option(
        "--parent-session", metavar="FILE", help="A pi session file; its last turns become the child's context."
    ),
    click.option("--description", metavar="TEXT", default="", help="A few words for the list of runs."),
    click.option("--no-preset", is_flag=True, help="Run without a preset; give only TASK."),
    click.option("--tools", metavar="CSV", help="With --no-preset: the tools the child may use; empty for none."),
    click.option("--prompt", metavar="FILE", help="With --no-preset: a file with the system prompt."),
    click.option("--save-as", metavar="NAME", help="With --no-preset: also save this as a preset of the project."),
)


def launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add arguments and options of a launch to a command; `read_request` takes them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.argument("args", metavar="PRESET TASK", nargs=-1)(command)


def read_request(
    engine: Engine,
    args: Sequence[str],
    *,
    no_preset: bool,
    previous: str | None,
    tools: str | None,
    prompt: str | None,
    save_as: str | None,
    **asked: Any,
) -> RunRequest:
    """Make a request of arguments and options; reads stdin and files, and saves the preset if `--save-as` is given.

    `asked` are the options that a request takes as they are. Raises UsageError.
    """
    preset, task = _preset_and_task(args, no_preset=no_preset)
    if preset is not None:
        _refuse({"--tools": tools, "--prompt": prompt, "--save-as": save_as})
    request = RunRequest(
        previous=engine.find((previous,))[0] if previous else None,
        task=_read_task() if task == STDIN else task,
        preset=preset,
        tools=None if tools is None else parse_tools(tools),
        prompt=_read_prompt(prompt) if prompt else "",
        **asked,
    )
    if save_as:
        _save(engine, save_as, request)
    return request


def _preset_and_task(args: Sequence[str], *, no_preset: bool) -> tuple[str | None, str]:
    match args:
        case [task] if no_preset:
            return None, task
        case [preset, task] if not no_preset:
            return preset, task
        case []:
            wanted = "TASK" if no_preset else "PRESET and TASK"
            hint = "subdeck presets lists the presets; --no-preset runs without one"
            raise UsageError(f"{wanted} missing", hint=hint)
        case [only]:
            raise UsageError(
                "PRESET or TASK is missing",
                where=f'"{one_line(only, 60)}"',
                hint='give both: subdeck run PRESET "what to do"; "-" as TASK reads stdin; --no-preset needs TASK only',
            )
        case _:
            wanted = "TASK alone" if no_preset else "PRESET and TASK"
            raise UsageError(
                f"{len(args)} arguments were given, but {wanted} is expected",
                where=f'"{one_line(args[-1], 60)}"',
                hint="put the task in quotes",
            )


def _refuse(ad_hoc_options: Mapping[str, str | None]) -> None:
    given = [name for name, value in ad_hoc_options.items() if value is not None]
    if given:
        raise UsageError(
            f"{', '.join(given)} cannot be used with a preset",
            where=given[0],
            hint="a preset has its own tools and prompt: edit its file, or use --no-preset",
        )


def _read_task() -> str:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison] - it is, where stdin was closed
        what, hint = "stdin is closed, so no task can be read from it", "give the task as an argument"
        raise UsageError(what, where="task", hint=hint)
    if is_terminal(sys.stdin):
        note("Type the task; ctrl-D on an empty line ends it.")
    return sys.stdin.buffer.read().decode("utf-8", "replace")


def _read_prompt(path: str) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise UsageError("there is no such file", where=f"--prompt {one_line(path)}") from None
    except ContentError as error:
        raise UsageError(error.what, where=f"--prompt {one_line(path)}", hint=error.hint) from error


def _save(engine: Engine, name: str, request: RunRequest) -> None:
    """Save an ad hoc request as a preset, once it is known that it can be launched."""
    for problem in engine.check(request):
        raise problem
    from ..presets.write import save_preset

    description = one_line(request.description) or one_line(request.task, DESCRIPTION_LENGTH)
    path = save_preset(engine.project.home, name, description, request.model, request.tools, request.prompt)
    note(f"saved as {one_line(path)}")
