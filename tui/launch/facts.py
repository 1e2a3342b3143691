"""What a launch dialog shows of its preset: read from files in a thread, after the dialog is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.launch.preview import tools_words
from ...core.run.describe import limits_words
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from ...core.launch.preview import Preview
    from ...core.presets.catalog import Preset
    from ..engine_api import EngineApi

WARNINGS = 2
"""Warnings that a dialog has room for; more are counted."""


class LaunchFacts(Struct, frozen=True):
    """One calm line each; empty where there is nothing to say."""

    thinking: str = ""
    tools: str = ""
    limits: str = ""
    warnings: str = ""
    models: tuple[str, ...] = ()
    """What the model's field offers."""


def written_facts(preset: Preset | None) -> LaunchFacts:
    """Return what the preset's file alone says."""
    return _facts(preset, None, ()) if preset else LaunchFacts()


def read_facts(engine: EngineApi, preset: Preset | None) -> LaunchFacts:
    """Return what a run of the preset would really get here. Reads files."""
    from ...core.launch.model import model_choices
    from ...core.launch.preview import preview

    view = preview(preset, engine.workspace) if preset else None
    models = model_choices(preset.agent if preset else None, engine.settings)
    return _facts(preset, view, models) if preset else LaunchFacts(models=models)


def _facts(preset: Preset, view: Preview | None, models: tuple[str, ...]) -> LaunchFacts:
    tools = tools_words(preset, view.tools if view else None) or _written_tools(preset)
    limits = limits_words(view.limits if view else preset.limits)
    tries = view.max_attempts if view else preset.max_attempts
    finalize = f"asked for its result at most {tries} times" if tries else "asked for its result"
    thinking = (view.model.thinking if view and view.model else None) or preset.thinking
    return LaunchFacts(
        thinking=one_line(thinking or "", 40),
        tools=one_line(tools, 300),
        limits=", ".join(filter(None, (limits, finalize if preset.finalize else ""))),
        warnings=_warnings((*preset.warnings, *(view.warnings if view else ()))),
        models=models,
    )


def _written_tools(preset: Preset) -> str:
    if preset.denied_tools:
        return f"all but {', '.join(preset.denied_tools)}"
    return "none" if preset.tools == () else "the agent's own set"


def _warnings(warnings: tuple[str, ...]) -> str:
    shown = [f"! {one_line(warning, 200)}" for warning in dict.fromkeys(warnings)]
    if len(shown) > WARNINGS:
        shown[WARNINGS - 1 :] = [f"! {len(shown) - WARNINGS + 1} more warnings; the first is above"]
    return "\n".join(shown)
