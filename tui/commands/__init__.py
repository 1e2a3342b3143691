"""What each action of the operator does. The table below is what the app imports; `base` is what the commands share.

Commands use the public parts of the deck, ask the engine through its bridge, and are loaded after the first paint.
"""

from __future__ import annotations

from functools import partial

from ..actions import KeyContext
from ..deck.screen import Handlers, MainScreen
from .answers import AnswerCommands
from .changes import ChangesCommands
from .compare import CompareCommands
from .deck import DeckCommands
from .detail import DetailCommands
from .hosts import HostCommands
from .launch import LaunchCommands
from .operations import OperationCommands
from .own import OwnCommands
from .palette import PaletteCommands
from .presets import PresetCommands
from .queue import QueueCommands
from .runs import RunCommands
from .search import FindCommands
from .take_over import TakeOverCommands
from .talk import TalkCommands
from .tiles import TileCommands
from .transcript import TranscriptCommands


def handlers(deck: MainScreen) -> Handlers:
    """Return what each action does on this deck, by its id."""
    presets, launch, runs = PresetCommands(deck), LaunchCommands(deck), RunCommands(deck)
    transcript, around = TranscriptCommands(deck), DeckCommands(deck)
    queue, palette, tiles = QueueCommands(deck), PaletteCommands(deck, launch), TileCommands(deck, runs)
    by_hand = TakeOverCommands(deck)
    talk = TalkCommands(deck, launch)
    changes = ChangesCommands(deck, OperationCommands(deck), transcript.copy, runs.undo)
    detail = DetailCommands(deck, runs, talk, around, changes)
    finding, answers = FindCommands(deck, detail), AnswerCommands(deck, transcript.copy)
    view, panes, search = deck.transcript, deck.panes, deck.search
    return OwnCommands(deck).handlers() | {
        "init_presets": lambda: presets.spawn(presets.write_starters),
        "create_preset": lambda: presets.spawn(presets.create),
        "edit_preset": lambda: presets.with_preset(presets.edit),
        "edit_preset_outside": lambda: presets.with_preset(presets.edit_outside),
        "copy_preset": lambda: presets.spawn(presets.copy, deck.presets.preset),
        "delete_preset": lambda: presets.with_preset(presets.delete),
        "launch": launch.launch_highlighted,
        "ad_hoc": lambda: launch.ask(None),
        "with_context": launch.with_context,
        "follow_up": talk.say,
        "interrupt": talk.interrupt,
        "allow": talk.allow,
        "allow_run": talk.allow_run,
        **{f"choose_{number}": partial(talk.choose, number) for number in range(1, 10)},
        "deny_request": talk.deny,
        "answer": talk.answer,
        "later": talk.later,
        "rerun": launch.rerun,
        "rerun_edited": launch.rerun_edited,
        "open": around.open,
        "filter": around.open_filter,
        "sort": around.sort,
        "reverse_sort": around.reverse_sort,
        "mark": around.mark,
        "mark_all": around.mark_all,
        "mark_seen": around.mark_seen,
        "fold": lambda: around.fold(True),
        "unfold": lambda: around.fold(False),
        "next_unseen": lambda: around.go_to_needing(1),
        "previous_unseen": lambda: around.go_to_needing(-1),
        "stop": lambda: runs.with_targets(runs.stop),
        "kill": lambda: runs.with_targets(runs.kill),
        "give_up": lambda: runs.with_targets(runs.give_up),
        "delete": lambda: runs.with_targets(runs.delete),
        "undo": lambda: runs.spawn(runs.undo),
        "queue_up": lambda: queue.with_run(queue.move_up),
        "queue_down": lambda: queue.with_run(queue.move_down),
        "hold_queue": lambda: queue.spawn(queue.hold_or_release),
        "copy_id": runs.copy_ids,
        "attach": runs.attach_or_zoom,
        "take_over": lambda: by_hand.with_run(by_hand.take_over),
        "detail": lambda: detail.with_run(detail.show),
        "changes": lambda: changes.with_run(changes.show),
        "clean_up": lambda: runs.spawn(runs.clean_up),
        "open_entry": transcript.open_entry,
        "open_all": view.toggle_all,
        "view": transcript.next_view,
        "follow": lambda: view.follow(not view.following),
        "wrap": lambda: view.set_wrap(not view.wrapped),
        "search": search.open,
        "search_all": finding.search_all,
        "next_match": lambda: search.step(1),
        "previous_match": lambda: search.step(-1),
        "end_search": search.end,
        "next_error": lambda: transcript.go_to_error(1),
        "previous_error": lambda: transcript.go_to_error(-1),
        "go_to_time": transcript.ask_time,
        "next_edit": lambda: transcript.go_to_edit(1),
        "previous_edit": lambda: transcript.go_to_edit(-1),
        "copy_entry": lambda: transcript.spawn(transcript.copy_entry),
        "copy_answer": lambda: answers.with_run(answers.copy_answer),
        "pipe": lambda: answers.with_run(answers.pipe),
        "open_path": lambda: answers.with_run(answers.open_path),
        "page_transcript": lambda: transcript.with_run(transcript.page),
        "save_run": lambda: transcript.with_run(transcript.ask_path, opens=False),
        "zoom": panes.toggle_zoom,
        "narrower": lambda: panes.widen_presets(-1),
        "wider": lambda: panes.widen_presets(1),
        "lower": lambda: panes.lower_transcript(1),
        "higher": lambda: panes.lower_transcript(-1),
        "reset_layout": panes.reset_layout,
        "theme": around.next_theme,
        "presets": lambda: panes.go_to(KeyContext.PRESETS),
        "runs": lambda: panes.go_to(KeyContext.RUNS),
        "transcript": lambda: panes.go_to(KeyContext.TRANSCRIPT),
        "next_pane": lambda: panes.go_round(1),
        "previous_pane": lambda: panes.go_round(-1),
        "back": around.go_back,
        "palette": palette.open,
        "tiles": tiles.open,
        "hosts": HostCommands(deck).open,
        "compare": CompareCommands(deck, detail, changes).open,
        "watch": tiles.watch,
        "help": around.show_help,
        "messages": around.list_messages,
        "costs": around.show_costs,
        "doctor": around.show_doctor,
        "quit": around.quit,
    }
