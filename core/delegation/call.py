"""Call one of the three tools; the one handler behind every door."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import SubdeckError, nearest
from ..text.plain import one_line
from .answers import ToolAnswer, ToolProgress
from .background import background_agent, background_agent_status
from .errors import Refused, ToolError, explain, refusal, refuse
from .parent import Parent
from .schema import BACKGROUND, NAMES, STATUS, SUBAGENT, is_child
from .subagent import Untold, subagent

if TYPE_CHECKING:
    from ..engine import Engine
    from ..project.watch import Stop


def call_tool(
    engine: Engine,
    name: str,
    params: object,
    *,
    parent: Parent,
    progress: Callable[[ToolProgress], None] | None = None,
    cancelled: Stop | None = None,
) -> ToolAnswer:
    """Do what a parent asks and answer it; what cannot be done is an answer too.

    `engine` was opened with the parent's session and kind. `progress` is called in this thread, at the beginning and
    then at most four times a second; what it raises cancels the runs and goes through. `cancelled` may be set by any
    thread at any time: the runs of a foreground call are stopped as cancelled, and the call returns that.
    """
    cancelled = cancelled or threading.Event()
    try:
        _check(name, cancelled)
        if name == SUBAGENT:
            return subagent(engine, params, parent=parent, progress=progress, cancelled=cancelled)
        if name == BACKGROUND:
            return background_agent(engine, params, parent=parent)
        return background_agent_status(engine, params, parent=parent)
    except Refused as refused:
        return refusal(refused.errors)
    except SubdeckError as error:
        return refusal([explain(error)])
    except Untold as untold:
        raise untold.fault from None
    except OSError as error:
        raised = ToolError(what=error.strerror or str(error), where=str(error.filename or "disk"))
        return refusal([raised])


def _check(name: str, cancelled: Stop) -> None:
    if name not in NAMES:
        hint = nearest(name, NAMES)
        raise refuse(f'no tool is called "{one_line(name, 60)}"', field="name", value=name, valid=NAMES, hint=hint)
    if is_child(os.environ):
        raise refuse("a child does not delegate", hint="do the task yourself")
    if cancelled.is_set() and name != STATUS:
        raise refuse("the call was cancelled before anything was started")
