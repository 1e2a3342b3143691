"""Call one of the three tools: the one handler for every kind of parent."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from ..errors import SubdeckError, nearest
from ..text.plain import one_line
from .background import background_agent, background_agent_status
from .errors import CallRejected, ToolError, argument_error, rejection, tool_error
from .parent import Parent
from .results import CallResult
from .schema import BACKGROUND, NAMES, STATUS, SUBAGENT, is_child
from .subagent import ProgressFailed, Report, subagent

if TYPE_CHECKING:
    from ..engine import Engine
    from ..project.watch import Stop


def call_tool(
    engine: Engine,
    name: str,
    params: object,
    *,
    parent: Parent,
    progress: Report | None = None,
    cancelled: Stop | None = None,
) -> CallResult:
    """Do what a parent asks; a call that cannot be done returns errors instead of raising them.

    `engine` was opened with the parent's session and kind. `progress` is called in this thread, at the beginning and
    then at most four times a second; what it raises cancels the runs and is raised here. `cancelled` may be set by any
    thread at any time: the runs of a foreground call are then stopped as cancelled, and the result says so.
    """
    cancelled = cancelled or threading.Event()
    try:
        _check(name, cancelled)
        if name == SUBAGENT:
            return subagent(engine, params, parent=parent, progress=progress, cancelled=cancelled)
        if name == BACKGROUND:
            return background_agent(engine, params, parent=parent)
        return background_agent_status(engine, params, parent=parent)
    except CallRejected as rejected:
        return rejection(rejected.errors)
    except SubdeckError as error:
        return rejection([tool_error(error)])
    except ProgressFailed as failed:
        raise failed.cause from None
    except OSError as error:
        return rejection([ToolError(what=error.strerror or str(error), where=str(error.filename or "disk"))])


def _check(name: str, cancelled: Stop) -> None:
    if name not in NAMES:
        what, hint = f'no tool is called "{one_line(name, 60)}"', nearest(name, NAMES)
        raise CallRejected(argument_error(what, field="name", value=name, valid=NAMES, hint=hint))
    if is_child(os.environ):
        raise CallRejected(argument_error("a child does not delegate", hint="do the task yourself"))
    if cancelled.is_set() and name != STATUS:
        raise CallRejected(argument_error("the call was cancelled before anything was started"))
