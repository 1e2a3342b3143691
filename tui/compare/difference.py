"""What differs between what two runs have left, as a text to be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from textual.content import Content

from ...core.text.plain import plain

if TYPE_CHECKING:
    from ...core.work.comparing import Difference

MOST = 2_000
"""Lines of a patch that are shown."""
_STYLES = {"+": "$text-success", "-": "$text-error", "@": "$text-accent"}
_HEADS = ("diff --git ", "index ", "--- ", "+++ ", "new file mode ", "deleted file mode ", "rename ", "similarity ")


def difference_lines(found: Difference) -> list[Content]:
    """Return what is said of a difference, and its patch."""
    return [
        Content(f"From {found.run} to {found.other}: {found.changes.words}"),
        *(Content.styled(note, "$text-muted") for note in found.notes),
        Content(""),
        *_patch(found.patch),
    ]


def _patch(patch: bytes) -> Iterator[Content]:
    lines = patch.decode("utf-8", "replace").removesuffix("\n").split("\n") if patch else []
    lines = [line for line in lines if not line.startswith("index ")]  # of which the ids are whole
    for line in lines[:MOST]:
        text = plain(line).expandtabs(4)
        style = "bold" if line.startswith(_HEADS) else _STYLES.get(line[:1], "")
        yield Content.styled(text, style) if style else Content(text)
    if len(lines) > MOST:
        yield Content.styled(f"… {len(lines) - MOST:,} more lines: subdeck compare --diff shows all", "$text-muted")
