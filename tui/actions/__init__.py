"""What the operator can do: one table, from which keys, footer, help, palette and the key reference come.

The names below may be imported from here, `help` and `keys` for the rest. Nothing here knows a screen or what an action
does: `tui/commands/` does it.
"""

from ._table import ACTIONS as ACTIONS, BY_ID as BY_ID
from .keys import (
    Hint as Hint,
    binding_id as binding_id,
    bindings as bindings,
    footer_hints as footer_hints,
    key_label as key_label,
    key_of as key_of,
    keys_line as keys_line,
    meanings as meanings,
    said as said,
)
from .model import PANES as PANES, Action as Action, ActionContext as ActionContext, KeyContext as KeyContext
