"""Import Textual without modules that only other apps need: 40 of the 233 ms to the first paint.

Written for the version that pyproject.toml pins, as `textual_internals.py` is. `core/system/imports.py` has the rule
for such tricks.
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
"""What Textual takes from `typing_extensions`, and the oldest supported Python has in `typing`."""


def _random_bits(count: int) -> int:
    """Return random bits for the first number of styles; the module for it loads much more."""
    return int.from_bytes(os.urandom(8), "big") >> (64 - count)


def import_textual() -> None:
    import_light(
        "textual.app",
        NO_DECIMALS,
        StandIn("typing_extensions", **{name: getattr(typing, name) for name in _TYPING}),
        StandIn("pickle", dumps=_pickle.dumps, loads=_pickle.loads),  # the rest is Python code that does the same
        StandIn("random", getrandbits=_random_bits),
        # For errors and source code.
        StandIn("difflib", "get_close_matches"),
        StandIn("linecache"),
        StandIn("tokenize"),
        StandIn("traceback", "extract_stack"),
        StandIn("rich.panel", "Panel"),
        # For files that an app hands out, and for paths as URLs.
        StandIn("mimetypes"),
        StandIn("platformdirs", "user_downloads_path"),
        StandIn("uuid", "uuid4"),
        StandIn("urllib.parse", "quote_from_bytes"),
        StandIn("locale"),  # subprocess asks for it where text has no encoding
        # For pictures of themes and of trees of widgets, and for lines between the cells of a grid.
        StandIn("rich.table", "Table"),
        StandIn("rich.tree", "Tree"),
        StandIn("textual.canvas", "Canvas", "Rectangle"),
        # The palette, with all the widgets that it has and names. Ours is another one.
        StandIn(
            "textual.command",
            *("CommandListItem", "CommandPalette", "DiscoveryHit", "Hit", "Hits", "SimpleProvider"),
            Provider=type("Provider", (), {}),  # for the providers of Textual's own palette, which is never shown
        ),
        parts=("textual.drivers.linux_driver",),
        missing=("ssl",),  # without it asyncio does without, and so does the app
    )
