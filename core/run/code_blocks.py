"""The fenced code blocks of an answer; pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})[ \t]*([^\n]*)")


class CodeBlock(NamedTuple):
    language: str
    """As it stands behind the fence; empty without one."""
    text: str
    """Its lines, each with its newline."""


def code_blocks(answer: str) -> tuple[CodeBlock, ...]:
    """Return the blocks in their order; one that is not closed goes on to the end."""
    blocks: list[CodeBlock] = []
    lines: list[str] | None = None
    fence = language = indent = ""
    for line in answer.replace("\r\n", "\n").split("\n"):
        found = _FENCE.fullmatch(line)
        if lines is None:
            if found and not (found[2][0] == "`" and "`" in found[3]):
                lines, (indent, fence, info) = [], found.groups()
                language = next(iter(info.split()), "")
        elif found and found[2].startswith(fence) and not found[3].strip():
            blocks.append(CodeBlock(language, "".join(lines)))
            lines = None
        else:
            taken = len(line) - len(line.lstrip(" "))
            lines.append(line[min(len(indent), taken) :] + "\n")
    if lines is not None:
        blocks.append(CodeBlock(language, "".join(lines)))
    return tuple(blocks)
