"""What the operator can do: one table, from which keys, footer, help, palette and README's table of keys come.

The names below may be imported from here, `help` and `keys` for the rest. Nothing here knows a screen or what an action
does: `tui/commands/` does it.
"""

from .keys import (
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
from .model import PANES, Action, ActionContext, KeyContext
from .table import ACTIONS, BY_ID

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
