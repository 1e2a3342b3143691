"""The actions on the transcript; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import NO_RUN, Action, KeyContext, at, needs_run

if TYPE_CHECKING:
    from .model import ActionContext

TRANSCRIPT = (
    Action(
        "open_entry",
        at(KeyContext.TRANSCRIPT, "enter", "space"),
        "open",
        "Unfold the tool call or the thinking at the cursor, or fold it again.",
        needs_run,
        footer=6,
    ),
    Action(
        "open_all",
        at(KeyContext.TRANSCRIPT, "O"),
        "open all",
        "Unfold all tool calls and thinking, or fold them again.",
        needs_run,
    ),
    Action(
        "view",
        at(KeyContext.DECK, "t"),
        "view",
        "Show the transcript as text or as raw events, or what the agent wrote to stderr.",
        needs_run,
    ),
    Action(
        "follow",
        at(KeyContext.DECK, "f"),
        "follow",
        "Follow the end of the transcript, or stop following it.",
        needs_run,
    ),
    Action("wrap", at(KeyContext.DECK, "w"), "wrap", "Wrap long lines of the transcript, or cut them."),
    Action("left", at(KeyContext.TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
    Action("right", at(KeyContext.TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),
)


def _needs_paging(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "There is no terminal to lend to a pager.")


def _needs_shown_run(context: ActionContext) -> str:
    return "" if context.run else f"{NO_RUN} There is nothing to search."


FINDING = (
    Action(
        "search",
        at(KeyContext.TRANSCRIPT, "/"),
        "search",
        "Search the transcript, folded text included; a capital letter makes it case-sensitive.",
        _needs_shown_run,
        footer=5,
    ),
    Action("next_match", at(KeyContext.SEARCH, "n"), "next", "Go to the next match.", footer=1),
    Action("previous_match", at(KeyContext.SEARCH, "N"), "previous", "Go to the previous match.", footer=1),
    Action("end_search", at(KeyContext.SEARCH, "escape"), "end", "End the search and remove its highlights.", footer=1),
    Action(
        "keep",
        at(KeyContext.FILTER, "enter"),
        "keep",
        "Keep it and go back to the pane.",
        do="keep",
        footer=1,
    ),
    Action(
        "drop",
        at(KeyContext.FILTER, "escape"),
        "end",
        "Discard it and go back to what was there before.",
        do="drop",
        footer=2,
    ),
    Action(
        "next_error", at(KeyContext.TRANSCRIPT, "e"), "next error", "Go to the next error in the transcript.", needs_run
    ),
    Action(
        "previous_error",
        at(KeyContext.TRANSCRIPT, "E"),
        "previous error",
        "Go to the previous error in the transcript.",
        needs_run,
    ),
    Action(
        "go_to_time",
        at(KeyContext.TRANSCRIPT, "@"),
        "go to time",
        "Go to a time in the transcript: 20:12, -5m from the end, +90s from the start, 50%.",
        needs_run,
    ),
    Action("copy_entry", at(KeyContext.TRANSCRIPT, "y"), "copy", "Copy the whole text under the cursor.", needs_run),
    Action("copy_answer", at(KeyContext.DECK, "Y"), "copy answer", "Copy the answer of the run.", needs_run),
    Action(
        "page_transcript",
        at(KeyContext.DECK, "v"),
        "pager",
        "Open the transcript in $PAGER, all of it unfolded.",
        _needs_paging,
    ),
    Action(
        "save_run",
        at(KeyContext.DECK, "S"),
        "save",
        "Save the run as a markdown file, after asking where.",
        needs_run,
        changes=True,
    ),
)


_TABS = {
    "transcript": "The end of its transcript.",
    "answer": "The answer, or what there is of it so far.",
    "prompt": "The prompt as the agent got it, and its system prompt.",
    "facts": "How it was launched and how it ended.",
    "usage": "Tokens and cost of each message.",
    "files": "The files of the run.",
    "events": "The last events, as they stand in the file.",
}

DETAIL = (
    Action(
        "detail",
        at(KeyContext.DECK, "i"),
        "detail",
        "Show the highlighted run in detail: why it is not done, answer, prompt, facts, usage, files.",
        needs_run,
        footer=13,
    ),
    *(
        Action(f"tab_{name}", at(KeyContext.DETAIL, str(number)), name, sentence, do=f"screen.show_tab('{name}')")
        for number, (name, sentence) in enumerate(_TABS.items(), start=1)
    ),
    Action("next_tab", at(KeyContext.DETAIL, "right", "tab"), "next tab", "Go to the next tab.", do="screen.turn(1)"),
    Action(
        "previous_tab",
        at(KeyContext.DETAIL, "left", "shift+tab"),
        "previous tab",
        "Go to the previous tab.",
        do="screen.turn(-1)",
    ),
    Action(
        "open_shown",
        at(KeyContext.DETAIL, "enter"),
        "open",
        "Open what is shown: the transcript on the deck, a file in your pager.",
        do="screen.open_shown",
        footer=3,
    ),
    Action(
        "copy_shown",
        at(KeyContext.DETAIL, "y"),
        "copy",
        "Copy what the tab shows, or the path of the highlighted file.",
        do="screen.copy_shown",
        footer=4,
    ),
    *(
        Action(f"detail_{where}", at(KeyContext.DETAIL, *keys), name, sentence, do=f"screen.move('{where}')")
        for where, keys, name, sentence in (
            ("down", ("j", "down"), "down", "One row down."),
            ("up", ("k", "up"), "up", "One row up."),
            ("page_down", ("pagedown",), "page down", "One page down."),
            ("page_up", ("pageup",), "page up", "One page up."),
            ("first", ("g", "home"), "first", "Go to the beginning."),
            ("last", ("G", "end"), "last", "Go to the end."),
        )
    ),
)
