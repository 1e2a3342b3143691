"""Import Textual without modules that only other apps need: saves 40 of the 233 ms to the first paint.

Written for the version that pyproject.toml pins, like `textual_internals.py`. `core/system/imports.py` has the rule for
such tricks.
"""

from __future__ import annotations

import _pickle
import os
import typing

from ...core.system.imports import NO_DECIMALS, StandIn, import_light

_TYPING = (
    *("Final", "Literal", "ParamSpec", "Protocol", "Self", "TypeAlias", "TypedDict", "TypeGuard"),
    *("get_args", "runtime_checkable"),
)
"""Textual's imports from `typing_extensions` that the oldest supported Python has in `typing`."""


def _random_bits(count: int) -> int:
    """Return random bits for the first number of styles; the module for it loads much more."""
    return int.from_bytes(os.urandom(8), "big") >> (64 - count)


def import_textual() -> None:
    import_light(
        "textual.app",
        NO_DECIMALS,
        StandIn("typing_extensions", **{name: getattr(typing, name) for name in _TYPING}),
        StandIn("pickle", dumps=_pickle.dumps, loads=_pickle.loads),  # the rest is equivalent Python code
        StandIn("random", getrandbits=_random_bits),
        # For errors and source code.
        StandIn("difflib", "get_close_matches"),
        StandIn("linecache"),
        StandIn("tokenize"),
        StandIn("traceback", "extract_stack"),
        StandIn("rich.panel", "Panel"),
        # For files that an app serves, and for paths as URLs.
        StandIn("mimetypes"),
        StandIn("platformdirs", "user_downloads_path"),
        StandIn("uuid", "uuid4"),
        StandIn("urllib.parse", "quote_from_bytes"),
        StandIn("locale"),  # subprocess asks for it if text has no encoding
        # For pictures of themes and of trees of widgets, and for lines between the cells of a grid.
        StandIn("rich.table", "Table"),
        StandIn("rich.tree", "Tree"),
        StandIn("textual.canvas", "Canvas", "Rectangle"),
        # Textual's palette, with all the widgets that it uses. The app has its own.
        StandIn(
            "textual.command",
            *("CommandListItem", "CommandPalette", "DiscoveryHit", "Hit", "Hits", "SimpleProvider"),
            Provider=type("Provider", (), {}),  # for the providers of Textual's own palette, which is never shown
        ),
        parts=("textual.drivers.linux_driver",),
        missing=("ssl",),  # neither asyncio nor the app needs it
    )
