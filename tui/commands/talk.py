"""The commands that talk to runs: say something, interrupt, reply to what is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ...core.errors import SubdeckError, UsageError
from ...core.run.describe import runs_word
from ...core.run.model import RequestKind, Verdict
from ...core.run.requests import request_hash, subject_of
from ...core.text.plain import one_line
from ..actions import KeyContext
from ..deck.screen import MainScreen
from ..talk.line import Saying
from ..talk.request_rows import field_line
from ..text.format import brief_error
from .base import Commands, name_of
from .launch import LaunchCommands

if TYPE_CHECKING:
    from ...core.run.events import Field, Request
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi

MOST_FAULTS = 2
"""Runs that refused something and are named with why; more are counted."""


SUBJECT = 60
"""Characters of what a reply is about, above the line in which it is written."""
REQUEST_GONE = "Not sent: the request was withdrawn or answered elsewhere."


class TalkCommands(Commands):
    def __init__(self, deck: MainScreen, launch: LaunchCommands) -> None:
        super().__init__(deck)
        self._launch = launch

    def say(self) -> None:
        """Open the line in which something is said to the marked runs that listen, else to the highlighted one; one
        that has ended goes on in a dialog.
        """
        run = self._deck.run
        if runs := self._listening():
            self._open(runs)
        elif run and self._is_read(run) and self._launch.has_own_preset(run):
            key = f"{run.run_id} follow-up"
            self._deck.open_talk(Saying(key, f"follow up on {name_of(run)}", partial(self._launch.go_on, run)))
        else:
            self._launch.follow_up()

    def _is_read(self, run: RunSnapshot) -> bool:
        """Return whether a run that is done is read at its transcript: there its conversation goes on in place."""
        return run.status == "completed" and self._deck.panes.place is KeyContext.TRANSCRIPT

    def say_to(self, run: RunSnapshot) -> None:
        """Do the same for one run, whatever is marked."""
        if run.can_talk:
            self._open([run])
        else:
            self._launch.follow_up()

    def _open(self, runs: Sequence[RunSnapshot]) -> None:
        if len(runs) == 1:
            self._deck.runs.select(runs[0].run_id)
        to = name_of(runs[0]) if len(runs) == 1 else f"{runs_word(len(runs))} (selected)"
        queued = " (added to the prompt)" if all(run.status == "queued" for run in runs) else ""
        ids = tuple(run.run_id for run in runs)
        self._deck.open_talk(Saying(" ".join(ids), f"to {to}{queued}", partial(self._send, runs)))

    async def _send(self, runs: Sequence[RunSnapshot], text: str) -> None:
        faults = await self._bridge.call(_send_all, self._bridge.engine, [run.run_id for run in runs], text)
        self._say_faults("Not sent", runs, faults)
        if len(runs) > 1 and len(faults) < len(runs):
            self._say(f"Sent to {runs_word(len(runs) - len(faults))}")

    def interrupt(self) -> None:
        self.spawn(self._interrupt, [run for run in self._listening() if run.status == "running"])

    async def _interrupt(self, runs: Sequence[RunSnapshot]) -> None:
        """Interrupt them, after asking where there are several."""
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

    # --- what is asked ------------------------------------------------------------------------------------------------

    def allow(self) -> None:
        self._reply(Verdict.ALLOW)

    def allow_run(self) -> None:
        self._reply(Verdict.ALLOW_RUN)

    def deny(self) -> None:
        self._reply(Verdict.DENY)

    def choose(self, number: int) -> None:
        if (request := self._deck.request.request) and number <= len(request.choices):
            self._reply(Verdict.REPLY, request.choices[number - 1])

    def later(self) -> None:
        self._deck.transcript.focus()

    def answer(self) -> None:
        """Open the line in which a reply, a word of denial or a field of the form is written."""
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

    def _open_reply(self, run: RunSnapshot, request: Request, saying: Saying) -> None:
        self._deck.open_talk(replace(saying, obstacle=partial(self._why_gone, run.run_id, request)))

    def _why_gone(self, run_id: str, request: Request) -> str:
        run = self._deck.run_store.get(run_id)
        is_open = run is not None and run.is_waiting and request in run.requests
        return "" if is_open else REQUEST_GONE

    def _fill_in(self, run: RunSnapshot, request: Request, values: dict[str, str]) -> None:
        """Ask for the next field of a form; the values before it are sent with the last one."""
        number = len(values)
        field = request.fields[number]

        async def take(text: str) -> None:
            filled = {**values, field.name: _chosen(field, text)}
            if len(filled) < len(request.fields):
                self._fill_in(run, request, filled)
            else:
                given = {name: value for name, value in filled.items() if value}
                await self._send_reply(
                    run, request, Verdict.REPLY, msgspec.json.encode(given).decode("utf-8", "replace")
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
        """Reply to what is shown, unless it has just taken the place of something else."""
        block = self._deck.request
        if not block.is_ready:
            self.app.bell()
        elif block.run and block.request:
            self.spawn(self._send_reply, block.run, block.request, verdict, text)

    async def _send_reply(self, run: RunSnapshot, request: Request, verdict: Verdict, text: str = "") -> None:
        """Reply; what is shown goes on at once to what is asked next."""
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
        """Return the marked runs that can be talked to, else the highlighted one, if it can."""
        runs = [run for run in self._deck.runs.targets if run.can_talk] if self._deck.run_store.marked else []
        run = self._deck.run
        return runs or ([run] if run and run.can_talk else [])

    def _say_faults(self, what: str, runs: Sequence[RunSnapshot], faults: dict[str, SubdeckError]) -> None:
        """Say why something was refused. Raises the error where there is one run alone."""
        if len(runs) == 1 and faults:
            raise next(iter(faults.values()))
        named = [f"{what}: {brief_error(error)}" for error in list(faults.values())[:MOST_FAULTS]]
        if len(faults) > MOST_FAULTS:
            named.append(f"and {runs_word(len(faults) - MOST_FAULTS)} more")
        if named:
            self._say("\n".join(named), error=True)


def _chosen(field: Field, text: str) -> str:
    """Return what a field takes: of one that is chosen, the choice for its number. Raises UsageError."""
    text = text.strip()
    if not field.choices or not text or text in field.choices:
        return text
    if text.isdecimal() and 0 < int(text) <= len(field.choices):
        return field.choices[int(text) - 1]
    offered = ", ".join(f"{number} {one_line(choice, 40)}" for number, choice in enumerate(field.choices, 1))
    raise UsageError("not one of the choices", hint=f"choose: {offered}")


def _send_all(engine: EngineApi, run_ids: Sequence[str], text: str) -> dict[str, SubdeckError]:
    """Say this to each of these runs; return by run why it could not be said."""
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
