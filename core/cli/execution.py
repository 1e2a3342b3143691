"""Start a run for `subdeck run` and `bg`, without the option parser: the agent waits until its launcher is loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ..config.yaml_tree import read_text
from ..engine import Engine
from ..errors import ContentError, FollowingFailed, PresetError, RunDeleted, SubdeckError, UsageError, explained, reason
from ..project.read_marks import mark_read
from ..project.registry import count
from ..run.model import RunnerKind, RunResult, RunStatus, WorktreeFrom
from ..run.snapshot import RunSnapshot
from ..run.tool_policy import parse_tools
from ..spec.request import RunRequest
from ..text.plain import one_line
from ._stdio import Canceller, read_stdin
from .output import (
    DELETED_CODE,
    Note,
    Output,
    Piece,
    Verbatim,
    exit_code,
    is_terminal,
    note,
    render,
    run_to_end,
    show_error,
    worst,
)

if TYPE_CHECKING:
    from ..run.documents import ResultDocument
    from ..run.snapshot import Counts

DESCRIPTION_LENGTH = 80
"""Characters of the task that become the description of a saved preset without one."""


class Started(Struct, frozen=True, rename="camel"):
    """A run that was started in the background."""

    run_id: str
    status: RunStatus
    counts: Counts
    """The background runs of the project."""
    artifacts: dict[str, str]
    """Files of the run by name."""


def main(args: Sequence[str]) -> int:
    """Execute `subdeck run PRESET TASK`; return the exit code."""
    return run_to_end(lambda: run(args))


def run(args: Sequence[str], *, as_json: bool = False, strict: bool = False, **options: Any) -> int:
    """Start a run, show its progress on stderr and print its answer on stdout; return the exit code."""
    engine = Engine.open()
    request = _read_request(engine, args, **options)
    with Canceller() as canceller:
        launched = engine.launch((request,), background=False)
        from ._foreground import watch  # while the agent starts

        try:
            result, is_read = watch(engine, launched, canceller)
        except FollowingFailed:
            raise
        except (SubdeckError, OSError) as error:
            show_error(explained(error), as_json=as_json)
            return DELETED_CODE
        try:
            answer = Verbatim(result.final_text) if result.status is RunStatus.COMPLETED and result.final_text else ""
            if as_json or answer:
                render(Output(lambda: _document(result), answer), as_json=as_json)
                is_read = True
        except OSError as error:
            is_read = False
            what = f"the run finished, but its answer could not be printed: {error.strerror}"
            hint = f"subdeck logs {result.run_id} shows it"
            show_error(SubdeckError(what, where="stdout", hint=hint), as_json=as_json)
        if is_read:
            mark_read(engine.project.root, (result.run_id,))
        return exit_code(result.status, result.check, result.reason, strict=strict)


def start(args: Sequence[str], *, as_json: bool = False, strict: bool = False, **options: Any) -> int:
    """Start a run in the background and print its id; return 0, or the exit code of `run` if it has already ended."""
    engine = Engine.open()
    launched = engine.launch((_read_request(engine, args, **options),), background=True)
    if not launched:
        deleted = RunDeleted("right after its start", where=engine.project.runs)
        show_error(deleted, as_json=as_json)
        return DELETED_CODE
    (started,) = launched
    try:
        render(Output(lambda: _started(engine, started), _started_text(started)), as_json=as_json)
    except (SubdeckError, OSError) as error:
        what = f"run {started.run_id} was started, but its id could not be printed: {reason(error)}"
        hint = f"subdeck status {started.meta.short_id} shows it"
        show_error(SubdeckError(what, where="stdout", hint=hint), as_json=as_json)
    return worst(launched, strict=strict)


def _document(result: RunResult) -> ResultDocument:
    from ..run.documents import result_document

    return result_document(result)


def _started(engine: Engine, run: RunSnapshot) -> Started:
    counts = count(snapshot for snapshot in engine.snapshots() if snapshot.meta.background)
    return Started(run.run_id, run.status, counts, engine.artifacts(run.run_id))


def _started_text(run: RunSnapshot) -> Iterator[Piece]:
    yield run.run_id
    from ..run import describe

    name = run.meta.short_id
    if run.has_ended:
        yield Note(one_line(f"{describe.state(run)}: {describe.doing(run)}"))
    elif describe.is_held(run):
        yield Note(f"{describe.QUEUE_HELD}.")
    elif is_terminal(sys.stdout):
        yield Note(f"follow it with subdeck logs -f {name}, wait for it with subdeck wait {name}")


def _read_request(
    engine: Engine,
    args: Sequence[str],
    *,
    no_preset: bool = False,
    previous: str | None = None,
    tools: str | None = None,
    prompt: str | None = None,
    save_as: str | None = None,
    needs: Sequence[str] = (),
    worktree: str | None = None,
    no_worktree: bool = False,
    **asked: Any,
) -> RunRequest:
    """Make a request from arguments and options; it takes the options of `asked` unchanged. Raises UsageError.

    Reads stdin and files, and saves the preset if `--save-as` is given.
    """
    preset, task = _preset_and_task(args, no_preset=no_preset)
    ad_hoc_options = {"--tools": tools, "--prompt": prompt, "--save-as": save_as}
    option_names = [name for name, value in ad_hoc_options.items() if value is not None]
    if preset is not None and option_names:
        raise UsageError(
            f"{', '.join(option_names)} cannot be used with a preset",
            where=option_names[0],
            hint="a preset sets its own tools and prompt: edit its file, or use --no-preset",
        )
    if save_as is not None:
        _check_save_as(save_as)
    request = RunRequest(
        previous=engine.find((previous,))[0] if previous else None,
        task=read_stdin("task") if task == "-" else task,
        preset=preset,
        tools=None if tools is None else parse_tools(tools),
        prompt=_read_prompt(prompt) if prompt else "",
        needs=_needs(needs),
        worktree=_worktree(worktree, no_worktree=no_worktree),
        **asked,
    )
    if save_as is not None:
        _save(engine, save_as, request)
    return request


def _worktree(begins: str | None, *, no_worktree: bool) -> WorktreeFrom | None:
    if begins and no_worktree:
        raise UsageError(
            "--worktree and --no-worktree contradict each other", where="--worktree", hint="use only one of them"
        )
    return WorktreeFrom.NONE if no_worktree else WorktreeFrom(begins) if begins else None


def _needs(texts: Sequence[str]) -> dict[str, float] | None:
    """Return the resources that the host must have; None without --needs. Raises UsageError."""
    if not texts:
        return None
    from ..config.host_settings import read_needs

    return read_needs(texts)


def _preset_and_task(args: Sequence[str], *, no_preset: bool) -> tuple[str | None, str]:
    match args:
        case [task] if no_preset:
            return None, task
        case [preset, task] if not no_preset:
            return preset, task
        case []:
            raise UsageError(
                f"{'TASK' if no_preset else 'PRESET and TASK'} missing",
                hint="subdeck presets lists the presets; --no-preset runs without one",
                code="usage.missing_argument",
            )
        case [only]:
            raise UsageError(
                "PRESET or TASK is missing",
                where=f'"{one_line(only, 60)}"',
                hint='use subdeck run PRESET "what to do"; "-" as TASK reads stdin; --no-preset takes only TASK',
                code="usage.missing_argument",
            )
        case [preset, _] if no_preset:
            name = one_line(preset, 60)
            raise UsageError(
                f'--no-preset takes only TASK, but "{name}" comes before it',
                where="--no-preset",
                hint=f'remove "{name}", or remove --no-preset to run it as a preset',
            )
        case _:
            expected = "TASK alone" if no_preset else "PRESET and TASK"
            raise UsageError(
                f"{len(args)} arguments given, expected {expected}",
                where=f'"{one_line(args[-1], 60)}"',
                hint="put the task in quotes",
                code="usage.unexpected_argument",
            )


def _read_prompt(path: str) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        where = f"--prompt {one_line(path)}"
        raise UsageError("the file does not exist", where=where, code="file.not_found") from None
    except ContentError as error:
        raise UsageError(error.what, where=f"--prompt {one_line(path)}", hint=error.hint) from error


def _check_save_as(name: str) -> None:
    """Raise PresetError if no preset can be saved under this name."""
    from ..presets.write import check_new_name

    try:
        check_new_name(name)
    except PresetError as error:
        raise PresetError(error.what, where="--save-as", hint=error.hint) from error


def _save(engine: Engine, name: str, request: RunRequest) -> None:
    """Save a one-off request as a preset, after a check that it can be launched."""
    for problem in engine.check(request, asks=True):
        raise problem
    from ..presets.write import save_preset

    description = one_line(request.description) or one_line(request.task, DESCRIPTION_LENGTH)
    spec = replace(request, agent=None, runner=RunnerKind.HOSTS if request.runner == RunnerKind.HOSTS else None)
    path = save_preset(engine.project.home, name, description, spec)
    note(f"saved as {one_line(path)}")
