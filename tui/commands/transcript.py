"""The actions on the transcript."""

from __future__ import annotations

from .base import Commands, Deck


class TranscriptCommands(Commands):
    """Follow, wrap."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        transcript = deck.transcript
        self.table = {
            "follow": lambda: transcript.follow(not transcript.following),
            "wrap": lambda: transcript.set_wrap(not transcript.wrapped),
        }
