"""Errors as a parent's model gets them: what, which value, the valid ones, where it came from, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from ..errors import AgentUnavailable, ModelError, PresetError, RunnerUnavailable, SubdeckError
from ..presets.catalog import Preset, PresetCatalog
from ..run.model import RunRequest
from ..text.plain import one_line
from .answers import ToolAnswer

ARGUMENT = "tool-call argument"
"""Where a value came from that is in the call itself."""

VALID = 20
"""Valid values that an error names."""

VALUE_LENGTH = 200
"""Characters of a wrong value that are repeated."""


class ToolError(Struct, frozen=True, kw_only=True):
    what: str
    field: str = ""
    """The argument that it is about; empty where it is about none."""
    value: str = ""
    valid: tuple[str, ...] = ()
    """At most `VALID` of them."""
    where: str = ARGUMENT
    hint: str = ""
    index: int | None = None
    """Which task of a parallel call."""

    def line(self) -> str:
        """Say it in one paragraph."""
        task = "" if self.index is None else f"task {self.index + 1}: "
        parts = [f"{task}{self.what} ({self.where})"]
        if self.valid:
            parts.append(f"valid: {', '.join(self.valid)}")
        if self.hint:
            parts.append(self.hint)
        return ". ".join(parts)


class Refused(Exception):
    """A call cannot be done; nothing was started."""

    def __init__(self, errors: Iterable[ToolError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors[0].what)


def refuse(what: str, *, field: str = "", value: object = "", valid: Iterable[str] = (), hint: str = "") -> Refused:
    """Make the refusal of an argument."""
    return Refused([argument_error(what, field=field, value=value, valid=valid, hint=hint)])


def argument_error(
    what: str, *, field: str, value: object = "", valid: Iterable[str] = (), hint: str = "", index: int | None = None
) -> ToolError:
    shown = one_line(value if isinstance(value, str) else repr(value), VALUE_LENGTH)
    return ToolError(what=what, field=field, value=shown, valid=tuple(valid)[:VALID], hint=hint, index=index)


def refusal(errors: Sequence[ToolError], **more: Any) -> ToolAnswer:
    """Return a call that was refused; `more` is what can be told all the same."""
    lines = "\n".join(error.line() for error in errors)
    fields: dict[str, Any] = {"error": _fields(errors[0]), "errors": [_fields(error) for error in errors], **more}
    return ToolAnswer(f"Nothing was started.\n{lines}" if not more else lines, fields, fields, is_error=True)


def _fields(error: ToolError) -> dict[str, Any]:
    fields = asdict(error)
    if error.index is None:
        del fields["index"]
    return {**fields, "valid": list(error.valid)}


def explain(
    error: SubdeckError,
    request: RunRequest | None = None,
    *,
    presets: PresetCatalog | None = None,
    models: Sequence[str] = (),
    default_model: str | None = None,
    index: int | None = None,
) -> ToolError:
    """Put an error of the engine about a request into the form for parents."""
    if request is None:
        return ToolError(what=error.what, where=error.where or ARGUMENT, hint=error.hint, index=index)
    field, value, where, hint = _subject(error, request, presets, default_model)
    valid: Sequence[str] = ()
    if isinstance(error, PresetError) and presets:
        valid = [preset.name for preset in presets.presets]
    elif isinstance(error, ModelError):
        valid = models
    return ToolError(
        what=error.what,
        field=field,
        value=one_line(value or "", VALUE_LENGTH),
        valid=tuple(valid)[:VALID],
        where=where,
        hint=hint,
        index=index,
    )


def _subject(
    error: SubdeckError, request: RunRequest, presets: PresetCatalog | None, default_model: str | None
) -> tuple[str, str | None, str, str]:
    """Which argument an error is about, its value, where that came from, what to do."""
    if isinstance(error, PresetError):
        return "preset", request.preset, error.where or ARGUMENT, error.hint
    if isinstance(error, ModelError):
        if request.model:
            return "model", request.model, ARGUMENT, error.hint
        preset = preset_called(presets, request.preset)
        if preset and preset.model:
            return "model", preset.model, preset.path, error.hint
        if default_model:
            return "model", default_model, error.where, error.hint
        hint = 'name a model in the call, add "model: provider/id" to the preset, or set default_model'
        return "model", "", error.where or ARGUMENT, hint
    if isinstance(error, AgentUnavailable | RunnerUnavailable):
        return "", "", error.where or "settings", error.hint
    arguments = {
        "cwd": ("cwd", request.cwd),
        "task": ("task", request.task),
        "session id": ("sessionId", request.child_session),
    }
    if error.where in arguments:
        field, value = arguments[error.where]
        return field, value, ARGUMENT, error.hint
    return "", "", error.where or ARGUMENT, error.hint


def preset_called(presets: PresetCatalog | None, name: str | None) -> Preset | None:
    return next((preset for preset in (presets.presets if presets else ()) if preset.name == name), None)
