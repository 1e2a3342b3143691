"""The scheme of the default keys: what each key means in every view; pure.

A question and a search in progress own their keys until they end. In a text field, characters are text.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from .command import ON_DECK, VIEWS, KeyContext

QUESTIONS = (KeyContext.REQUEST, KeyContext.CONFIRM)
"""Contexts that own their keys. A choice from a list needs no letters."""
SEARCHES = ("next_match", "previous_match", "end_search", "next_found", "previous_found")
"""Actions of a search in progress."""
SCHEME_CONTEXTS = frozenset((*ON_DECK, *VIEWS)).difference(QUESTIONS)
"""The contexts with one scheme."""


class Meaning(NamedTuple):
    """What some keys mean in every view; a pair of keys goes forwards and backwards, or left and right."""

    keys: tuple[str, ...]
    """In Textual's spelling."""
    words: str
    actions: tuple[str, ...]
    """The actions that these keys may do; `*` stands for any letters."""

    def includes(self, action_id: str) -> bool:
        return any(fnmatchcase(action_id, pattern) for pattern in self.actions)


SCHEME = (
    Meaning(("enter",), "open or unfold; launch the highlighted preset", ("open", "open_*", "fold_file", "host_runs")),
    Meaning(("escape",), "back", ("back", "cancel")),
    Meaning(("space",), "select", ("mark", "mark_hunk")),
    Meaning(
        ("tab", "shift+tab"),
        "next and previous part: pane, tab, run of the grid or the comparison, file",
        ("next_pane", "previous_pane", *("next_tab", "previous_tab", "next_tile", "previous_tile"),
         "next_column", "previous_column", "next_file", "previous_file"),
    ),
    Meaning(tuple("123456789"), "go to the part with that number",
            ("presets", "runs", "transcript", "tab_*", "tile_?", "column_?")),
    Meaning(("j", "k", "down", "up"), "one row down and up", ("*down", "*up")),
    Meaning(("pagedown", "pageup"), "one page down and up", ("*page_down", "*page_up")),
    Meaning(("g", "G", "home", "end"), "top and bottom", ("first", "last", "*_first", "*_last")),
    Meaning(("h", "l", "left", "right"), "left and right",
            ("left", "right", "next_tab", "previous_tab", "next_tile", "previous_tile", "next_column",
             "previous_column")),
    Meaning(("?",), "help", ("help", "help_on_*")),
    Meaning((":", "ctrl+p"), "palette", ("palette",)),
    Meaning(("/",), "search or filter", ("filter", "search", "find_change")),
    Meaning(("ctrl+f",), "search all runs", ("search_all",)),
    Meaning(("n",), "new run", ("launch",)),
    Meaning(("N",), "new one-off run", ("ad_hoc",)),
    Meaning(("r",), "run again", ("rerun",)),
    Meaning(("R",), "run again, edited", ("rerun_edited",)),
    Meaning(("s",), "send a message", ("follow_up", "detail_follow_up")),
    Meaning(("I",), "interrupt", ("interrupt",)),
    Meaning(("x",), "stop", ("stop", "detail_stop", "stop_tile")),
    Meaning(("X",), "kill", ("kill",)),
    Meaning(("a",), "attach", ("attach", "detail_attach")),
    Meaning(("A",), "open in the agent", ("take_over",)),
    Meaning(("m",), "mark as read", ("mark_seen",)),
    Meaning(("]", "["), "next and previous run that needs you", ("*next_unseen", "*previous_unseen")),
    Meaning(("J", "K"), "next and previous run", ("next_run", "previous_run")),
    Meaning(("}", "{"), "next and previous edit or hunk",
            ("next_edit", "previous_edit", "next_hunk", "previous_hunk")),
    Meaning((")", "("), "next and previous error", ("next_error", "previous_error")),
    Meaning(("i",), "details", ("detail",)),
    Meaning(("c",), "changes, or the difference between two runs' changes",
            ("changes", "detail_changes", "difference")),
    Meaning(("e",), "edit", ("edit_preset", "edit_change")),
    Meaning(("y",), "copy", ("copy_*",)),
    Meaning(("|",), "pipe to a command", ("pipe", "pipe_changes")),
    Meaning(("v",), "show in the pager", ("page_changes",)),
    Meaning(("o",), "sort", ("sort",)),
    Meaning(("t",), "switch the view: text, raw or stderr; side by side", ("view", "beside")),
    Meaning(("f",), "follow the end", ("follow", "follow_tile")),
    Meaning(("w",), "wrap long lines", ("wrap",)),
    Meaning(("ctrl+w",), "show or hide whitespace changes", ("spaces",)),
    Meaning(("O",), "fold or unfold: all files of the changes, a tool call in the grid",
            ("fold_files", "unfold_in_tile")),
    Meaning(("z",), "zoom", ("zoom", "zoom_tile")),
    Meaning(("W",), "grid", ("tiles", "cancel")),
    Meaning(("V",), "comparison", ("compare", "cancel")),
    Meaning(("$",), "costs", ("costs",)),
    Meaning(("!",), "doctor", ("host_doctor",)),
    Meaning(("L",), "log in to a host", ("host_attach",)),
    Meaning(("f5",), "refresh", ("ask_hosts",)),
    Meaning(("q",), "quit or close", ("quit", "cancel")),
    Meaning(("ctrl+c",), "how to quit", ("how_to_quit",)),
)  # fmt: skip

GUARDED = (
    Meaning(("P",), "apply all changes", ("apply_changes",)),
    Meaning(("F",), "apply the file", ("apply_file",)),
    Meaning(("p",), "apply the selected hunks", ("apply_hunks",)),
    Meaning(("M",), "merge", ("merge_changes",)),
    Meaning(("Q",), "squash", ("pick_changes",)),
    Meaning(("C",), "commit", ("commit_changes",)),
    Meaning(("S",), "save as a branch", ("keep_changes",)),
    Meaning(("D",), "discard the worktree", ("discard_changes",)),
    Meaning(("T",), "choose the winner", ("choose_compared",)),
    Meaning(("d",), "delete a run or a preset", ("delete", "delete_preset")),
    Meaning(("u",), "undo", ("undo", "undo_in_changes")),
)
"""The keys that write to git or to your files, or delete: each does nothing else anywhere.

Exactly the actions with `guarded` have them.
"""
