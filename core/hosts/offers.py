"""The runs for which a host holds a slot, and which are not there yet."""

from __future__ import annotations

import asyncio
import time

from msgspec import Struct

from .spool import Spool

PATIENCE_S = 20.0
"""How long a slot is held for a run that has no permit."""
AGAIN_S = 5.0
"""After this a relay that waits is told again of an offer which nothing came of."""


class _Offer(Struct):
    settled: asyncio.Event
    """The run has come, or was refused."""
    holders: int = 0
    told_at: float = float("-inf")


class Offers:
    """Those of all relays; used in one event loop."""

    def __init__(self) -> None:
        self._offers: dict[tuple[str, str], _Offer] = {}

    async def hold(self, spool: Spool, run_id: str) -> bool:
        """Offer a run until it comes or is refused; False where neither was in time."""
        key = (spool.relay, run_id)
        offer = self._offers.setdefault(key, _Offer(asyncio.Event()))
        offer.holders += 1
        spool.ring()
        try:
            await asyncio.wait_for(offer.settled.wait(), PATIENCE_S)
        except TimeoutError:
            return False
        finally:
            offer.holders -= 1
            if not offer.holders:
                self._offers.pop(key, None)
        return True

    def settle(self, spool: Spool, run_id: str) -> None:
        """Note that a run has come, or was refused."""
        if offer := self._offers.get((spool.relay, run_id)):
            offer.settled.set()

    def has_news(self, spool: Spool) -> bool:
        """Return whether the relay of a spool is to be told of an offer now."""
        now = time.monotonic()
        return any(now - offer.told_at >= AGAIN_S for offer in self._of(spool).values())

    def tell(self, spool: Spool) -> tuple[str, ...]:
        """Return the runs that are offered to the relay of a spool, and note that it was told of them."""
        offers = self._of(spool)
        for offer in offers.values():
            offer.told_at = time.monotonic()
        return tuple(offers)

    def _of(self, spool: Spool) -> dict[str, _Offer]:
        return {
            run_id: offer
            for (relay, run_id), offer in self._offers.items()
            if relay == spool.relay and run_id not in spool.known
        }
