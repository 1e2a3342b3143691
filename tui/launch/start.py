"""What a launch dialog has the engine do; called in threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import PresetError, SubdeckError
from ...core.run.describe import runs_word
from ...core.text.plain import one_line
from ..presets.draft import preset_dir
from ..text.format import short_path
from .values import LaunchValues, tool_names

if TYPE_CHECKING:
    from ...core.engine import Engine
    from ...core.run.model import RunRequest
    from .form import LaunchForm
    from .values import LaunchValues

PLACE = "save"
"""What an error calls the fields of the preset to be saved."""


def refuse_name(engine: Engine, filled: LaunchValues) -> None:
    """Raise PresetError for a preset that cannot be saved under its name, as far as that is told by the files."""
    from ...core.presets.catalog import tiers

    save_as = filled.save_as
    if save_as is None:
        return
    name = save_as.name.strip()
    taken = tiers(name, engine.workspace)
    if taken:
        where = "is broken" if not taken[0].usable else str(taken[0].source)
        what = f'there is a preset "{one_line(name, 60)}" already ({where})'
        raise PresetError(what, where=PLACE, hint="choose another name")
    if not save_as.description.strip():
        raise PresetError("the preset needs a description", where=PLACE, hint="say in one sentence what it is for")


def save(engine: Engine, filled: LaunchValues) -> str:
    """Save the preset and answer its path. Raises SubdeckError; never replaces a file."""
    from ...core.presets.write import save_preset

    refuse_name(engine, filled)
    save_as = filled.save_as
    assert save_as is not None
    directory = preset_dir(engine, save_as.where)
    tools = tool_names(filled.tools)
    try:
        return save_preset(directory, save_as.name, save_as.description, filled.model, tools, filled.prompt)
    except PresetError as error:
        raise PresetError(error.what, where=PLACE, hint=error.hint) from error


class FailedAfterSaving(Exception):
    """The preset is a file by now, but no run of it was started."""

    def __init__(self, preset: str, reason: Exception) -> None:
        super().__init__(str(reason))
        self.preset = preset
        self.reason = reason


class Launched(Struct, frozen=True):
    run_id: str
    """Of the first one."""
    summary: str
    saved: str = ""
    """Which preset was saved and where, for a person; empty for none."""


def what_would_fail(
    engine: Engine, form: LaunchForm, filled: LaunchValues, saved: str = ""
) -> tuple[SubdeckError, ...]:
    """Return everything that would keep what is filled in from being launched, but for a task not yet typed.

    `saved` is a preset saved by an earlier try.
    """
    problems = engine.check(form.to_check(filled))
    try:
        if filled.save_as is None or filled.save_as.name.strip() != saved:
            refuse_name(engine, filled)
    except SubdeckError as error:
        return (*problems, error)
    return problems


def launch(engine: Engine, form: LaunchForm, filled: LaunchValues, saved: str = "") -> Launched:
    """Save the preset where that is wished, then start the runs; `saved` is a preset saved by an earlier try.

    Raises what the engine raises, and FailedAfterSaving.
    """
    request, told = form.request(filled), ""
    if filled.save_as is not None:
        name = filled.save_as.name.strip()
        if name != saved:
            if problems := engine.check(request):
                raise problems[0]
            told = f"Saved the preset {one_line(name, 40)} as {short_path(save(engine, filled))}"
        request = replace(request, preset=name, tools=None, prompt="")
        try:
            return _launched(engine, (request,) * filled.count, told)
        except Exception as error:
            raise FailedAfterSaving(name, error) from error
    return _launched(engine, (request,) * filled.count)


def _launched(engine: Engine, requests: tuple[RunRequest, ...], saved: str = "") -> Launched:
    runs = engine.launch(requests, background=True)
    what = one_line(runs[0].meta.title, 40)
    summary = f"Launched {what} {runs[0].meta.short_id}" if len(runs) == 1 else f"Launched {runs_word(len(runs))}"
    return Launched(runs[0].run_id, summary, saved)
