"""The table of actions: all that the operator can do, with keys and words; pure.

Its order is that of the footer, of the help and of README's table of keys.
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
"""Dialogs in which there is nothing to cancel."""

_MOVES = {
    "down": (("j", "down"), "One row down."),
    "up": (("k", "up"), "One row up."),
    "page_down": (("pagedown",), "One page down."),
    "page_up": (("pageup",), "One page up."),
    "first": (("g", "home"), "Go to the beginning."),
    "last": (("G", "end"), "Go to the end."),
}
_TABS = {
    "transcript": "The end of its transcript.",
    "answer": "The answer, or what there is of it so far.",
    "prompt": "The prompt as the agent got it, and its system prompt.",
    "facts": "How it was launched and how it ended.",
    "usage": "Tokens and cost of each message.",
    "files": "The files of the run.",
    "events": "The last events, as they stand in the file.",
    "changes": "What it changed, who else was at work there, and what its check said.",
}


def at(place: KeyContext, *keys: str) -> Keys:
    """Return keys with the one place where they mean something."""
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
        return "deny with a word"
    return "fill in" if context.request.kind is RequestKind.FORM else "reply"


def _choose_name(context: ActionContext) -> str:
    count = len(context.request.choices) if context.request else 0
    return f"to {min(count, 9)} choose" if count > 1 else "choose" if count else ""


def _deny_name(context: ActionContext) -> str:
    is_permission = context.request is None or context.request.kind is RequestKind.PERMISSION
    return "deny" if is_permission else "decline"


def _follow_up_name(context: ActionContext) -> str:
    is_told = context.listening or (context.run is not None and not context.run.has_ended)
    return "say" if is_told else "follow up"


# fmt: off
# A table: what an action is in one line, its sentence in the next where both do not fit.
ACTIONS: tuple[Action, ...] = (
    # --- presets ---
    Action("presets", at(DECK, "1"), "presets", "Go to the presets.", footer=1),
    Action("init_presets", at(PRESETS, "p"), "starter presets", changes=True, writes=True,
           help="Write four starter presets into this project, after asking: explore, implement, review, fix tests."),
    Action("create_preset", at(PRESETS, "c"), "create", footer=6, changes=True, writes=True,
           help="Write a new preset, for this project or for all your projects."),
    Action("edit_preset", at(PRESETS, "e"), "edit", needs=needs_preset_file, footer=4, changes=True, writes=True,
           help="Edit the file of the highlighted preset, even a broken one."),
    Action("edit_preset_outside", at(PRESETS, "E"), "open in editor", needs=needs_preset_file, changes=True,
           writes=True, help="Open the file of the highlighted preset in your editor ($EDITOR)."),
    Action("copy_preset", at(PRESETS, "b"), "copy", needs=needs_copyable, footer=5, changes=True, writes=True,
           help="Copy a preset under another name; a bundled one into this project or for all your projects."),
    Action("delete_preset", at(PRESETS, "d"), "delete", needs=needs_own_preset, changes=True,
           help="Delete the file of the highlighted preset, after asking; undo brings it back."),
    Action("save_preset", at(EDIT, "ctrl+s"), "save", do="screen.start", footer=1, changes=True,
           help="Save the preset, once nothing is wrong with it."),
    Action("edit_outside", at(EDIT, "ctrl+e"), "open in editor", do="screen.edit_outside", footer=3,
           help="Continue editing in your editor ($EDITOR)."),
    Action("write_copy", at(COPY, "ctrl+s"), "copy", "Write the copy.", do="screen.start", footer=1, changes=True),

    # --- launching ---
    Action("launch", (*at(DECK, "n"), *at(PRESETS, "enter")), "launch", needs=needs_usable_preset, footer=2,
           changes=True, writes=True, name_here=lambda context: "launch" if context.preset else "run a task",
           help="Launch the highlighted preset, or run without one where there is none; asks for the task first."),
    Action("ad_hoc", at(DECK, "N"), "ad hoc", footer=10, changes=True, writes=True,
           help="Run a task without a preset: model, tools and prompt as typed."),
    Action("rerun", at(DECK, "r"), "rerun", needs=needs_readable_record, footer=11, changes=True,
           help="Launch the run again; all marked runs as a group, after asking."),
    Action("rerun_edited", at(DECK, "R"), "rerun with edits", needs=needs_readable_record, changes=True, writes=True,
           help="Open the launch dialog, filled in as for this run."),
    Action("follow_up", at(DECK, "s"), "say, follow up", needs=needs_session, footer=8, changes=True, writes=True,
           name_here=_follow_up_name,
           help="Say something to the run, or to all marked ones, while it works; of a finished run, continue the "
                "conversation with another task: at its transcript in place, else in a dialog."),
    Action("with_context", at(DECK, "C"), "use as context", needs=needs_conversation, footer=9, changes=True,
           writes=True, help="Launch the highlighted preset with the conversation of the highlighted run as context."),
    Action("start", at(LAUNCH, "ctrl+s"), "launch", "Launch what is filled in.", do="screen.start", footer=1,
           changes=True),
    Action("edit_task", at(LAUNCH, "ctrl+e"), "editor", do="screen.edit_task", footer=3,
           help="Write the task, or the prompt, in your editor ($EDITOR)."),
    Action("load_task", at(LAUNCH, "ctrl+o"), "file", "Load the task from a file.", do="screen.load_task",
           footer=4),
    Action("earlier_tasks", at(LAUNCH, "ctrl+r"), "history", "Choose an earlier task.", do="screen.earlier_tasks",
           footer=5),
    Action("list_agents", at(LAUNCH, "ctrl+g"), "agents", do="screen.list_agents",
           help="Choose the agent from a list that says what each one is: version, login, or why it cannot be used."),
    Action("list_models", at(LAUNCH, "ctrl+l"), "models", "Choose from what each agent offers.",
           do="screen.list_models"),
    Action("choose_worktree", at(LAUNCH, "ctrl+t"), "worktree", do="screen.choose_worktree",
           help="Choose whether it works in a git worktree, and what that begins with."),

    # --- the list of runs ---
    Action("open", at(RUNS, "enter"), "open", needs=needs_run, footer=6,
           help="Go to the transcript of the highlighted run; fold or unfold the highlighted group."),
    Action("filter", at(RUNS, "/"), "filter", footer=9,
           help="Show only some runs: words, status:failed, preset:x, is:unseen, age:<1d, cost:>1, text:x, /regex/, "
                "-not; {back} shows all again."),
    Action("sort", at(RUNS, "o"), "sort",
           help="Sort the runs by age, cost, tokens, elapsed, preset, task, state, agent, model or changes in turn."),
    Action("reverse_sort", at(RUNS, "O"), "reverse", "Reverse the order; a click on a heading does so, too."),
    Action("mark", at(RUNS, "space"), "mark", needs=needs_run, footer=13,
           help="Mark or unmark the run and go one down; actions then apply to the marked runs."),
    Action("mark_all", at(RUNS, "*"), "mark all", "Mark all shown runs, or unmark them."),
    Action("fold", at(RUNS, "left"), "fold", "Fold the group: show it as one row.", needs_run),
    Action("unfold", at(RUNS, "right"), "unfold", "Unfold the group: show each of its runs.", needs_run),
    Action("next_unseen", at(DECK, "]"), "next for me", needs=needs_unseen, footer=7,
           help="Go to the next run that needs you: it waits for your reply, it failed, its answer asks, it is silent, "
                "or you have not seen its end."),
    Action("previous_unseen", at(DECK, "["), "previous for me", needs=needs_unseen,
           help="Go to the previous run that needs you."),
    Action("mark_seen", at(DECK, "m"), "seen", needs=needs_run,
           help="Note that you have seen the run, or all marked ones; opening a run or acting on it does so too."),

    Action("queue_up", at(RUNS, "shift+up"), "move up", needs=needs_queued, changes=True,
           help="Move the queued run up: it starts before the one ahead of it."),
    Action("queue_down", at(RUNS, "shift+down"), "move down", needs=needs_queued, changes=True,
           help="Move the queued run down: the next one starts before it."),
    Action("hold_queue", at(DECK, "H"), "hold queue", changes=True,
           help="Hold the queue, so that no new run starts; press it again to release the queue."),

    # --- runs ---
    Action("attach", at(DECK, "a"), "attach", needs=needs_terminal, footer=4, name_here=_attach_name,
           help="Attach to the run's tmux pane; a run without one shows its transcript full screen."),
    Action("stop", at(DECK, "x"), "stop", needs=needs_active, footer=5, changes=True,
           help="Stop the run, or all marked ones, gracefully; each keeps what it has done."),
    Action("take_over", at(DECK, "A"), "take over", needs=needs_hand, changes=True,
           help="Go on with the run by hand, in the agent's own program; leave that to hand the run back."),
    Action("interrupt", at(DECK, "I"), "interrupt", needs=needs_turn, changes=True,
           help="Interrupt the run, or all marked ones: its turn ends, and it waits for what you say next "
                "({follow_up})."),
    Action("kill", at(DECK, "X"), "kill", needs=needs_active, changes=True,
           help="Kill the run, or all marked ones, and all their processes, after asking."),
    Action("give_up", at(DECK, "U"), "give up", needs=needs_out_of_reach, changes=True,
           help="Give up the run, or all marked ones, whose host does not come back, after asking: it ends as lost."),
    Action("delete", (*at(RUNS, "d"), *at(TRANSCRIPT, "d")), "delete", needs=needs_run, changes=True,
           help="Delete the run, or all marked ones, with all files, after asking; undo brings them back."),
    Action("undo", at(DECK, "u"), "undo", needs=needs_undoable, changes=True,
           help="Take back what was done last: a deletion, or, after asking, what was applied or merged."),
    Action("copy_id", at(RUNS, "y"), "copy id", needs=needs_run,
           help="Copy the run id, or those of all marked ones, to the clipboard."),
    Action("messages", at(DECK, "M"), "messages", "Show all messages since the app was opened."),

    # --- one run in detail ---
    Action("detail", at(DECK, "i"), "detail", needs=needs_run, footer=13,
           help="Show the highlighted run in detail: why it is not done, answer, prompt, facts, usage, files."),
    *(Action(f"tab_{name}", at(DETAIL, str(number)), name, sentence, do=f"screen.show_tab('{name}')")
      for number, (name, sentence) in enumerate(_TABS.items(), start=1)),
    Action("next_tab", at(DETAIL, "right", "tab"), "next tab", "Go to the next tab.", do="screen.turn(1)"),
    Action("previous_tab", at(DETAIL, "left", "shift+tab"), "previous tab", "Go to the previous tab.",
           do="screen.turn(-1)"),
    Action("next_run", at(DETAIL, "J"), "next run", "Go to the run below in the list.", do="screen.act('next_run')"),
    Action("previous_run", at(DETAIL, "K"), "previous run", "Go to the run above in the list.",
           do="screen.act('previous_run')"),
    Action("detail_next_unseen", at(DETAIL, "]"), "next for me", "Go to the next run that needs you.",
           do="screen.act('next_unseen')"),
    Action("detail_previous_unseen", at(DETAIL, "["), "previous for me", "Go to the previous run that needs you.",
           do="screen.act('previous_unseen')"),
    Action("detail_stop", at(DETAIL, "x"), "stop", needs=needs_active, footer=6, do="screen.act('stop')", changes=True,
           help="Stop the run that is shown, gracefully; it keeps what it has done."),
    Action("detail_follow_up", at(DETAIL, "s"), "say, follow up", needs=needs_session, footer=7,
           name_here=_follow_up_name, do="screen.act('follow_up')", changes=True, writes=True,
           help="Say something to the run that is shown, or continue its conversation."),
    Action("detail_attach", at(DETAIL, "a"), "attach", needs=needs_terminal, footer=5, name_here=_attach_name,
           do="screen.act('attach')", help="Attach to the run's tmux pane, or show its transcript full screen."),
    Action("open_shown", at(DETAIL, "enter"), "open", do="screen.open_shown", footer=3,
           help="Open what is shown: the transcript on the deck, a file in your pager, the changes."),
    Action("copy_shown", at(DETAIL, "y"), "copy", do="screen.copy_shown", footer=4,
           help="Copy what the tab shows, or the path of the highlighted file."),
    *(_move(where, (DETAIL,), "screen.move", "detail_") for where in _MOVES),

    # --- what a run changed ---
    Action("changes", (*at(RUNS, "c"), *at(TRANSCRIPT, "c")), "changes", needs=needs_run, footer=12,
           help="Show what the run has changed, file by file, and take it over from there."),
    Action("detail_changes", at(DETAIL, "c"), "changes", needs=needs_run, footer=8, do="screen.act('changes')",
           help="Show what the run that is shown has changed."),
    Action("apply_changes", at(CHANGES, "a"), "apply", do="screen.act('apply_changes')", footer=1, changes=True,
           help="Write all changes of the run into your working tree, unstaged, after saying what that does."),
    Action("apply_file", at(CHANGES, "A"), "apply file", do="screen.act('apply_file')", changes=True,
           help="Write the changes of the file under the cursor into your working tree."),
    Action("mark_hunk", at(CHANGES, "space"), "mark hunk", do="screen.mark", footer=3,
           help="Mark the hunk under the cursor, or take the mark away, and go to the next one."),
    Action("apply_hunks", at(CHANGES, "p"), "apply hunks", do="screen.act('apply_hunks')", footer=2, changes=True,
           help="Write the marked hunks into your working tree; without any, the one under the cursor."),
    Action("merge_changes", at(CHANGES, "m"), "merge", do="screen.act('merge_changes')", footer=9, changes=True,
           help="Merge what the run did in its worktree into your branch, after saying what that does."),
    Action("pick_changes", at(CHANGES, "M"), "pick", do="screen.act('pick_changes')", changes=True,
           help="Put what the run did in its worktree onto your branch, as one commit."),
    Action("commit_changes", at(CHANGES, "C"), "commit", do="screen.act('commit_changes')", changes=True,
           help="Commit what the run left in its worktree, on its own branch."),
    Action("keep_changes", at(CHANGES, "K"), "keep", do="screen.act('keep_changes')", changes=True, writes=True,
           help="Keep the branch of the run under a name of yours."),
    Action("discard_changes", at(CHANGES, "x"), "discard", do="screen.act('discard_changes')", footer=10, changes=True,
           help="Remove worktree and branch of the run, after asking."),
    Action("next_hunk", at(CHANGES, "]"), "next hunk", "Go to the next hunk.", do="screen.go_hunk(1)", footer=4),
    Action("previous_hunk", at(CHANGES, "["), "previous hunk", "Go to the previous hunk.", do="screen.go_hunk(-1)"),
    Action("next_file", at(CHANGES, "}", "tab"), "next file", "Go to the next file.", do="screen.go_file(1)", footer=5),
    Action("previous_file", at(CHANGES, "{", "shift+tab"), "previous file", "Go to the previous file.",
           do="screen.go_file(-1)"),
    Action("fold_file", at(CHANGES, "enter"), "fold", do="screen.fold",
           help="Show only the name of the file under the cursor, or all of it again."),
    Action("fold_files", at(CHANGES, "O"), "fold all", "Show only the names of all files, or all of them again.",
           do="screen.fold_all"),
    Action("beside", at(CHANGES, "t"), "side by side", do="screen.beside", footer=7,
           help="Show old and new side by side, or one below the other."),
    Action("spaces", at(CHANGES, "w"), "blanks", do="screen.spaces",
           help="Hide what differs in blanks alone, or show it again."),
    Action("find_change", at(CHANGES, "/"), "find", "Search the changes.", do="screen.find", footer=6, writes=True),
    Action("next_found", at(CHANGES, "n"), "next", "Go to the next line with what was searched for.",
           do="screen.step(1)"),
    Action("previous_found", at(CHANGES, "N"), "previous", "Go to the previous line with it.", do="screen.step(-1)"),
    Action("undo_in_changes", at(CHANGES, "u"), "undo", needs=needs_undoable, do="screen.act('undo_in_changes')",
           changes=True, help="Take back what was done last, after asking."),
    Action("help_on_changes", at(CHANGES, "?"), "help", "Show every key.", do="screen.act('help_on_changes')",
           footer=11),
    Action("copy_hunk", at(CHANGES, "y"), "copy", do="screen.act('copy_hunk')",
           help="Copy the hunk under the cursor as a patch; at the name of a file, all of it."),
    Action("edit_change", at(CHANGES, "o"), "open file", do="screen.act('edit_change')", footer=8, changes=True,
           help="Open the file under the cursor in your editor ($EDITOR), at that line."),
    Action("pipe_changes", at(CHANGES, "|"), "pipe", do="screen.act('pipe_changes')", changes=True, writes=True,
           help="Pipe the patch to a command that you type."),
    Action("page_changes", at(CHANGES, "v"), "pager", do="screen.act('page_changes')",
           help="Open the patch in your pager: diff_pager of the settings, else $PAGER."),
    *(_move(where, (CHANGES,), "screen.move", "change_") for where in _MOVES),

    # --- cleaning up ---
    Action("clean_up", at(DECK, "D"), "clean up", changes=True, writes=True,
           help="Delete old runs by age, number or size; shows what that frees, and asks."),
    Action("clean", at(CLEAN_UP, "ctrl+s"), "clean up", do="screen.start", footer=1, changes=True,
           help="Delete what the rules select, after asking."),

    # --- tiles ---
    Action("tiles", at(DECK, "W"), "tiles", needs=needs_run, footer=15,
           help="Show two to six marked runs, or those that are running, side by side and live."),
    Action("next_tile", at(TILES, "tab", "right", "l"), "next", "Go to the next tile.", do="screen.go(1)", footer=1),
    Action("previous_tile", at(TILES, "shift+tab", "left", "h"), "previous", "Go to the previous tile.",
           do="screen.go(-1)"),
    *(Action(f"tile_{number}", at(TILES, str(number)), f"tile {number}", "Go to the tile of that number.",
             do=f"screen.choose({number})") for number in range(1, 7)),
    Action("zoom_tile", at(TILES, "z"), "zoom", "Give the whole screen to the tile, and back.", do="screen.zoom",
           footer=2),
    Action("open_tile", at(TILES, "enter"), "open", "Go to the transcript of the tile's run on the deck.",
           do="screen.ask_deck('open')", footer=3),
    Action("stop_tile", at(TILES, "x"), "stop", "Stop the tile's run gracefully; it keeps what it has done.",
           do="screen.ask_deck('stop')", footer=4, changes=True),
    Action("unfold_in_tile", at(TILES, "space"), "unfold", do="screen.open_entry",
           help="Unfold the tool call or the thinking at the tile's cursor, or fold it again."),
    Action("follow_tile", at(TILES, "f"), "follow", "Follow the end of the tile's transcript, or stop following it.",
           do="screen.follow"),
    Action("help_on_tiles", at(TILES, "?"), "help", "Show every key.", do="screen.ask_deck('help')", footer=6),
    *(_move(where, (TILES,), "screen.move", "tile_") for where in _MOVES),

    # --- comparing ---
    Action("compare", at(DECK, "V"), "compare", needs=needs_run, footer=16,
           help="Compare two to six marked runs, or those that were launched together: what each came to."),
    Action("next_column", at(COMPARE, "tab", "right", "l"), "next", "Go to the next run.", do="screen.go(1)", footer=1),
    Action("previous_column", at(COMPARE, "shift+tab", "left", "h"), "previous", "Go to the previous run.",
           do="screen.go(-1)"),
    *(Action(f"column_{number}", at(COMPARE, str(number)), f"run {number}", "Go to the run of that number.",
             do=f"screen.choose({number})") for number in range(1, 7)),
    Action("open_compared", at(COMPARE, "enter"), "open", "Show the run in detail, beginning with its answer.",
           do="screen.ask_deck('open')", footer=2),
    Action("difference", at(COMPARE, "d"), "difference", "Show what differs between what two runs have left.",
           do="screen.ask_deck('difference')", footer=3),
    Action("choose_compared", at(COMPARE, "p"), "pick", do="screen.ask_deck('choose')", footer=4, changes=True,
           help="Apply what the run changed and discard the worktrees of the others, after one question."),
    Action("help_on_comparing", at(COMPARE, "?"), "help", "Show every key.", do="screen.ask_deck('help')", footer=6),
    *(_move(where, (COMPARE,), "screen.move", "compare_") for where in _MOVES),

    # --- hosts ---
    Action("hosts", at(DECK, "h"), "hosts", "Show the machines on which runs can be, and what they are doing."),
    Action("host_runs", at(HOSTS, "enter"), "its runs", "Show only the runs on the host.",
           do="screen.ask_deck('runs')", footer=1),
    Action("host_attach", at(HOSTS, "a"), "ssh", do="screen.ask_deck('attach')", footer=3, changes=True,
           help="Go to the host by ssh, in this terminal; leave the shell there to come back."),
    Action("ask_hosts", at(HOSTS, "r"), "ask now", "Ask all hosts now what they are doing.",
           do="screen.ask_deck('ask')", footer=4, changes=True),
    Action("host_doctor", at(HOSTS, "!"), "doctor", do="screen.ask_deck('doctor')", footer=5, changes=True,
           help="Ask the host for all that runs need there, and see what mends what is wrong."),
    Action("help_on_hosts", at(HOSTS, "?"), "help", "Show every key.", do="screen.ask_deck('help')", footer=6),
    *(_move(where, (HOSTS,), "screen.move", "host_") for where in _MOVES),

    # --- talking to a run ---
    Action("allow", at(REQUEST, "y"), "allow", "Allow what the run asks for, this once.", needs_permission_request,
           footer=1, changes=True),
    Action("allow_run", at(REQUEST, "Y"), "allow in this run", needs=needs_run_rule, footer=4, changes=True,
           help="Allow it, and what is like it for as long as the run lasts."),
    *(Action(f"choose_{number}", at(REQUEST, str(number)), "choose", "Reply with the choice of that number.",
             needs_request, do=f"choose({number})", footer=1 if number == 1 else 0, changes=True,
             name_here=_choose_name) for number in range(1, 10)),
    Action("deny_request", at(REQUEST, "n"), "deny", "Deny what the run asks for, or decline to answer.", needs_request,
           footer=2, changes=True, name_here=_deny_name),
    Action("answer", at(REQUEST, "e", "enter"), "reply", needs=needs_request, footer=3, changes=True, writes=True,
           name_here=_answer_name, help="Write a reply, fill in the form, or deny with a word."),
    Action("later", at(REQUEST, "escape"), "later", "Leave it open, and go to the transcript.", footer=2),
    *(_move(where, (REQUEST,), "move", "request_") for where in _MOVES),
    Action("say", at(TALK, "enter", "ctrl+s"), "send", "Send what is written.", do="say", footer=1, changes=True),
    Action("new_line", at(TALK, "ctrl+j", "shift+enter"), "new line", "Begin a new line.", do="new_line", footer=3),
    Action("edit_message", at(TALK, "ctrl+e"), "editor", "Continue writing in your editor ($EDITOR).",
           do="edit_message", footer=4),
    Action("leave_unsaid", at(TALK, "escape"), "cancel", "Leave without sending; what is written is kept.",
           do="leave_unsaid", footer=2),

    # --- the transcript ---
    Action("open_entry", at(TRANSCRIPT, "enter", "space"), "open", needs=needs_run, footer=6,
           help="Unfold the tool call or the thinking at the cursor, or fold it again."),
    Action("open_all", at(TRANSCRIPT, "O"), "open all", needs=needs_run,
           help="Unfold all tool calls and thinking, or fold them again."),
    Action("view", at(DECK, "t"), "view", needs=needs_run,
           help="Show the transcript as text or as raw events, or what the agent wrote to stderr."),
    Action("follow", at(DECK, "f"), "follow", "Follow the end of the transcript, or stop following it.", needs_run),
    Action("wrap", at(DECK, "w"), "wrap", "Wrap long lines of the transcript, or cut them."),
    Action("left", at(TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
    Action("right", at(TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),

    # --- finding in it, and taking text out ---
    Action("search", at(TRANSCRIPT, "/"), "search", needs=needs_run_to_search, writes=True, footer=5,
           help="Search the transcript, folded text included; a capital letter makes it case-sensitive."),
    Action("search_all", at(DECK, "ctrl+f"), "search all", footer=14,
           help="Search tasks, answers and transcripts of all runs; {open_hit} opens a hit at its line."),
    Action("open_hit", at(FIND, "enter"), "open", do="screen.open_hit", footer=1,
           help="Open the highlighted hit: the transcript at that line."),
    Action("next_match", at(SEARCH, "n"), "next", "Go to the next match.", footer=1),
    Action("previous_match", at(SEARCH, "N"), "previous", "Go to the previous match.", footer=1),
    Action("end_search", at(SEARCH, "escape"), "end", "End the search and remove its highlights.", footer=1),
    Action("keep", at(FILTER, "enter"), "keep", "Keep it and go back to the pane.", do="keep", footer=1),
    Action("drop", at(FILTER, "escape"), "end", "Discard it and go back to what was there before.", do="drop",
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
    Action("copy_entry", at(TRANSCRIPT, "y"), "copy", "Copy the whole text under the cursor.", needs_run),
    Action("copy_answer", at(DECK, "Y"), "copy answer", "Copy the answer of the run, or one of its code blocks.",
           needs_run),
    Action("pipe", at(DECK, "|"), "pipe", needs=needs_terminal_to_lend, changes=True,
           help="Pipe the answer or the transcript of the run to a command that you type."),
    Action("open_path", at(TRANSCRIPT, "o"), "open file", needs=needs_terminal_to_lend, changes=True,
           help="Open the file named under the cursor in your editor ($EDITOR), at the line given there."),
    Action("page_transcript", at(DECK, "v"), "pager", "Open the whole transcript, unfolded, in your pager ($PAGER).",
           needs_pager),
    Action("save_run", at(DECK, "S"), "save", needs=needs_run, changes=True, writes=True,
           help="Save the run as a markdown file, after asking where."),

    # --- the deck ---
    Action("zoom", at(DECK, "z"), "zoom", "Give the whole screen to one pane, and back."),
    Action("narrower", at(DECK, "<"), "narrower", "Make the presets narrower.", needs_beside),
    Action("wider", at(DECK, ">"), "wider", "Make the presets wider.", needs_beside),
    Action("lower", at(DECK, "-"), "shorter", needs=needs_above,
           help="Make the transcript shorter, or narrower where it is beside the runs."),
    Action("higher", at(DECK, "+"), "taller", "Make the transcript taller, or wider.", needs_above),
    Action("reset_layout", at(DECK, "="), "reset layout", "Give the panes their original sizes."),
    Action("theme", at(DECK, "T"), "theme", "Go to the next theme: dark, light, the terminal's own colours."),
    Action("runs", at(DECK, "2"), "runs", "Go to the runs."),
    Action("transcript", at(DECK, "3"), "transcript", "Go to the transcript."),
    Action("next_pane", at(DECK, "tab"), "next pane", "Go to the next pane."),
    Action("previous_pane", at(DECK, "shift+tab"), "previous pane", "Go to the previous pane."),
    Action("back", at(DECK, "escape"), "back", "Leave the zoom, then the pane; never quits.", footer=1,
           name_here=lambda context: "back" if context.zoomed else ""),
    Action("help", at(DECK, "?"), "help", "Show every key.", footer=3),
    Action("quit", at(DECK, "q"), "quit", "Quit; runs continue in the background.", footer=12),
    Action("palette", (*at(DECK, ":"), *at(APP, "ctrl+p")), "palette", do="app.command_palette",
           help="Find anything by its name: an action, a run, a preset to launch, a filter, a setting."),
    Action("choose", at(PALETTE, "enter"), "choose", do="screen.choose", footer=1,
           help="Do the action, go to the run, launch the preset, filter, or open the setting in your editor."),
    Action("how_to_quit", at(APP, "ctrl+c"), "", "Say how to quit.", do="app.how_to_quit"),
    *(_move(where, PANES, "move") for where in _MOVES),
    Action("costs", at(DECK, "$"), "costs",
           help="Show what the runs cost today, this week and in all, by preset, model and agent."),
    Action("doctor", at(DECK, "!"), "doctor",
           help="Check what is missing here, and see the command that fixes it."),

    # --- dialogs ---
    Action("cancel",
           (*((place, "escape") for place in _CLOSED_BY_ESCAPE), *at(CONFIRM, "n"), *at(TILES, "q", "W"),
            *at(COMPARE, "q", "V"), *at(HOSTS, "q", "h")), "cancel",
           "Close the dialog without doing anything.", do="screen.cancel", footer=2,
           name_here=lambda context: "close" if context.place in _ONLY_READ else "cancel"),
    Action("confirm", at(CONFIRM, "y"), "yes", "Do it.", do="screen.confirm", footer=1),
    Action("edit_commit", at(CONFIRM, "e"), "edit message", do="screen.edit_message",
           help="Write the message in your editor ($EDITOR), where a commit is about to be made."),
    *(_move(where, (HELP, READING, FIND, PALETTE), "screen.move", "scroll_", in_text=True)
      for where in ("down", "up", "page_down", "page_up")),
)
# fmt: on

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}
