"""Which host a run is offered to; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..carrier import Link, Wish


def choose(wish: Wish, links: Mapping[str, Link], held: Iterable[tuple[Wish, str]]) -> str | None:
    """Return the key of the host with most free slots that fits; None where there is none.

    `held` are the tickets that there are, each with the key of its host: they hold a slot, and what they need.
    """
    held = list(held)
    free = {
        key: link.slots - sum(host == key for _, host in held)
        for key, link in links.items()
        if wish.host in ("", key) and _has_all(wish, link, [other for other, host in held if host == key])
    }
    best = max(free, key=lambda key: free[key], default=None)
    return best if best is not None and free[best] > 0 else None


def _has_all(wish: Wish, link: Link, held: list[Wish]) -> bool:
    return all(
        link.labels.get(label, 0.0) - sum(other.needs.get(label, 0.0) for other in held) >= amount
        for label, amount in wish.needs.items()
    )
