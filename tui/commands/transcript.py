"""The actions on the transcript."""

from __future__ import annotations

from ..feed.views import View
from .base import Commands, Deck


class TranscriptCommands(Commands):
    """Follow, wrap, open what is folded, show it otherwise."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        transcript = deck.transcript
        views = list(View)
        self.table = {
            "open_entry": transcript.toggle_at_cursor,
            "open_all": transcript.toggle_all,
            "view": lambda: transcript.set_view(views[(views.index(View(transcript.view)) + 1) % len(views)]),
            "follow": lambda: transcript.follow(not transcript.following),
            "wrap": lambda: transcript.set_wrap(not transcript.wrapped),
        }
