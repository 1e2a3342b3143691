"""The palette's offers, and which of them match the typed words; pure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from ...core.config.files import KEYS, example_line, example_settings, value_of
from ...core.config.settings import Settings
from ...core.run.describe import state
from ...core.run.model import RunStatus
from ...core.system.files import write_new
from ...core.text.decoder import encode_shown
from ...core.text.plain import one_line
from ..keys.command import DECK, PANES, Action, KeyContext
from ..keys.keymap import key_label, with_keys

if TYPE_CHECKING:
    from ...core.presets.catalog import Preset
    from ...core.run.snapshot import RunSnapshot

SEARCHED = 2_000
"""Characters of a task that are searched."""
SHOWN = 300
"""Characters of a task that may be shown."""


class Kind(StrEnum):
    """The kind of an offer; the value is its label on the screen."""

    RECENT = "recent"
    """An action that you chose here before."""
    ACTION = "action"
    PRESET = "preset"
    FILTER = "filter"
    SETTING = "setting"
    RUN = "run"


class Offer(NamedTuple):
    kind: Kind
    key: str
    """Its identity: id of an action or a run, name of a preset or a setting, text of a filter."""
    title: str
    detail: str = ""
    words: str = ""
    """The searched text, in lower case."""


_FILTERS = (
    *((f"status:{status}", f"Show only runs that are {status}.") for status in RunStatus),
    ("is:unread", "Show only unread results."),
    ("is:needs-input", "Show only runs that need input."),
    ("is:interrupted", "Show only interrupted runs that wait for your message."),
    ("is:idle", "Show only running runs without recent output."),
    ("is:untrusted", "Show only runs that your subdeck did not make."),
    ("is:unknown", "Show only runs on unreachable hosts or of another machine."),
    ("is:selected", "Show only selected runs."),
    ("check:failed", "Show only runs with a failed check."),
    ("age:<1h", "Show only runs from the last hour."),
    ("age:<1d", "Show only runs from the last day."),
    ("cost:>1", "Show only runs that cost more than a dollar."),
)


def action_offers(
    actions: Iterable[Action], sentences: Sequence[Action], recent: Sequence[str] = (), key_context: KeyContext = DECK
) -> Iterator[Offer]:
    """Offer actions: first the `recent` ones, by id, then those of the key context, and the common ones before others.

    `sentences` are all actions, whose keys the help texts may name.
    """
    nearness = {where: number for number, where in enumerate((KeyContext.REQUEST, key_context, DECK))}

    def rank(action: Action) -> tuple[int, int, bool]:
        """Return a number for sorting; the smallest comes first."""
        is_recent = action.id in recent
        near = min(nearness.get(where, len(nearness)) for where in action.key_contexts)
        return (recent.index(action.id) if is_recent else len(recent), near, not action.footer)

    for action in sorted(actions, key=rank):
        kind = Kind.RECENT if action.id in recent else Kind.ACTION
        yield _offer(kind, action.id, _title(action), with_keys(action.help, sentences), Kind.ACTION)


def preset_offers(presets: Iterable[Preset]) -> Iterator[Offer]:
    for preset in presets:
        detail = one_line(f"Launch: {preset.description}" if preset.description else "Launch this preset.", SHOWN)
        yield _offer(Kind.PRESET, preset.name, one_line(preset.name, 60), detail)


def filter_offers(present: str, names: Iterable[str], hosts: Iterable[str] = ()) -> Iterator[Offer]:
    """Offer filters: clear the present one, filters without arguments, one for each preset and host."""
    if present:
        yield _offer(Kind.FILTER, "", "show all runs", f"Clear the filter {one_line(present, 60)}.")
    for text, sentence in _FILTERS:
        yield _offer(Kind.FILTER, text, text, sentence)
    for name in sorted(set(names), key=str.casefold):
        shown = one_line(name, 60)
        text = f'preset:"{shown}"' if " " in shown else f"preset:{shown}"
        yield _offer(Kind.FILTER, text, text, f"Show only runs with the preset {shown}.")
    for host in sorted({one_line(host, 64) for host in hosts}):
        yield _offer(Kind.FILTER, f"host:{host}", f"host:{host}", f"Show only runs on {host}.")


def typed_filter(typed: str) -> Offer:
    return _offer(Kind.FILTER, typed, one_line(typed, 60), "Filter the runs.")


def setting_offers(settings: Settings) -> Iterator[Offer]:
    """Offer the file with your settings, and each setting."""
    yield _offer(Kind.SETTING, "", "settings, config.yaml", "Open the file with your settings in your editor.")
    for key, entry in KEYS.items():
        value = value_of(settings, key)
        shown = "not set" if value in (None, (), {}) else one_line(encode_shown(value), 40)
        yield _offer(Kind.SETTING, key, key, one_line(f"{shown} · {entry.setting.meaning}", SHOWN), "settings config")


def run_offers(runs: Iterable[RunSnapshot]) -> Iterator[Offer]:
    """Offer runs, the latest first."""
    for run in sorted(runs, key=lambda run: run.run_id, reverse=True):
        meta = run.meta
        name = one_line(meta.title, 40)
        words = f"{name} {meta.run_id} {run.status} {meta.task[:SEARCHED]} {Kind.RUN}".casefold()
        yield Offer(Kind.RUN, run.run_id, f"{state(run)[0]} {name} {meta.short_id}", one_line(meta.task, SHOWN), words)


def _offer(kind: Kind, key: str, title: str, detail: str, words: str = "") -> Offer:
    """Return an offer; `words` also find it, although they are not shown."""
    return Offer(kind, key, title, detail, f"{title} {detail} {kind} {words}".casefold())


def _title(action: Action) -> str:
    """Return name and keys; and the pane if the keys only work in panes: presets and runs are both deleted."""
    where = (
        f" · {action.key_contexts[0]}"
        if action.keys and all(key_context in PANES for key_context in action.key_contexts)
        else ""
    )
    keys = " ".join(dict.fromkeys(key_label(key) for _, key in action.keys))
    return f"{action.name}{where}{f'  ({keys})' if keys else ''}"


def matching(offers: Sequence[Offer], typed: str) -> list[Offer]:
    """Return the offers that match all words, best first: title begins with them, contains them, then the rest.

    Without a match, the offers whose title contains the letters in this order.
    """
    words = typed.casefold().split()
    if not words:
        return list(offers)
    whole = " ".join(words)
    matches = [offer for offer in offers if all(word in offer.words for word in words)]
    if not matches:
        letters = "".join(words)
        return [offer for offer in offers if _has_letters(letters, offer.title.casefold())]
    return sorted(matches, key=lambda offer: _distance(whole, words, offer.title.casefold().lstrip("●◌✓✗⊘?◔ ")))


def _distance(whole: str, words: Sequence[str], title: str) -> int:
    if title.startswith(whole):
        return 0
    if all(f" {word}" in f" {title}" for word in words):
        return 1
    return 2 if all(word in title for word in words) else 3


def _has_letters(letters: str, title: str) -> bool:
    rest = iter(title)
    return all(letter in rest for letter in letters)


# --- a setting -------------------------------------------------------------------------------------------------------


def setting_facts(settings: Settings, key: str, path: str) -> str:
    """Describe a setting: its meaning, current value, syntax and file; without a `key` only the file."""
    if not key:
        return f"Your settings are in {path}"
    value = value_of(settings, key)
    return "\n".join(
        (
            KEYS[key].setting.meaning,
            "",
            f"current   {'not set' if value is None else one_line(encode_shown(value), 60)}",
            f"example   {one_line(example_line(key), 60)}",
            f"file      {path}",
            "",
            f"Changes take effect {'when subdeck starts again' if KEYS[key].setting.needs_restart else 'at once'}.",
        )
    )


def ready_file(path: str, key: str) -> int:
    """Create the file with all settings commented out if it does not exist; return the line of a setting.

    Without a `key` that is the first line.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        text = example_settings()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_new(path, [text.encode()])
    return line_of(text, key) if key else 1


_SET, _COMMENTED = "", "# ?"
_IN_A_GROUP = re.compile(r"\s|#\s{2,}|##|$")


def line_of(text: str, key: str) -> int:
    """Return the number of the line that sets a setting in any spelling, otherwise of its commented line, otherwise of
    its group, otherwise the last.
    """
    lines = text.split("\n")
    spellings = (key, *KEYS[key].old_names)
    numbers = [_line_in(lines, mark, spelling) for mark in (_SET, _COMMENTED) for spelling in spellings]
    return next(filter(None, (*numbers, _head(lines, key.rpartition(".")[0]))), len(text.rstrip("\n").split("\n")))


def _line_in(lines: Sequence[str], mark: str, spelling: str) -> int:
    """Return the number of the line that has a setting in one spelling after this mark; 0 for none."""
    group, _, name = spelling.rpartition(".")
    if not group:
        return _first(lines, rf"{mark}{re.escape(name)}\s*:")
    begin = _head(lines, group)
    members = list(takewhile(_IN_A_GROUP.match, lines[begin:])) if begin else []
    number = _first(members, rf"{mark}\s+{re.escape(name)}\s*:")
    return begin + number if number else 0


def _head(lines: Sequence[str], group: str) -> int:
    """Return the number of a group's first line; 0 for none."""
    return _line_in(lines, _SET, group) or _line_in(lines, _COMMENTED, group) if group else 0


def _first(lines: Sequence[str], pattern: str) -> int:
    return next((number for number, line in enumerate(lines, 1) if re.match(pattern, line)), 0)
