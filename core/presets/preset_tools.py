"""The fields of a preset that name tools; they are looked at together, because two of them contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from ..config.values import is_blank, unexpected
from ..config.yaml_tree import DocumentError, Fields, Items, Node, Text
from ..errors import UsageError
from ..run.tool_policy import checked_tools, parse_tools
from .fields import ALLOWING, DENYING


def read_tools(fields: Fields) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Answer the tools that a preset allows and those that it denies; at most one of the two is not None.

    Raises DocumentError, for several of these fields too: which of them counts would be a guess.
    """
    present = [key for key in (*ALLOWING, DENYING) if key in fields.pairs]
    if len(present) > 1:
        line = max(fields.pairs[key].line for key in present)
        contrary = "contradict each other" if DENYING in present else "mean the same thing"
        raise DocumentError(f"{' and '.join(present)} {contrary}", line=line, hint="keep one of them")
    if not present:
        return None, None
    names = _listed(present[0], fields.pairs[present[0]])
    return (None, names) if present[0] == DENYING else (names, None)


def _listed(key: str, node: Node) -> tuple[str, ...]:
    meant = "no tool is denied" if key == DENYING else "no tools"
    if is_blank(node):
        hint = f'write "{key}: []" for "{meant}", or remove the line'
        raise DocumentError(f"{key} is blank", line=node.line, hint=hint)
    try:
        if isinstance(node, Items):
            return checked_tools(_names(key, node))
        if not isinstance(node, Text):
            raise unexpected(key, "a list of tools", node)
        names = parse_tools(node.value)
    except UsageError as error:
        raise DocumentError(f"{key}: {error.what}", line=node.line, hint=error.hint) from error
    if not names:
        raise DocumentError(f"{key} is blank", line=node.line, hint=f'write "{key}: []" for "{meant}"')
    return names


def _names(key: str, node: Items) -> Iterator[str]:
    for item in node.items:
        if not isinstance(item, Text):
            raise unexpected(key, "the name of a tool", item)
        yield item.value
