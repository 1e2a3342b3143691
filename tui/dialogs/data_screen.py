"""Dialogs that open before their data has been read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Generic, TypeVar, cast

from textual import work

from ...core.system.log import log_fault
from ..terminal.after_close import is_open
from ..terminal.key_queue import LOADING, KeyQueueApp
from ..terminal.textual_internals import DialogScreen
from ..text.format import format_error

Data = TypeVar("Data")
Result = TypeVar("Result")


class DataScreen(DialogScreen[Result], Generic[Data, Result]):
    """Reads its data after it was pushed, and closes with an error message if that fails.

    Keys typed before that wait for the data: none is lost, and none reaches the screen below.
    """

    WRITES_IN: ClassVar = ""
    """The dialog's name if it has a text field: then keys typed for it go to the error that replaces it."""

    def __init__(self, load: Callable[[], Awaitable[Data]] | None) -> None:
        """Without `load` there is no data to wait for."""
        super().__init__(classes=LOADING if load else None)
        self._load = load
        self.data: Data | None = None
        """None until it is read."""

    def on_mount(self) -> None:
        if self._load:
            self._read(self._load)

    @property
    def is_loading(self) -> bool:
        return self.has_class(LOADING)

    async def fill(self, data: Data) -> None:
        """Show the data; keys are handled once this is done."""
        raise NotImplementedError

    @work(exit_on_error=False)
    async def _read(self, load: Callable[[], Awaitable[Data]]) -> None:
        try:
            self.data = await load()
            if is_open(self):
                await self.fill(self.data)
        except Exception as error:  # after any error, the dialog must not stay without its data
            log_fault(f"while {type(self).__name__} was loading", error)
            if is_open(self):
                self._fail(format_error(error))
        else:
            self.remove_class(LOADING)

    def _fail(self, why: str) -> None:
        app = cast(KeyQueueApp, self.app)
        if not self.WRITES_IN:
            app.notify(why, severity="error", markup=False)
            self.dismiss(None)
            app.forget_typed()
            return
        from .reader import RefusalScreen

        self.dismiss(None)
        app.push_screen(RefusalScreen(self.WRITES_IN, why))
