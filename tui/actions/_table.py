"""The table of actions: everything you can do, with its keys and texts; pure.

Its order is the order of the footer, the help and the key reference.
"""

from __future__ import annotations

from ...core.run.model import RequestKind, RunnerKind
from .model import (
    PANES,
    Action,
    ActionContext,
    KeyContext,
    Keys,
    needs_above,
    needs_active,
    needs_beside,
    needs_conversation,
    needs_copyable,
    needs_hand,
    needs_out_of_reach,
    needs_own_preset,
    needs_pager,
    needs_permission_request,
    needs_preset_file,
    needs_queued,
    needs_readable_record,
    needs_request,
    needs_run,
    needs_run_rule,
    needs_run_to_search,
    needs_session,
    needs_terminal,
    needs_terminal_to_lend,
    needs_turn,
    needs_undoable,
    needs_unseen,
    needs_usable_preset,
)

APP, DECK, FILTER, SEARCH = KeyContext.APP, KeyContext.DECK, KeyContext.FILTER, KeyContext.SEARCH
PRESETS, RUNS, TRANSCRIPT = PANES
LAUNCH, EDIT, COPY, DETAIL = KeyContext.LAUNCH, KeyContext.EDIT, KeyContext.COPY, KeyContext.DETAIL
CLEAN_UP, READING, CONFIRM, HELP = KeyContext.CLEAN_UP, KeyContext.READING, KeyContext.CONFIRM, KeyContext.HELP
FIND, PALETTE, TILES, COMPARE = KeyContext.FIND, KeyContext.PALETTE, KeyContext.TILES, KeyContext.COMPARE
REQUEST, TALK, CHANGES, HOSTS = KeyContext.REQUEST, KeyContext.TALK, KeyContext.CHANGES, KeyContext.HOSTS

_CLOSED_BY_ESCAPE = (
    LAUNCH,
    EDIT,
    COPY,
    DETAIL,
    CLEAN_UP,
    READING,
    FIND,
    PALETTE,
    TILES,
    COMPARE,
    CHANGES,
    HOSTS,
    KeyContext.PICK,
    KeyContext.ASK,
    CONFIRM,
    HELP,
)
_ONLY_READ = (DETAIL, READING, FIND, TILES, COMPARE, CHANGES, HOSTS, HELP)
"""Dialogs without anything to cancel."""

_MOVES = {
    "down": (("j", "down"), "One row down."),
    "up": (("k", "up"), "One row up."),
    "page_down": (("pagedown",), "One page down."),
    "page_up": (("pageup",), "One page up."),
    "first": (("g", "home"), "Go to the top."),
    "last": (("G", "end"), "Go to the bottom."),
}
_TABS = {
    "transcript": "Show the end of the transcript.",
    "answer": "Show the answer, or the text so far.",
    "prompt": "Show the prompt that the agent received, and its system prompt.",
    "facts": "Show how the run was launched, its settings and its result.",
    "usage": "Show the tokens and cost of each message.",
    "files": "List the run's files.",
    "events": "Show the latest events as stored in the file.",
    "changes": "Show the run's changes, other runs in the same directory, and the check result.",
}
_TAB_LABELS = {"facts": "overview"}
"""The tabs with a label that is not their id."""


def at(place: KeyContext, *keys: str) -> Keys:
    """Return the keys, all in one place."""
    return tuple((place, key) for key in keys)


def _move(where: str, places: tuple[KeyContext, ...], do: str, prefix: str = "", *, in_text: bool = False) -> Action:
    """Return a movement; where text is typed, letters do not move."""
    keys, sentence = _MOVES[where]
    named = tuple((place, key) for place in places for key in (keys[-1:] if in_text else keys))
    return Action(prefix + where, named, where.replace("_", " "), sentence, do=f"{do}('{where}')")


def _attach_name(context: ActionContext) -> str:
    if context.run and context.run.meta.runner == RunnerKind.TMUX:
        return "attach"
    return "" if context.zoomed and context.place is TRANSCRIPT else "zoom"


def _answer_name(context: ActionContext) -> str:
    if context.request is None or context.request.kind is RequestKind.PERMISSION:
        return "deny with a reason"
    return "fill in" if context.request.kind is RequestKind.FORM else "reply"


def _choose_name(context: ActionContext) -> str:
    count = len(context.request.choices) if context.request else 0
    return f"to {min(count, 9)} choose" if count > 1 else "choose" if count else ""


def _deny_name(context: ActionContext) -> str:
    is_permission = context.request is None or context.request.kind is RequestKind.PERMISSION
    return "deny" if is_permission else "decline"


def _follow_up_name(context: ActionContext) -> str:
    takes_messages = context.listening or (context.run is not None and not context.run.has_ended)
    return "message" if takes_messages else "follow up"


# fmt: off
# A table: an action in one line, its sentence in the next if both do not fit.
ACTIONS: tuple[Action, ...] = (
    # --- presets ---
    Action("presets", at(DECK, "1"), "presets", "Go to the presets.", footer=1),
    Action("init_presets", at(PRESETS, "p"), "starter presets", changes=True, writes=True,
           help="Create four starter presets in this project (explore, implement, review, fix tests). Asks first."),
    Action("create_preset", at(PRESETS, "c"), "create", footer=6, changes=True, writes=True,
           help="Create a preset for this project or for all your projects."),
    Action("edit_preset", at(PRESETS, "e"), "edit", needs=needs_preset_file, footer=4, changes=True, writes=True,
           help="Edit the highlighted preset's file. Works for broken files."),
    Action("edit_preset_outside", at(PRESETS, "E"), "open in editor", needs=needs_preset_file, changes=True,
           writes=True, help="Open the highlighted preset's file in your editor ($EDITOR)."),
    Action("copy_preset", at(PRESETS, "b"), "copy", needs=needs_copyable, footer=5, changes=True, writes=True,
           help="Copy a preset to a new name. A bundled preset is copied to this project or to all your projects."),
    Action("delete_preset", at(PRESETS, "d"), "delete", needs=needs_own_preset, changes=True,
           help="Delete the highlighted preset's file. Asks first; undo restores it."),
    Action("save_preset", at(EDIT, "ctrl+s"), "save", do="screen.start", footer=1, changes=True,
           help="Save the preset if it has no errors."),
    Action("edit_outside", at(EDIT, "ctrl+e"), "open in editor", do="screen.edit_outside", footer=3,
           help="Continue in your editor ($EDITOR)."),
    Action("write_copy", at(COPY, "ctrl+s"), "copy", "Save the copy.", do="screen.start", footer=1, changes=True),

    # --- launching ---
    Action("launch", (*at(DECK, "n"), *at(PRESETS, "enter")), "launch", needs=needs_usable_preset, footer=2,
           changes=True, writes=True, name_here=lambda context: "launch" if context.preset else "run a task",
           help="Launch the highlighted preset, or a one-off run without one. Asks for the task first."),
    Action("ad_hoc", at(DECK, "N"), "one-off", footer=10, changes=True, writes=True,
           help="Run a task without a preset. You choose the model, tools and prompt."),
    Action("rerun", at(DECK, "r"), "rerun", needs=needs_readable_record, footer=11, changes=True,
           help="Launch the run again. Selected runs are launched as a group, after asking."),
    Action("rerun_edited", at(DECK, "R"), "rerun with edits", needs=needs_readable_record, changes=True, writes=True,
           help="Open the launch dialog with this run's settings."),
    Action("follow_up", at(DECK, "s"), "message, follow up", needs=needs_session, footer=8, changes=True, writes=True,
           name_here=_follow_up_name,
           help="Send a message to the run, or to all selected runs. For a finished run, continue its conversation "
                "with a new task: in the transcript, or in a dialog from other panes."),
    Action("with_context", at(DECK, "C"), "use as context", needs=needs_conversation, footer=9, changes=True,
           writes=True, help="Launch the highlighted preset with the highlighted run's conversation as context."),
    Action("start", at(LAUNCH, "ctrl+s"), "launch", "Launch with these settings.", do="screen.start", footer=1,
           changes=True),
    Action("edit_task", at(LAUNCH, "ctrl+e"), "editor", do="screen.edit_task", footer=3,
           help="Write the task or the prompt in your editor ($EDITOR)."),
    Action("load_task", at(LAUNCH, "ctrl+o"), "file", "Load the task from a file.", do="screen.load_task",
           footer=4),
    Action("earlier_tasks", at(LAUNCH, "ctrl+r"), "history", "Reuse an earlier task.", do="screen.earlier_tasks",
           footer=5),
    Action("list_agents", at(LAUNCH, "ctrl+g"), "agents", do="screen.list_agents",
           help="Choose an agent from a list with versions, login states and problems."),
    Action("list_models", at(LAUNCH, "ctrl+l"), "models", "Choose from the models of all agents.",
           do="screen.list_models"),
    Action("choose_worktree", at(LAUNCH, "ctrl+t"), "worktree", do="screen.choose_worktree",
           help="Choose whether the run gets a git worktree, and its starting point."),

    # --- the list of runs ---
    Action("open", at(RUNS, "enter"), "open", needs=needs_run, footer=6,
           help="Go to the highlighted run's transcript. Fold or unfold the highlighted group."),
    Action("filter", at(RUNS, "/"), "filter", footer=9,
           help="Filter the runs: words, status:failed, preset:x, is:unread, age:<1d, cost:>1, text:x, /regex/, -not. "
                "{back} clears the filter."),
    Action("sort", at(RUNS, "o"), "sort",
           help="Cycle the sort order: age, cost, tokens, elapsed, preset, task, state, agent, model, changes."),
    Action("reverse_sort", at(RUNS, "O"), "reverse", "Reverse the sort order. Clicking a column header also sorts."),
    Action("mark", at(RUNS, "space"), "select", needs=needs_run, footer=13,
           help="Select or deselect the run and move down. Actions then apply to all selected runs."),
    Action("mark_all", at(RUNS, "*"), "select all", "Select all listed runs, or deselect them."),
    Action("fold", at(RUNS, "left"), "fold", "Fold the group into one row.", needs_run),
    Action("unfold", at(RUNS, "right"), "unfold", "Unfold the group and list its runs.", needs_run),
    Action("next_unseen", at(DECK, "]"), "next for you", needs=needs_unseen, footer=7,
           help="Go to the next run that needs you: it needs input, failed, answered with a question, is idle, or its "
                "result is unread."),
    Action("previous_unseen", at(DECK, "["), "previous for you", needs=needs_unseen,
           help="Go to the previous run that needs you."),
    Action("mark_seen", at(DECK, "m"), "mark as read", needs=needs_run,
           help="Mark the run, or all selected runs, as read. Opening a run or acting on it has the same effect."),

    Action("queue_up", at(RUNS, "shift+up"), "move up", needs=needs_queued, changes=True,
           help="Move the queued run up, so that it starts earlier."),
    Action("queue_down", at(RUNS, "shift+down"), "move down", needs=needs_queued, changes=True,
           help="Move the queued run down, so that it starts later."),
    Action("hold_queue", at(DECK, "H"), "pause queue", changes=True,
           help="Pause the queue so that no new run starts. Press it again to resume."),

    # --- runs ---
    Action("attach", at(DECK, "a"), "attach", needs=needs_terminal, footer=4, name_here=_attach_name,
           help="Attach to the run's tmux pane. Without a pane, show the transcript full screen."),
    Action("stop", at(DECK, "x"), "stop", needs=needs_active, footer=5, changes=True,
           help="Stop the run, or all selected runs, gracefully. Their work is kept."),
    Action("take_over", at(DECK, "A"), "open in agent", needs=needs_hand, changes=True,
           help="Continue the run interactively in the agent's own UI. Exit the agent to return the run."),
    Action("interrupt", at(DECK, "I"), "interrupt", needs=needs_turn, changes=True,
           help="Interrupt the run, or all selected runs: end the current turn and wait for your message "
                "({follow_up})."),
    Action("kill", at(DECK, "X"), "kill", needs=needs_active, changes=True,
           help="Kill the run, or all selected runs, with all their processes. Asks first."),
    Action("give_up", at(DECK, "U"), "abandon", needs=needs_out_of_reach, changes=True,
           help="Abandon the run, or all selected runs, on an unreachable host. They become lost. Asks first."),
    Action("delete", (*at(RUNS, "d"), *at(TRANSCRIPT, "d")), "delete", needs=needs_run, changes=True,
           help="Delete the run, or all selected runs, with all their files. Asks first; undo restores them."),
    Action("undo", at(DECK, "u"), "undo", needs=needs_undoable, changes=True,
           help="Undo the last delete, apply or merge. Asks before undoing an apply or a merge."),
    Action("copy_id", at(RUNS, "y"), "copy id", needs=needs_run,
           help="Copy the run's id, or the ids of all selected runs, to the clipboard."),
    Action("messages", at(DECK, "M"), "notifications", "Show all notifications since the app was opened."),

    # --- one run in detail ---
    Action("detail", at(DECK, "i"), "detail", needs=needs_run, footer=13,
           help="Show the highlighted run's details: state, answer, prompt, overview, usage, files."),
    *(Action(f"tab_{name}", at(DETAIL, str(number)), _TAB_LABELS.get(name, name), sentence,
             do=f"screen.show_tab('{name}')")
      for number, (name, sentence) in enumerate(_TABS.items(), start=1)),
    Action("next_tab", at(DETAIL, "right", "tab"), "next tab", "Go to the next tab.", do="screen.turn(1)"),
    Action("previous_tab", at(DETAIL, "left", "shift+tab"), "previous tab", "Go to the previous tab.",
           do="screen.turn(-1)"),
    Action("next_run", at(DETAIL, "J"), "next run", "Go to the run below in the list.", do="screen.act('next_run')"),
    Action("previous_run", at(DETAIL, "K"), "previous run", "Go to the run above in the list.",
           do="screen.act('previous_run')"),
    Action("detail_next_unseen", at(DETAIL, "]"), "next for you", "Go to the next run that needs you.",
           do="screen.act('next_unseen')"),
    Action("detail_previous_unseen", at(DETAIL, "["), "previous for you", "Go to the previous run that needs you.",
           do="screen.act('previous_unseen')"),
    Action("detail_stop", at(DETAIL, "x"), "stop", needs=needs_active, footer=6, do="screen.act('stop')", changes=True,
           help="Stop this run gracefully. Its work is kept."),
    Action("detail_follow_up", at(DETAIL, "s"), "message, follow up", needs=needs_session, footer=7,
           name_here=_follow_up_name, do="screen.act('follow_up')", changes=True, writes=True,
           help="Send a message to this run, or continue its conversation."),
    Action("detail_attach", at(DETAIL, "a"), "attach", needs=needs_terminal, footer=5, name_here=_attach_name,
           do="screen.act('attach')", help="Attach to the run's tmux pane, or show its transcript full screen."),
    Action("open_shown", at(DETAIL, "enter"), "open", do="screen.open_shown", footer=3,
           help="Open the tab's content: the transcript on the deck, a file in your pager, the changes."),
    Action("copy_shown", at(DETAIL, "y"), "copy", do="screen.copy_shown", footer=4,
           help="Copy the tab's content, or the highlighted file's path."),
    *(_move(where, (DETAIL,), "screen.move", "detail_") for where in _MOVES),

    # --- changes ---
    Action("changes", (*at(RUNS, "c"), *at(TRANSCRIPT, "c")), "changes", needs=needs_run, footer=12,
           help="Review the run's changes file by file. Apply, merge or discard them."),
    Action("detail_changes", at(DETAIL, "c"), "changes", needs=needs_run, footer=8, do="screen.act('changes')",
           help="Review this run's changes."),
    Action("apply_changes", at(CHANGES, "a"), "apply", do="screen.act('apply_changes')", footer=1, changes=True,
           help="Apply all of the run's changes to your working tree, unstaged. Shows the effect first."),
    Action("apply_file", at(CHANGES, "A"), "apply file", do="screen.act('apply_file')", changes=True,
           help="Apply the changes of the file under the cursor to your working tree."),
    Action("mark_hunk", at(CHANGES, "space"), "select hunk", do="screen.mark", footer=3,
           help="Select or deselect the hunk under the cursor and go to the next one."),
    Action("apply_hunks", at(CHANGES, "p"), "apply hunks", do="screen.act('apply_hunks')", footer=2, changes=True,
           help="Apply the selected hunks, or the one under the cursor, to your working tree."),
    Action("merge_changes", at(CHANGES, "m"), "merge", do="screen.act('merge_changes')", footer=9, changes=True,
           help="Merge the run's worktree branch into your branch. Shows the effect first."),
    Action("pick_changes", at(CHANGES, "M"), "squash", do="screen.act('pick_changes')", changes=True,
           help="Squash the run's work into one commit on your branch."),
    Action("commit_changes", at(CHANGES, "C"), "commit", do="screen.act('commit_changes')", changes=True,
           help="Commit the run's uncommitted work to its own branch."),
    Action("keep_changes", at(CHANGES, "K"), "save as branch", do="screen.act('keep_changes')", changes=True,
           writes=True, help="Save the run's commits as a branch with a name that you choose."),
    Action("discard_changes", at(CHANGES, "x"), "discard", do="screen.act('discard_changes')", footer=10, changes=True,
           help="Remove the run's worktree and branch. Asks first."),
    Action("next_hunk", at(CHANGES, "]"), "next hunk", "Go to the next hunk.", do="screen.go_hunk(1)", footer=4),
    Action("previous_hunk", at(CHANGES, "["), "previous hunk", "Go to the previous hunk.", do="screen.go_hunk(-1)"),
    Action("next_file", at(CHANGES, "}", "tab"), "next file", "Go to the next file.", do="screen.go_file(1)", footer=5),
    Action("previous_file", at(CHANGES, "{", "shift+tab"), "previous file", "Go to the previous file.",
           do="screen.go_file(-1)"),
    Action("fold_file", at(CHANGES, "enter"), "fold", do="screen.fold",
           help="Fold or unfold the file under the cursor."),
    Action("fold_files", at(CHANGES, "O"), "fold all", "Fold or unfold all files.",
           do="screen.fold_all"),
    Action("beside", at(CHANGES, "t"), "side by side", do="screen.beside", footer=7,
           help="Toggle between side-by-side and unified view."),
    Action("spaces", at(CHANGES, "w"), "whitespace", do="screen.spaces",
           help="Toggle whitespace changes."),
    Action("find_change", at(CHANGES, "/"), "find", "Search the changes.", do="screen.find", footer=6, writes=True),
    Action("next_found", at(CHANGES, "n"), "next", "Go to the next match.",
           do="screen.step(1)"),
    Action("previous_found", at(CHANGES, "N"), "previous", "Go to the previous match.", do="screen.step(-1)"),
    Action("undo_in_changes", at(CHANGES, "u"), "undo", needs=needs_undoable, do="screen.act('undo_in_changes')",
           changes=True, help="Undo the last action. Asks first."),
    Action("help_on_changes", at(CHANGES, "?"), "help", "Show all keys.", do="screen.act('help_on_changes')",
           footer=11),
    Action("copy_hunk", at(CHANGES, "y"), "copy", do="screen.act('copy_hunk')",
           help="Copy the hunk under the cursor as a patch. On a file name, copy the whole file's patch."),
    Action("edit_change", at(CHANGES, "o"), "open file", do="screen.act('edit_change')", footer=8, changes=True,
           help="Open the file under the cursor in your editor ($EDITOR), at that line."),
    Action("pipe_changes", at(CHANGES, "|"), "pipe", do="screen.act('pipe_changes')", changes=True, writes=True,
           help="Pipe the patch to a shell command."),
    Action("page_changes", at(CHANGES, "v"), "pager", do="screen.act('page_changes')",
           help="Open the patch in your pager (the setting diff_pager, or $PAGER)."),
    *(_move(where, (CHANGES,), "screen.move", "change_") for where in _MOVES),

    # --- cleaning up ---
    Action("clean_up", at(DECK, "D"), "clean up", changes=True, writes=True,
           help="Delete old runs by age, number or size. Shows the space that it frees and asks first."),
    Action("clean", at(CLEAN_UP, "ctrl+s"), "clean up", do="screen.start", footer=1, changes=True,
           help="Delete the runs that match the rules. Asks first."),

    # --- grid ---
    Action("tiles", at(DECK, "W"), "grid", needs=needs_run, footer=15,
           help="Show two to six selected or running runs live in a grid."),
    Action("next_tile", at(TILES, "tab", "right", "l"), "next", "Go to the next run.", do="screen.go(1)", footer=1),
    Action("previous_tile", at(TILES, "shift+tab", "left", "h"), "previous", "Go to the previous run.",
           do="screen.go(-1)"),
    *(Action(f"tile_{number}", at(TILES, str(number)), f"run {number}", "Go to the run with that number.",
             do=f"screen.choose({number})") for number in range(1, 7)),
    Action("zoom_tile", at(TILES, "z"), "zoom", "Show the run full screen, or the grid again.", do="screen.zoom",
           footer=2),
    Action("open_tile", at(TILES, "enter"), "open", "Open the run's transcript on the deck.",
           do="screen.ask_deck('open')", footer=3),
    Action("stop_tile", at(TILES, "x"), "stop", "Stop this run gracefully. Its work is kept.",
           do="screen.ask_deck('stop')", footer=4, changes=True),
    Action("unfold_in_tile", at(TILES, "space"), "unfold", do="screen.open_entry",
           help="Unfold or fold the tool call or thinking under the cursor."),
    Action("follow_tile", at(TILES, "f"), "follow", "Follow the end of this transcript, or stop following.",
           do="screen.follow"),
    Action("help_on_tiles", at(TILES, "?"), "help", "Show all keys.", do="screen.ask_deck('help')", footer=6),
    *(_move(where, (TILES,), "screen.move", "tile_") for where in _MOVES),

    # --- comparing ---
    Action("compare", at(DECK, "V"), "compare", needs=needs_run, footer=16,
           help="Compare the results of two to six selected runs, or of one group."),
    Action("next_column", at(COMPARE, "tab", "right", "l"), "next", "Go to the next run.", do="screen.go(1)", footer=1),
    Action("previous_column", at(COMPARE, "shift+tab", "left", "h"), "previous", "Go to the previous run.",
           do="screen.go(-1)"),
    *(Action(f"column_{number}", at(COMPARE, str(number)), f"run {number}", "Go to the run with that number.",
             do=f"screen.choose({number})") for number in range(1, 7)),
    Action("open_compared", at(COMPARE, "enter"), "open", "Show the run's details, starting with its answer.",
           do="screen.ask_deck('open')", footer=2),
    Action("difference", at(COMPARE, "d"), "difference", "Show the difference between two runs' changes.",
           do="screen.ask_deck('difference')", footer=3),
    Action("choose_compared", at(COMPARE, "p"), "choose winner", do="screen.ask_deck('choose')", footer=4, changes=True,
           help="Choose the winner: apply its changes and discard the other worktrees. Asks once."),
    Action("help_on_comparing", at(COMPARE, "?"), "help", "Show all keys.", do="screen.ask_deck('help')", footer=6),
    *(_move(where, (COMPARE,), "screen.move", "compare_") for where in _MOVES),

    # --- hosts ---
    Action("hosts", at(DECK, "h"), "hosts", "Show the machines that can run agents, and their load."),
    Action("host_runs", at(HOSTS, "enter"), "runs", "Show only this host's runs.",
           do="screen.ask_deck('runs')", footer=1),
    Action("host_attach", at(HOSTS, "a"), "ssh", do="screen.ask_deck('attach')", footer=3, changes=True,
           help="Open an ssh session to the host in this terminal. Exit the shell to return."),
    Action("ask_hosts", at(HOSTS, "r"), "refresh", "Refresh the state of all hosts.",
           do="screen.ask_deck('ask')", footer=4, changes=True),
    Action("host_doctor", at(HOSTS, "!"), "doctor", do="screen.ask_deck('doctor')", footer=5, changes=True,
           help="Check everything that runs need on the host. Shows how to fix each problem."),
    Action("help_on_hosts", at(HOSTS, "?"), "help", "Show all keys.", do="screen.ask_deck('help')", footer=6),
    *(_move(where, (HOSTS,), "screen.move", "host_") for where in _MOVES),

    # --- messages and requests ---
    Action("allow", at(REQUEST, "y"), "allow", "Allow the request once.", needs_permission_request,
           footer=1, changes=True),
    Action("allow_run", at(REQUEST, "Y"), "allow for this run", needs=needs_run_rule, footer=4, changes=True,
           help="Allow this and similar requests until the run finishes."),
    *(Action(f"choose_{number}", at(REQUEST, str(number)), "choose", "Reply with the choice with that number.",
             needs_request, do=f"choose({number})", footer=1 if number == 1 else 0, changes=True,
             name_here=_choose_name) for number in range(1, 10)),
    Action("deny_request", at(REQUEST, "n"), "deny", "Deny permission, or decline to answer.", needs_request,
           footer=2, changes=True, name_here=_deny_name),
    Action("answer", at(REQUEST, "e", "enter"), "reply", needs=needs_request, footer=3, changes=True, writes=True,
           name_here=_answer_name, help="Write a reply, fill in the form, or deny with a reason."),
    Action("later", at(REQUEST, "escape"), "later", "Leave the request open and go to the transcript.", footer=2),
    *(_move(where, (REQUEST,), "move", "request_") for where in _MOVES),
    Action("say", at(TALK, "enter", "ctrl+s"), "send", "Send the message.", do="say", footer=1, changes=True),
    Action("new_line", at(TALK, "ctrl+j", "shift+enter"), "new line", "Start a new line.", do="new_line", footer=3),
    Action("edit_message", at(TALK, "ctrl+e"), "editor", "Continue writing in your editor ($EDITOR).",
           do="edit_message", footer=4),
    Action("leave_unsaid", at(TALK, "escape"), "cancel", "Close without sending. The draft is kept.",
           do="leave_unsaid", footer=2),

    # --- the transcript ---
    Action("open_entry", at(TRANSCRIPT, "enter", "space"), "open", needs=needs_run, footer=6,
           help="Unfold or fold the tool call or thinking under the cursor."),
    Action("open_all", at(TRANSCRIPT, "O"), "open all", needs=needs_run,
           help="Unfold or fold all tool calls and thinking."),
    Action("view", at(DECK, "t"), "view", needs=needs_run,
           help="Cycle the view: text, raw events, the agent's stderr."),
    Action("follow", at(DECK, "f"), "follow", "Follow the end of the transcript, or stop following.", needs_run),
    Action("wrap", at(DECK, "w"), "wrap", "Toggle wrapping of long lines in the transcript."),
    Action("left", at(TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
    Action("right", at(TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),

    # --- search, copy and export ---
    Action("search", at(TRANSCRIPT, "/"), "search", needs=needs_run_to_search, writes=True, footer=5,
           help="Search the transcript, including folded text. A capital letter makes it case-sensitive."),
    Action("search_all", at(DECK, "ctrl+f"), "search all", footer=14,
           help="Search the tasks, answers and transcripts of all runs. {open_hit} opens a hit."),
    Action("open_hit", at(FIND, "enter"), "open", do="screen.open_hit", footer=1,
           help="Open the transcript at the highlighted hit."),
    Action("next_match", at(SEARCH, "n"), "next", "Go to the next match.", footer=1),
    Action("previous_match", at(SEARCH, "N"), "previous", "Go to the previous match.", footer=1),
    Action("end_search", at(SEARCH, "escape"), "end", "End the search and clear its highlights.", footer=1),
    Action("keep", at(FILTER, "enter"), "keep", "Keep the filter or search and return to the pane.", do="keep",
           footer=1),
    Action("drop", at(FILTER, "escape"), "cancel", "Discard the input and restore the previous state.", do="drop",
           footer=2),
    Action("next_error", at(TRANSCRIPT, "e"), "next error", "Go to the next error in the transcript.", needs_run),
    Action("previous_error", at(TRANSCRIPT, "E"), "previous error", "Go to the previous error in the transcript.",
           needs_run),
    Action("next_edit", at(TRANSCRIPT, "}"), "next edit", needs=needs_run, footer=7,
           help="Go to the next edit of a file in the transcript; {open_entry} shows it as a diff."),
    Action("previous_edit", at(TRANSCRIPT, "{"), "previous edit", needs=needs_run,
           help="Go to the previous edit of a file in the transcript."),
    Action("go_to_time", at(TRANSCRIPT, "@"), "go to time", needs=needs_run, writes=True,
           help="Go to a time in the transcript: 20:12, -5m from the end, +90s from the start, 50%."),
    Action("copy_entry", at(TRANSCRIPT, "y"), "copy", "Copy the text under the cursor, including folds.", needs_run),
    Action("copy_answer", at(DECK, "Y"), "copy answer", "Copy the run's answer, or one of its code blocks.",
           needs_run),
    Action("pipe", at(DECK, "|"), "pipe", needs=needs_terminal_to_lend, changes=True,
           help="Pipe the run's answer or transcript to a shell command."),
    Action("open_path", at(TRANSCRIPT, "o"), "open file", needs=needs_terminal_to_lend, changes=True,
           help="Open the file path under the cursor in your editor ($EDITOR), at its line number."),
    Action("page_transcript", at(DECK, "v"), "pager", "Open the whole unfolded transcript in your pager ($PAGER).",
           needs_pager),
    Action("save_run", at(DECK, "S"), "save", needs=needs_run, changes=True, writes=True,
           help="Save the run as a markdown file. Asks for the path."),

    # --- the deck ---
    Action("zoom", at(DECK, "z"), "zoom", "Show one pane full screen, or all panes again."),
    Action("narrower", at(DECK, "<"), "narrower", "Make the presets pane narrower.", needs_beside),
    Action("wider", at(DECK, ">"), "wider", "Make the presets pane wider.", needs_beside),
    Action("lower", at(DECK, "-"), "shorter", needs=needs_above,
           help="Make the transcript shorter, or narrower if it is beside the runs."),
    Action("higher", at(DECK, "+"), "taller", needs=needs_above,
           help="Make the transcript taller, or wider if it is beside the runs."),
    Action("reset_layout", at(DECK, "="), "reset layout", "Restore the default pane sizes."),
    Action("theme", at(DECK, "T"), "theme", "Cycle the theme: dark, light, terminal colours."),
    Action("runs", at(DECK, "2"), "runs", "Go to the runs."),
    Action("transcript", at(DECK, "3"), "transcript", "Go to the transcript."),
    Action("next_pane", at(DECK, "tab"), "next pane", "Go to the next pane."),
    Action("previous_pane", at(DECK, "shift+tab"), "previous pane", "Go to the previous pane."),
    Action("back", at(DECK, "escape"), "back", "Leave full screen, then the pane. Never quits.", footer=1,
           name_here=lambda context: "back" if context.zoomed else ""),
    Action("help", at(DECK, "?"), "help", "Show all keys.", footer=3),
    Action("quit", at(DECK, "q"), "quit", "Quit. Runs continue in the background.", footer=12),
    Action("palette", (*at(DECK, ":"), *at(APP, "ctrl+p")), "palette", do="app.command_palette",
           help="Find anything by name: actions, runs, presets, filters and settings."),
    Action("choose", at(PALETTE, "enter"), "choose", do="screen.choose", footer=1,
           help="Run the action, go to the run, launch the preset, apply the filter or edit the setting."),
    Action("how_to_quit", at(APP, "ctrl+c"), "", "Show how to quit.", do="app.how_to_quit"),
    *(_move(where, PANES, "move") for where in _MOVES),
    Action("costs", at(DECK, "$"), "costs",
           help="Show costs for today, this week and in total, by preset, model and agent."),
    Action("doctor", at(DECK, "!"), "doctor",
           help="Check this machine's setup. Shows how to fix each problem."),

    # --- dialogs ---
    Action("cancel",
           (*((place, "escape") for place in _CLOSED_BY_ESCAPE), *at(CONFIRM, "n"), *at(TILES, "q", "W"),
            *at(COMPARE, "q", "V"), *at(HOSTS, "q", "h")), "cancel",
           "Close the dialog without changing anything.", do="screen.cancel", footer=2,
           name_here=lambda context: "close" if context.place in _ONLY_READ else "cancel"),
    Action("confirm", at(CONFIRM, "y"), "yes", "Confirm the action.", do="screen.confirm", footer=1),
    Action("edit_commit", at(CONFIRM, "e"), "edit message", do="screen.edit_message",
           help="Edit the commit message in your editor ($EDITOR) before the commit is made."),
    *(_move(where, (HELP, READING, FIND, PALETTE), "screen.move", "scroll_", in_text=True)
      for where in ("down", "up", "page_down", "page_up")),
)
# fmt: on

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}
