"""How the list of runs was arranged when the app was closed, for each project."""

from __future__ import annotations

from msgspec import Struct

from ...core.paths import project_key
from ..layout_file import LayoutFile
from .order import Sort


class ListLayout(Struct, frozen=True):
    """What is remembered of the list for each project."""

    filter: str = ""
    sort: Sort = Sort.AGE
    folded: tuple[str, ...] = ()
    """Keys of the groups of which only the head is shown."""
    backwards: bool = False
    """Whether the sort is reversed."""


def list_layout_file(project_root: str, *, readonly: bool = False) -> LayoutFile[ListLayout]:
    return LayoutFile(ListLayout(), lambda: f"lists/{project_key(project_root)}.json", readonly=readonly)


MOST_FOLDED = 200
"""Groups that are remembered as folded."""
