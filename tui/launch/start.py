"""What a launch dialog asks of the engine: checking, saving a preset, starting runs; called in threads."""

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
    from ...core.run.model import RunRequest
    from ..engine_api import EngineApi
    from .form import LaunchForm
    from .values import LaunchValues

SAVE_FIELDS = "save"
"""The `where` of errors about the preset to be saved."""


def check_name(engine: EngineApi, values: LaunchValues) -> None:
    """Raise PresetError for a preset that cannot be saved under its name, as far as its files tell."""
    from ...core.presets.catalog import tiers

    save_as = values.save_as
    if save_as is None:
        return
    name = save_as.name.strip()
    taken = tiers(name, engine.workspace)
    if taken:
        where = "is broken" if not taken[0].usable else str(taken[0].source)
        what = f'a preset "{one_line(name, 60)}" exists already ({where})'
        raise PresetError(what, where=SAVE_FIELDS, hint="choose another name")
    if not save_as.description.strip():
        raise PresetError(
            "the preset needs a description", where=SAVE_FIELDS, hint="say in one sentence what it is for"
        )


def save(engine: EngineApi, values: LaunchValues) -> str:
    """Save the preset and return its path; never replaces a file. Raises SubdeckError."""
    from ...core.presets.write import save_preset

    check_name(engine, values)
    save_as = values.save_as
    assert save_as is not None  # noqa: S101 - for the type: only asked to save one comes here
    directory = preset_dir(engine, save_as.where)
    tools = tool_names(values.tools)
    try:
        return save_preset(directory, save_as.name, save_as.description, values.model, tools, values.prompt)
    except PresetError as error:
        raise PresetError(error.what, where=SAVE_FIELDS, hint=error.hint) from error


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
    engine: EngineApi, form: LaunchForm, values: LaunchValues, saved: str = ""
) -> tuple[SubdeckError, ...]:
    """Return everything that would keep what is values in from being launched, but for a task not yet typed.

    `saved` is a preset saved by an earlier try.
    """
    problems = engine.check(form.to_check(values))
    try:
        if values.save_as is None or values.save_as.name.strip() != saved:
            check_name(engine, values)
    except SubdeckError as error:
        return (*problems, error)
    return problems


def launch(engine: EngineApi, form: LaunchForm, values: LaunchValues, saved: str = "") -> Launched:
    """Save the preset where that is asked for, then start the runs; `saved` is a preset saved by an earlier try.

    Raises what the engine raises, and FailedAfterSaving.
    """
    request, saved_note = form.request(values), ""
    if values.save_as is not None:
        name = values.save_as.name.strip()
        if name != saved:
            if problems := engine.check(request):
                raise problems[0]
            saved_note = f"Saved the preset {one_line(name, 40)} as {short_path(save(engine, values))}"
        request = replace(request, preset=name, tools=None, prompt="")
        try:
            return _launched(engine, (request,) * values.count, saved_note)
        except Exception as error:
            raise FailedAfterSaving(name, error) from error
    return _launched(engine, (request,) * values.count)


def _launched(engine: EngineApi, requests: tuple[RunRequest, ...], saved: str = "") -> Launched:
    runs = engine.launch(requests, background=True)
    what = one_line(runs[0].meta.title, 40)
    summary = f"Launched {what} {runs[0].meta.short_id}" if len(runs) == 1 else f"Launched {runs_word(len(runs))}"
    return Launched(runs[0].run_id, summary, saved)
