"""The commands that talk to runs: messages, interruptions, replies to requests; with the keys of line and block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ...core.errors import SubdeckError, UsageError
from ...core.run.describe import runs_word
from ...core.run.model import RequestKind, Verdict, newer_schema
from ...core.run.requests import request_hash, subject_of
from ...core.text.plain import one_line
from ..commands import Commands, Runs, name_of
from ..keys.command import DECK, Action, ActionContext, KeyContext, Method, at, command, moves, needs_own
from ..launch.commands import NO_CONVERSATION, LaunchCommands
from ..text.format import brief_error

if TYPE_CHECKING:
    from ...core.run.events import Field, Request
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi
    from .line import Saying

REQUEST, TALK = KeyContext.REQUEST, KeyContext.TALK
MOST_FAULTS = 2
"""Failed runs that are named with the reason; more are counted."""

SUBJECT = 60
"""Characters of a reply's subject, above the line for writing it."""
REQUEST_GONE = "Not sent: the request was withdrawn or answered elsewhere."


def needs_session(context: ActionContext) -> str:
    """Refuse a finished run without a conversation, and a running one that takes no messages."""
    if context.listening:
        return ""
    if not context.run or context.run.foreign:
        return needs_own(context)
    if not context.run.has_ended:
        return _deafness(context.run)
    return "" if context.run.meta.keeps_session and context.run.child_session_id else NO_CONVERSATION


def needs_turn(context: ActionContext) -> str:
    """Refuse a run without a turn to interrupt."""
    if context.listening:
        return ""
    if (obstacle := needs_own(context)) or context.run is None:
        return obstacle
    if context.run.has_ended:
        return f"This run is already finished ({context.run.status})."
    if context.run.status == "queued":
        return "This run has not started yet. {stop} removes it from the queue."
    if context.run.is_interrupted:
        return "This run is already interrupted. {follow_up} sends the message it is waiting for."
    return _deafness(context.run)


def _deafness(run: RunSnapshot) -> str:
    """Return why an unfinished run takes no messages; empty if it does."""
    if run.can_talk:
        return ""
    later = " You can follow up when it is finished." if run.meta.keeps_session else ""
    if run.newer_schema:
        return f"This run was {newer_schema(run.newer_schema)}."
    if run.elsewhere and not run.is_remote:
        return f"This run belongs to another machine and takes no messages from here.{later}"
    if run.meta.talk is None:
        return f"This run was started by an older subdeck and takes no messages.{later}"
    return f"This run is non-interactive: it takes no messages while it runs.{later}"


def needs_request(context: ActionContext) -> str:
    """Refuse a run without a request."""
    return needs_own(context) or ("" if context.request else "This run has no open request.")


def needs_permission_request(context: ActionContext) -> str:
    if obstacle := needs_request(context):
        return obstacle
    is_permission = context.request is not None and context.request.kind is RequestKind.PERMISSION
    return "" if is_permission else "This is a question. {answer} writes a reply, {deny_request} declines."


def needs_run_rule(context: ActionContext) -> str:
    if obstacle := needs_permission_request(context):
        return obstacle
    return "" if context.request and context.request.run_rule else "This request cannot be allowed for the whole run."


def _answer_name(context: ActionContext) -> str:
    if context.request is None or context.request.kind is RequestKind.PERMISSION:
        return "deny with a reason"
    return "fill in" if context.request.kind is RequestKind.FORM else "reply"


def _choose_name(context: ActionContext) -> str:
    count = len(context.request.choices) if context.request else 0
    return f"to {min(count, 9)} choose" if count > 1 else "choose" if count else ""


def _deny_name(context: ActionContext) -> str:
    is_permission = context.request is None or context.request.kind is RequestKind.PERMISSION
    return "deny" if is_permission else "decline"


def _follow_up_name(context: ActionContext) -> str:
    takes_messages = context.listening or (context.run is not None and not context.run.has_ended)
    return "message" if takes_messages else "follow up"


def _choices(method: Method) -> Method:
    """Declare an action for each of the nine choices that have a key."""
    for number in range(9, 0, -1):
        method = command(
            f"choose_{number}",
            at(REQUEST, str(number)),
            "choose",
            "Reply with the choice with that number.",
            needs_request,
            do=f"choose({number})",
            footer=1 if number == 1 else 0,
            changes=True,
            name_here=_choose_name,
            args=(number,),
        )(method)
    return method


class TalkCommands(Commands):
    @command(
        "follow_up",
        at(DECK, "s"),
        "message, follow up",
        needs=needs_session,
        footer=8,
        changes=True,
        writes=True,
        name_here=_follow_up_name,
        after="rerun_edited",
    )
    def say(self) -> None:
        """Send a message to the run, or to all selected runs. For a finished run, continue its conversation with a new
        task: in the transcript, or in a dialog from other panes.
        """
        from .line import Saying

        launch = self._of(LaunchCommands)
        run = self._deck.run
        if runs := self._listening():
            self._open(runs)
        elif run and self._is_read(run) and launch.has_own_preset(run):
            key = f"{run.run_id} follow-up"
            self._deck.open_talk(Saying(key, f"follow up on {name_of(run)}", partial(launch.go_on, run)))
        else:
            launch.follow_up()

    def _is_read(self, run: RunSnapshot) -> bool:
        """Return whether a completed run's transcript has the focus: its conversation continues there."""
        return run.status == "completed" and self._deck.panes.key_context is KeyContext.TRANSCRIPT

    def say_to(self, run: RunSnapshot) -> None:
        """Do the same for one run, even if others are marked."""
        if run.can_talk:
            self._open([run])
        else:
            self._of(LaunchCommands).follow_up()

    def _open(self, runs: Runs) -> None:
        from .line import Saying

        if len(runs) == 1:
            self._deck.runs.select(runs[0].run_id)
        to = name_of(runs[0]) if len(runs) == 1 else f"{runs_word(len(runs))} (selected)"
        queued = " (added to the prompt)" if all(run.status == "queued" for run in runs) else ""
        ids = tuple(run.run_id for run in runs)
        self._deck.open_talk(Saying(" ".join(ids), f"to {to}{queued}", partial(self._send, runs)))

    async def _send(self, runs: Runs, text: str) -> None:
        faults = await self._bridge.call(_send_all, self._bridge.engine, [run.run_id for run in runs], text)
        self._say_faults("Not sent", runs, faults)
        if len(runs) > 1 and len(faults) < len(runs):
            self._say(f"Sent to {runs_word(len(runs) - len(faults))}")

    @command("interrupt", at(DECK, "I"), "interrupt", needs=needs_turn, changes=True, after="take_over")
    def interrupt(self) -> None:
        """Interrupt the run, or all selected runs: end the current turn and wait for your message ({follow_up})."""
        self.spawn(self._interrupt, [run for run in self._listening() if run.status == "running"])

    async def _interrupt(self, runs: Runs) -> None:
        """Interrupt runs; ask first if there are several."""
        if len(runs) > 1:
            question = f"Interrupt {runs_word(len(runs))}?"
            detail = f"Their current turns end. Each waits for your message ({self._key('follow_up')})."
            if not await self._confirmed(question, detail, "Interrupt"):
                return
        faults = await self._bridge.call(_interrupt_all, self._bridge.engine, [run.run_id for run in runs])
        self._say_faults("Not interrupted", runs, faults)
        if len(faults) < len(runs):
            whom = name_of(runs[0]) if len(runs) == 1 else runs_word(len(runs) - len(faults))
            self._say(f"Interrupting {whom}. {self._key('follow_up')} sends the next message.")

    # --- requests -----------------------------------------------------------------------------------------------------

    @command("allow", at(REQUEST, "y"), "allow", needs=needs_permission_request, footer=1, changes=True)
    def allow(self) -> None:
        """Allow the request once."""
        self._reply(Verdict.ALLOW)

    @command("allow_run", at(REQUEST, "Y"), "allow for this run", needs=needs_run_rule, footer=4, changes=True)
    def allow_run(self) -> None:
        """Allow this and similar requests until the run finishes."""
        self._reply(Verdict.ALLOW_RUN)

    @_choices
    def choose(self, number: int) -> None:
        if (request := self._deck.request.request) and number <= len(request.choices):
            self._reply(Verdict.REPLY, request.choices[number - 1])

    @command("deny_request", at(REQUEST, "n"), "deny", "", needs_request, footer=2, changes=True, name_here=_deny_name)
    def deny(self) -> None:
        """Deny permission, or decline to answer."""
        self._reply(Verdict.DENY)

    @command(
        "answer",
        at(REQUEST, "e", "enter"),
        "reply",
        needs=needs_request,
        footer=3,
        changes=True,
        writes=True,
        name_here=_answer_name,
    )
    def answer(self) -> None:
        """Write a reply, fill in the form, or deny with a reason."""
        from .line import Saying

        run, request = self._deck.request.run, self._deck.request.request
        if run is None or request is None:
            return
        key = f"{run.run_id} {request.id}"
        subject = subject_of(request, SUBJECT, run.meta.cwd)
        match request.kind:
            case RequestKind.PERMISSION:
                send = partial(self._send_reply, run, request, Verdict.DENY)
                self._open_reply(run, request, Saying(key, f"deny with a reason: {subject}", send))
            case RequestKind.FORM if request.fields:
                self._fill_in(run, request, {})
            case _:
                send = partial(self._send_reply, run, request, Verdict.REPLY)
                self._open_reply(run, request, Saying(key, f"reply to: {subject}", send))

    @command("later", at(REQUEST, "escape"), "later", footer=2)
    def later(self) -> None:
        """Leave the request open and go to the transcript."""
        self._deck.transcript.focus()

    in_block = moves((REQUEST,), "move", "request_")
    in_line = (
        Action("say", at(TALK, "enter", "ctrl+s"), "send", "Send the message.", do="say", footer=1, changes=True),
        Action("new_line", at(TALK, "ctrl+j", "shift+enter"), "new line", "Start a new line.", do="new_line", footer=3),
        Action("edit_message", at(TALK, "ctrl+e"), "editor", "Continue writing in your editor ($EDITOR).",
               do="edit_message", footer=4),
        Action("leave_unsaid", at(TALK, "escape"), "cancel", "Close without sending. The draft is kept.",
               do="leave_unsaid", footer=2),
    )  # fmt: skip

    def _open_reply(self, run: RunSnapshot, request: Request, saying: Saying) -> None:
        self._deck.open_talk(replace(saying, obstacle=partial(self._why_gone, run.run_id, request)))

    def _why_gone(self, run_id: str, request: Request) -> str:
        run = self._deck.run_store.get(run_id)
        is_open = run is not None and run.is_waiting and request in run.requests
        return "" if is_open else REQUEST_GONE

    def _fill_in(self, run: RunSnapshot, request: Request, values: dict[str, str]) -> None:
        """Ask for the next field of a form; the values before it are sent with the last one."""
        from ._request_rows import field_line
        from .line import Saying

        number = len(values)
        field = request.fields[number]

        async def take(text: str) -> None:
            filled = {**values, field.name: _chosen(field, text)}
            if len(filled) < len(request.fields):
                self._fill_in(run, request, filled)
            else:
                answers = {name: value for name, value in filled.items() if value}
                await self._send_reply(
                    run, request, Verdict.REPLY, msgspec.json.encode(answers).decode("utf-8", "replace")
                )

        title = f"{number + 1} of {len(request.fields)}: {field_line(field)}"
        key = f"{run.run_id} {request.id} {number}"
        steps = tuple(f"{run.run_id} {request.id} {step}" for step in range(number))
        saying = Saying(
            key,
            title,
            take,
            may_be_empty=not field.required,
            is_step=number + 1 < len(request.fields),
            steps=steps,
        )
        self._open_reply(run, request, saying)

    def _reply(self, verdict: Verdict, text: str = "") -> None:
        """Reply to the shown request, unless it has just replaced another one."""
        block = self._deck.request
        if not block.is_ready:
            self.app.bell()
        elif block.run and block.request:
            self.spawn(self._send_reply, block.run, block.request, verdict, text)

    async def _send_reply(self, run: RunSnapshot, request: Request, verdict: Verdict, text: str = "") -> None:
        """Send a reply; the block moves on to the next request at once."""
        self._mark_replied(run, request, True)
        try:
            read = request_hash(run.run_id, request)
            await self._bridge.call(self._bridge.engine.reply, run.run_id, request.id, verdict, text, read)
        except BaseException:
            self._mark_replied(run, request, False)
            raise

    def _mark_replied(self, run: RunSnapshot, request: Request, replied: bool) -> None:
        self._deck.request.mark_replied(run.run_id, request.id, replied)
        self._deck.show_request()
        self._deck.show_highlighted()

    # --- both ---------------------------------------------------------------------------------------------------------

    def _listening(self) -> list[RunSnapshot]:
        """Return the marked runs that take messages, otherwise the highlighted one, if it does."""
        runs = [run for run in self._deck.runs.targets if run.can_talk] if self._deck.run_store.marked else []
        run = self._deck.run
        return runs or ([run] if run and run.can_talk else [])

    def _say_faults(self, what: str, runs: Runs, faults: dict[str, SubdeckError]) -> None:
        """Report why runs refused; for a single run, raise its error."""
        if len(runs) == 1 and faults:
            raise next(iter(faults.values()))
        named = [f"{what}: {brief_error(error)}" for error in list(faults.values())[:MOST_FAULTS]]
        if len(faults) > MOST_FAULTS:
            named.append(f"and {runs_word(len(faults) - MOST_FAULTS)} more")
        if named:
            self._say("\n".join(named), error=True)


def _chosen(field: Field, text: str) -> str:
    """Return a field's value; a number stands for that choice. Raises UsageError."""
    text = text.strip()
    if not field.choices or not text or text in field.choices:
        return text
    if text.isdecimal() and 0 < int(text) <= len(field.choices):
        return field.choices[int(text) - 1]
    offered = ", ".join(f"{number} {one_line(choice, 40)}" for number, choice in enumerate(field.choices, 1))
    raise UsageError("not one of the choices", hint=f"choose: {offered}")


def _send_all(engine: EngineApi, run_ids: Sequence[str], text: str) -> dict[str, SubdeckError]:
    """Send a message to each of these runs; return the errors by run."""
    return _for_each(run_ids, lambda run_id: engine.send(run_id, text))


def _interrupt_all(engine: EngineApi, run_ids: Sequence[str]) -> dict[str, SubdeckError]:
    return _for_each(run_ids, engine.interrupt)


def _for_each(run_ids: Sequence[str], tell: Callable[[str], object]) -> dict[str, SubdeckError]:
    faults: dict[str, SubdeckError] = {}
    for run_id in run_ids:
        try:
            tell(run_id)
        except SubdeckError as error:
            faults[run_id] = error
    return faults
