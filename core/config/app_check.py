"""The check of the settings that only the app can do; the program that has an app sets it.

The engine does not know the app, whose actions and keys decide whether two of the user's keys collide.
"""

from __future__ import annotations

TYPE_CHECKING = False  # like the one in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..errors import SettingsError
    from .settings import Settings


def _no_faults(_: Settings) -> Iterable[SettingsError]:
    return ()


faults: Callable[[Settings], Iterable[SettingsError]] = _no_faults
"""Returns why the user's keys and commands cannot be used."""
