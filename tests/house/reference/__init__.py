"""The documents that are generated from code: `python -m tests.house.reference` writes them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from .. import promises
from . import cli, errors, json_documents, keys, man, presets, settings

ROOT = Path(__file__).resolve().parents[3]
REWRITE = "run `python -m tests.house.reference` to rewrite it"

GENERATED: dict[str, Callable[[], str]] = {
    "core/config/_action_names.py": keys.names_module,
    "docs/man/subdeck.1": man.page,
    "docs/reference/cli.md": cli.page,
    "docs/reference/errors.md": errors.page,
    "docs/reference/json.md": json_documents.page,
    "docs/reference/keys.md": keys.page,
    "docs/reference/presets.md": presets.page,
    "docs/reference/promises.md": promises.page,
    "docs/reference/settings.md": settings.page,
}
"""By path: the function that returns the whole text."""


def documents() -> Iterator[Path]:
    """Yield every document of the tree for readers."""
    yield from sorted(ROOT.glob("*.md"))
    yield from sorted(ROOT.glob("docs/**/*.md"))


def wanted() -> Iterator[tuple[Path, str]]:
    """Yield each generated file, and each document with keys, with its expected text."""
    for name, text in GENERATED.items():
        yield ROOT / name, text()
    for path in documents():
        if str(path.relative_to(ROOT)) not in GENERATED:
            yield path, keys.filled_in(path.read_text(encoding="utf-8"))
