"""Whether a text can be saved as a preset, and what is to be said of it; nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..config.workspace import Workspace
from ..config.yaml_tree import SIZE_LIMIT, decode
from ..errors import ContentError
from ..presets.catalog import Tier, preset_files, preset_places, tiers
from ..presets.file import SUFFIX, Preset, parse_preset
from ..presets.frontmatter import split_markdown
from ..presets.write import stem_of
from ..run.model import PresetSource
from ..text.plain import one_line
from .preview import run_warnings


class PresetCheck(Struct, frozen=True):
    preset: Preset | None
    """None where the text cannot be saved."""
    fault: ContentError | None = None
    """Why not, and what to do; None where it can."""
    warnings: tuple[str, ...] = ()
    """What will not be as written, or keeps a run from being launched here."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and nothing to mend."""


class PresetDraft(Struct, frozen=True):
    """Where a text is to be a preset."""

    directory: str
    source: PresetSource
    path: str | None = None
    """None while it has no file."""


def check_preset(content: bytes, draft: PresetDraft, workspace: Workspace) -> PresetCheck:
    """Judge a text by the parser that will read it, by its neighbours, and by what a run of it would get here."""
    try:
        if len(content) > SIZE_LIMIT:
            raise ContentError(f"it is too large: {len(content) / SIZE_LIMIT:.1f} MB, at most 1 MB is read")
        text = decode(content)
        preset = parse_preset(text, draft.path or os.path.join(draft.directory, "preset.md"), draft.source)
        others = _others(preset.name, draft, workspace)
        _refuse_second(preset.name, text, draft, others)
    except ContentError as error:
        return PresetCheck(None, error)
    return PresetCheck(
        preset,
        warnings=(*map(one_line, preset.warnings), *run_warnings(preset, workspace)),
        notes=tuple(_hiding(draft, others, [place for _, place in preset_places(workspace)])),
    )


def _others(name: str, draft: PresetDraft, workspace: Workspace) -> tuple[Tier, ...]:
    return tuple(tier for tier in tiers(name, workspace) if draft.path is None or not _is_same(tier.path, draft.path))


def _refuse_second(name: str, text: str, draft: PresetDraft, others: tuple[Tier, ...]) -> None:
    for other in others:
        if _is_same(os.path.dirname(other.path), draft.directory):
            what = f'the name "{one_line(name)}" is taken by {one_line(os.path.basename(other.path), 80)} beside it'
            raise ContentError(what, line=_line_of_name(text), hint="choose another name")
    file = stem_of(name) + SUFFIX
    if draft.path is None and file in _names_in(draft.directory):
        what = f"there is a file {one_line(file, 80)} already, which this name would get"
        raise ContentError(what, line=_line_of_name(text), hint="choose another name")


def _names_in(directory: str) -> frozenset[str]:
    try:
        return frozenset(map(os.path.basename, preset_files(directory)))
    except OSError:
        return frozenset()  # what keeps it from being read keeps the file from being written, and is said then


def _line_of_name(text: str) -> int | None:
    fields = split_markdown(text).fields
    return fields.pairs["name"].line if fields and "name" in fields.pairs else None


def _hiding(draft: PresetDraft, others: tuple[Tier, ...], places: Sequence[str]) -> Iterator[str]:
    """Say which presets of the same name it hides, and which one hides it."""
    rank = next((rank for rank, place in enumerate(places) if _is_same(place, draft.directory)), len(places))
    for other in others:
        yield f"{'hides' if other.rank > rank else 'hidden by'} the {other.source} one of this name"


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
