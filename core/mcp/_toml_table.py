"""Add, replace or remove one table of a TOML document as text; every other line stays.

tomlkit (0.15) changes more: it removes comments between the table and the next one, leaves the table's blank line, and
writes LF into files with CR LF.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from ._protocol import Fields

_HEADER = re.compile(r"\s*\[")


def put(text: str, path: Sequence[str], values: Fields) -> str:
    """Return a document with these values in a table; the table's other lines stay, a new table is appended."""
    lines = text.splitlines(keepends=True)
    spans = _spans(lines, path)
    newline = "\r\n" if "\r\n" in text else "\n"
    if not spans:
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return text + gap + newline.join((f"[{'.'.join(path)}]", *_assignments(values), ""))
    start, end = spans[0]
    other_lines = [line for line in lines[start + 1 : end] if not _assigns(line, values)]
    if other_lines and not other_lines[-1].endswith("\n"):
        other_lines[-1] += newline
    ours = [assignment + newline for assignment in _assignments(values)]
    header = lines[start] if lines[start].endswith("\n") else lines[start] + newline
    return "".join((*lines[:start], header, *ours, *other_lines, *lines[end:]))


def take(text: str, path: Sequence[str]) -> str:
    """Return a document without a table and its subtables."""
    lines = text.splitlines(keepends=True)
    for start, end in reversed(_spans(lines, path)):
        if start and not lines[start - 1].strip():
            start -= 1
        del lines[start:end]
    return "".join(lines)


def _spans(lines: Sequence[str], path: Sequence[str]) -> list[tuple[int, int]]:
    """Find the table and its subtables: the line of each header, and the line after its last value.

    Later comments and blank lines belong to the next table. Lines inside a multi-line text may look like headers, so a
    caller that edits the document has to verify the result.
    """
    ours = re.compile(r"\s*\[\s*" + r"\s*\.\s*".join(map(_quoted, path)) + r"\s*(?:\.[^\]]*)?\]")
    spans: list[tuple[int, int]] = []
    start = None
    for number, line in enumerate((*lines, "[")):
        if not _HEADER.match(line) or (start is not None and line.startswith((" ", "\t")) and not ours.match(line)):
            continue
        if start is not None:
            spans.append((start, _last_value(lines, start, number)))
        start = number if ours.match(line) else None
    return spans


def _quoted(part: str) -> str:
    name = re.escape(part)
    return f"(?:{name}|\"{name}\"|'{name}')"


def _last_value(lines: Sequence[str], start: int, end: int) -> int:
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def _assigns(line: str, values: Mapping[str, object]) -> bool:
    return line.partition("=")[0].strip().strip("\"'") in values


def _assignments(values: Fields) -> list[str]:
    """Write texts, numbers, booleans and lists of texts, which are the same in TOML and JSON."""
    return [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
