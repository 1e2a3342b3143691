"""Errors as a parent's model gets them: what is wrong, the value, the valid ones, where it came from, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import AgentUnavailable, ModelError, PresetError, RunnerUnavailable, SubdeckError
from ..presets.catalog import Preset, PresetCatalog
from ..run.model import RunRequest
from ..text.plain import one_line
from .results import CallResult

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

    @property
    def line(self) -> str:
        task = "" if self.index is None else f"task {self.index + 1}: "
        valid = f"valid: {', '.join(self.valid)}" if self.valid else ""
        return ". ".join(filter(None, (f"{task}{self.what} ({self.where})", valid, self.hint)))

    @property
    def fields(self) -> dict[str, Any]:
        fields = {**asdict(self), "valid": list(self.valid)}
        if self.index is None:
            del fields["index"]
        return fields


class CallRejected(Exception):
    """A call cannot be done; nothing was started."""

    def __init__(self, *errors: ToolError) -> None:
        self.errors = errors
        super().__init__(errors[0].what)


def argument_error(
    what: str,
    *,
    field: str = "",
    value: object = "",
    valid: Iterable[str] = (),
    hint: str = "",
    index: int | None = None,
) -> ToolError:
    """Make the error of an argument; long values and long lists of valid ones are shortened."""
    shown = one_line(value if isinstance(value, str) else repr(value), VALUE_LENGTH)
    return ToolError(what=what, field=field, value=shown, valid=tuple(valid)[:VALID], hint=hint, index=index)


def rejection(errors: Sequence[ToolError], **more: Any) -> CallResult:
    """Return the result of a call that was rejected; `more` is what can be said all the same."""
    lines = "\n".join(error.line for error in errors)
    fields: dict[str, Any] = {"error": errors[0].fields, "errors": [error.fields for error in errors], **more}
    return CallResult(f"Nothing was started.\n{lines}" if not more else lines, fields, fields, is_error=True)


def tool_error(
    error: SubdeckError,
    request: RunRequest | None = None,
    *,
    presets: PresetCatalog | None = None,
    models: Sequence[str] = (),
    default_model: str | None = None,
    index: int | None = None,
) -> ToolError:
    """Put an error of the engine, or one about a request, into the form for parents."""
    made = ToolError(what=error.what, where=error.where or ARGUMENT, hint=error.hint, index=index)
    if request is None:
        return made
    match error:
        case PresetError():
            names = [preset.name for preset in presets.presets] if presets else []
            return _about(made, "preset", request.preset, valid=names)
        case ModelError():
            return _about_model(made, request, find_preset(presets, request.preset), default_model, models)
        case AgentUnavailable() | RunnerUnavailable():
            return made if error.where else replace(made, where="settings")
        case _:
            pass
    match error.where:
        case "cwd":
            return _about(made, "cwd", request.cwd, where=ARGUMENT)
        case "task":
            return _about(made, "task", request.task, where=ARGUMENT)
        case "session id":
            return _about(made, "sessionId", request.child_session, where=ARGUMENT)
        case _:
            return made


def _about_model(
    made: ToolError, request: RunRequest, preset: Preset | None, default_model: str | None, models: Sequence[str]
) -> ToolError:
    if request.model:
        return _about(made, "model", request.model, where=ARGUMENT, valid=models)
    if preset and preset.model:
        return _about(made, "model", preset.model, where=preset.path, valid=models)
    if default_model:
        return _about(made, "model", default_model, valid=models)
    hint = 'name a model in the call, add "model: provider/id" to the preset, or set default_model'
    return _about(replace(made, hint=hint), "model", "", valid=models)


def _about(
    made: ToolError, field: str, value: str | None, *, where: str | None = None, valid: Sequence[str] = ()
) -> ToolError:
    shown = one_line(value or "", VALUE_LENGTH)
    return replace(made, field=field, value=shown, where=where or made.where, valid=tuple(valid)[:VALID])


def find_preset(presets: PresetCatalog | None, name: str | None) -> Preset | None:
    return next((preset for preset in (presets.presets if presets else ()) if preset.name == name), None)
