"""What the operator can do: one registry, from which keys, footer, help and palette come."""

from .model import PANES, Action, ActionContext, KeyContext
from .registry import (
    ACTIONS,
    BY_ID,
    Hint,
    binding_id,
    bindings,
    footer_hints,
    key_label,
    key_of,
    keys_line,
    meanings,
    said,
)

__all__ = [
    "ACTIONS",
    "BY_ID",
    "PANES",
    "Action",
    "ActionContext",
    "Hint",
    "KeyContext",
    "binding_id",
    "bindings",
    "footer_hints",
    "key_label",
    "key_of",
    "keys_line",
    "meanings",
    "said",
]
