"""Import libraries without what they load for other programs: a sixth of a quick command, and more of a run.

While one of them is imported, stand-ins are in the place of modules that none of our commands comes to use. Each has
what the library takes from it at once; asked for more, it answers with what the module itself has.
"""

from __future__ import annotations

import _thread
import sys
from types import ModuleType


def import_click() -> None:
    _take_native_datetime()
    _import(
        "click",
        # It looks on the disk for translations, which nobody has made.
        gettext=_StandIn("gettext", gettext=str, ngettext=_ngettext),
        inspect=_StandIn("inspect", cleandoc=_cleandoc),  # brings the parser of Python
        threading=_StandIn("threading", local=vars(_thread)["_local"]),
        uuid=_UUID,
        weakref=_StandIn("weakref", WeakKeyDictionary=dict),  # of the three standard streams
    )


def import_msgspec() -> None:
    _take_native_datetime()
    _import(
        "msgspec",
        **{"msgspec.inspect": _StandIn("msgspec.inspect")},
        decimal=_StandIn("decimal", Decimal=type("Decimal", (), {})),  # no record of ours has one
        textwrap=_StandIn("textwrap"),
        typing_extensions=None,  # without it msgspec takes what Python itself has
        uuid=_UUID,
    )


def import_subprocess() -> None:
    _import(
        "subprocess",
        locale=_StandIn("locale"),  # for pipes of text
        selectors=_StandIn("selectors", PollSelector=lambda: load("selectors").PollSelector()),  # for `communicate`
        threading=_StandIn("threading", Lock=_thread.allocate_lock),
    )


def load(name: str) -> ModuleType:
    """Import a module by its full name; `importlib`, with what it loads itself, takes longer than most modules."""
    if name not in sys.modules:
        __import__(name, fromlist=("__name__",))  # without one it would load the package around it, too
    return sys.modules[name]


def import_part(package: str, name: str) -> ModuleType:
    """Import a module of a package without the package around it."""
    from importlib.util import find_spec

    spec = None if package in sys.modules else find_spec(package)
    if spec is not None:
        _import(f"{package}.{name}", **{package: _StandIn(package, __path__=spec.submodule_search_locations)})
    return load(f"{package}.{name}")


class _StandIn(ModuleType):
    def __init__(self, name: str, **members: object) -> None:
        super().__init__(name)
        vars(self).update(members)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # the import system looks for a path
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(load(self.__name__), name)


# Neither a record nor an option of ours is one.
_UUID = _StandIn("uuid", UUID=type("UUID", (), {}), SafeUUID=type("SafeUUID", (), {"unknown": None}))


def _take_native_datetime() -> None:
    """Let `datetime` be what the standard library has in C, as Python 3.12 does, which no longer defines all of it
    twice.
    """
    if "datetime" in sys.modules:
        return
    try:
        sys.modules["datetime"] = load("_datetime")
    except ImportError:
        pass  # the module itself is slower


def _import(library: str, **instead: ModuleType | None) -> None:
    """Import a library with something else in the place of modules that are not loaded; None for what is missing."""
    added = {name: module for name, module in instead.items() if name not in sys.modules}
    sys.modules.update(added)  # pyright: ignore[reportArgumentType, reportCallIssue] - None keeps it from being found
    try:
        load(library)
    finally:
        for name, module in added.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


def _ngettext(one: str, many: str, count: int) -> str:
    return one if count == 1 else many


def _cleandoc(text: str) -> str:
    if "\n" not in text:
        return text.strip()
    from inspect import cleandoc

    return cleandoc(text)
