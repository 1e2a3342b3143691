"""Import libraries without modules that only other programs need.

During the import stand-ins replace these modules. A stand-in has the members that the library uses at once; for any
other member it returns that of the real module. No other thread may import anything at the same time.

A library gets this only if it saves 5 ms or more on a path that a user waits for, and its version is pinned exactly in
pyproject.toml. Measured as CPU time, Python 3.11: msgspec 12 of 42 ms of `subdeck status --all`, click 9 of 52 ms of
`subdeck status --json`, Textual 40 of 233 ms to the first paint, watchfiles 20 ms when runs are followed.
"""

from __future__ import annotations

import _thread
import sys
from types import ModuleType

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


def import_click() -> None:
    import_light(
        "click",
        # It looks on the disk for translations, which do not exist.
        StandIn("gettext", gettext=str, ngettext=_ngettext),
        StandIn("inspect", cleandoc=_cleandoc),  # loads Python's parser
        StandIn("threading", local=vars(_thread)["_local"]),
        _UUID,
        StandIn("weakref", WeakKeyDictionary=dict),  # of the three standard streams
    )


def import_msgspec() -> None:
    import_light(
        "msgspec",
        StandIn("msgspec._json_schema", "schema", "schema_components"),
        StandIn("msgspec.inspect"),
        NO_DECIMALS,
        StandIn("textwrap"),
        _UUID,
        missing=("typing_extensions",),  # without it msgspec uses Python's own typing
    )


def load(name: str) -> ModuleType:
    """Import a module by its full name; `importlib` and its own imports take longer than most modules."""
    if name not in sys.modules:
        __import__(name, fromlist=("__name__",))  # without one it would also load the package around it
    return sys.modules[name]


def import_part(package: str, name: str) -> ModuleType:
    """Import a module of a package without the package around it."""
    from importlib.util import find_spec

    spec = None if package in sys.modules else find_spec(package)
    if spec is not None:
        import_light(f"{package}.{name}", StandIn(package, __path__=spec.submodule_search_locations))
    return load(f"{package}.{name}")


def import_light(library: str, *stand_ins: StandIn, parts: Iterable[str] = (), missing: Iterable[str] = ()) -> None:
    """Import a library and some of its modules, with stand-ins for others that are not loaded.

    `missing` names modules that must not be found during the import.
    """
    instead = {stand_in.__name__: stand_in for stand_in in stand_ins} | dict.fromkeys(missing)
    added = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(added)  # pyright: ignore[reportArgumentType, reportCallIssue] - None keeps it from being found
    try:
        for name in (library, *parts):
            load(name)
    finally:
        for name, module in added.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


class StandIn(ModuleType):
    """Has some members of a module; for any other one, it imports the module."""

    def __init__(self, name: str, *later: str, **members: object) -> None:
        """`later` names members that are read at once but used later: only then they come from the module."""
        super().__init__(name)
        vars(self).update(members, **{member: Later(name, member) for member in later})

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system looks for a path
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(load(self.__name__), name)


class Later:
    """A member of a module that is imported when the member is called or an attribute of it is read."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, *args: Any, **options: Any) -> Any:
        return getattr(load(self._module), self._name)(*args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(load(self._module), self._name), name)


NO_DECIMALS = StandIn("decimal", Decimal=type("Decimal", (), {}))
"""For libraries that compare types with it: neither a record nor a screen layout has one."""
_UUID = StandIn("uuid", UUID=type("UUID", (), {}), SafeUUID=type("SafeUUID", (), {"unknown": None}))
"""Neither a record nor an option has one."""


def _ngettext(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _cleandoc(text: str) -> str:
    if "\n" not in text:
        return text.strip()
    from inspect import cleandoc

    return cleandoc(text)
