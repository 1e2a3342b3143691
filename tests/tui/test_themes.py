"""Colours: three themes, and none with NO_COLOR."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.style import Style
from subdeck.core.config._app_names import THEMES
from subdeck.core.config.settings import Settings
from subdeck.tui.theme import OURS, next_theme, theme_file
from textual.color import Color
from textual.theme import BUILTIN_THEMES

from .fake_engine import FakeEngine, a_preset, a_run, run_id, some_events
from .open_deck import Deck, opened
from .runs.test_idle_runs import heard
from .runs.test_needs_you import asking, began, over

NAMES = [theme.name for theme in OURS]
LEAST_CONTRAST = 4.5
"""WCAG's minimum for text."""


def an_engine(**settings: object) -> FakeEngine:
    engine = FakeEngine(
        a_run(1, "failed", message="401"), a_run(2), a_run(3, "completed"), a_run(4, "aborted"),
        presets=[a_preset(), a_preset("reviewer")],
    )  # fmt: skip
    engine.write(run_id(2), *some_events())
    engine.settings = Settings(**settings)  # type: ignore[arg-type]
    return engine


def segments(deck: Deck) -> Iterator[tuple[str, Style]]:
    for strip in deck.strips:
        for text, style, _ in strip:
            if style is not None and text.strip():
                yield text, style


def test_the_next_theme() -> None:
    """Themes go round; one of Textual's is followed by our first one."""
    assert [next_theme(name) for name in NAMES] == [*NAMES[1:], NAMES[0]]
    assert next_theme("nord") == NAMES[0]


async def test_a_key_goes_to_the_next_theme() -> None:
    """The key shows the theme's name as the setting expects it."""
    async with opened(an_engine(theme="subdeck-light")) as deck:
        assert deck.app.theme == "subdeck-light"
        await deck.act("theme")
        await deck.until(lambda: deck.app.theme == "terminal", "the next theme")
        assert any("Theme: terminal" in toast for toast in deck.toasts)


def test_the_engine_knows_the_themes() -> None:
    """The settings accept exactly the app's themes."""
    assert {*NAMES, *BUILTIN_THEMES} == set(THEMES)


@pytest.mark.parametrize("name", ["subdeck-dark", "subdeck-light"])
@pytest.mark.parametrize("keys", [(), ("3",), ("1",), ("?",), ("n",), ("X",), (":",)])
async def test_text_can_be_read(name: str, keys: tuple[str, ...]) -> None:
    """Every text of deck and dialogs has enough contrast with its background."""
    async with opened(an_engine(theme=name)) as deck:
        await deck.until_text("src/file_2.py")
        await deck.press(*keys)
        await deck.pilot.pause(0.3)
        faint = {
            (text.strip()[:20], round(contrast, 1))
            for text, style in segments(deck)
            if any(char.isalnum() for char in text) and (contrast := contrast_of(style)) < LEAST_CONTRAST
            and deck.app.screen is deck.main
        }  # fmt: skip
        assert faint == set()


RED_OF_THE_COLOR_BLIND = (0.11, 0.29)
"""The share of red in the one brightness of red and green that is seen without red cones, and without green ones."""


def contrast_of(style: object, red: float | None = None) -> float:
    """Return the contrast of a text; with `red`, as seen by a person who cannot tell red from green."""
    fore, back = (Color.from_rich_color(getattr(style, name)) for name in ("color", "bgcolor"))
    if getattr(style, "reverse", False):
        fore, back = back, fore
    light, dark = sorted((luminance(fore, red), luminance(back, red)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(color: Color, red: float | None = None) -> float:
    parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in color.normalized]
    if red is not None:
        parts[0] = parts[1] = red * parts[0] + (1 - red) * parts[1]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("keys", [(), ("3",), ("1",), ("?",), ("n",), ("X",), (":",)])
async def test_the_terminals_own_colours(keys: tuple[str, ...]) -> None:
    """The theme `terminal` uses only the terminal's sixteen colours and its default."""
    async with opened(an_engine(theme="terminal")) as deck:
        await deck.until_text("src/file_2.py")
        await deck.press(*keys)
        await deck.pilot.pause(0.3)
        own = {
            (text[:20], str(color))
            for text, style in segments(deck)
            for color in (style.color, style.bgcolor)
            if color is not None and color.triplet is not None
        }
        assert own == set()


@pytest.mark.parametrize("keys", [(), ("3",), ("1",), ("?",), ("n",), ("X",), (":",)])
async def test_no_colour(monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...]) -> None:
    """With NO_COLOR no text has a colour; the focused row is reversed and its pane has a heavy frame."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(an_engine()) as deck:
        await deck.until_text("src/file_2.py")
        await deck.press(*keys)
        await deck.pilot.pause(0.3)
        coloured = {text[:20] for text, style in segments(deck) if style.color or style.bgcolor}
        assert coloured == set()
        if not keys:
            reversed_text = "".join(text for text, style in segments(deck) if style.reverse)
            assert "● repo-scout" in reversed_text and "✗" not in reversed_text
            assert "━ Runs ━" in deck.screen_text and "─ repo-scout ▸" in deck.screen_text


# --- runs that need you --------------------------------------------------------------------------------------------

NEEDS = ("? 1 needs input", "✗ 1 failed", "◐ 1 idle")


async def needs_shown(deck: Deck, engine: FakeEngine) -> dict[str, Style]:
    """Return the parts of the first line for runs that need you, each with its style."""
    await began(deck)
    engine.tell(asking(1, "make"), over(2, "failed"), heard(3, 367))
    await deck.until_text("  ".join(("/src/shop", *NEEDS)))
    assert "3 need you  ] next" in deck.screen_text
    return {text: style for text, style, _ in deck.strips[0] if text in NEEDS and style}


def needing_engine(**settings: object) -> FakeEngine:
    engine = an_engine(**settings)
    engine.runs = {run.run_id: run for run in (a_run(1, meta_talk=True), a_run(2), heard(3, 0))}
    return engine


@pytest.mark.parametrize("name", ["subdeck-dark", "subdeck-light"])
async def test_needs_have_their_colours(name: str) -> None:
    """Requests are amber, failures red and idle runs violet: readable in both themes, also with red-green blindness."""
    async with opened(engine := needing_engine(theme=name)) as deck:
        shown = await needs_shown(deck, engine)
        variables = deck.app.theme_variables
        wanted = dict(zip(NEEDS, ("text-warning", "text-error", "text-accent"), strict=True))
        for text, style in shown.items():
            assert style.color and style.bold
            assert Color.from_rich_color(style.color).hex6 == Color.parse(variables[wanted[text]]).hex6
            assert contrast_of(style) >= LEAST_CONTRAST
            assert all(contrast_of(style, share) >= LEAST_CONTRAST for share in RED_OF_THE_COLOR_BLIND)
        assert len(shown) == len({str(style.color) for style in shown.values()}) == 3


async def test_needs_in_eight_colours() -> None:
    """In the terminal's own colours they are three of the first eight."""
    async with opened(engine := needing_engine(theme="terminal")) as deck:
        shown = await needs_shown(deck, engine)
        assert [3, 1, 5] == [style.color.number for text in NEEDS if (style := shown[text]).color]


async def test_needs_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR glyphs and words say the same, in bold."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(engine := needing_engine()) as deck:
        shown = await needs_shown(deck, engine)
        assert all(style.bold and style.color is None for style in shown.values())
        assert len(shown) == 3


async def test_an_empty_no_color_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty NO_COLOR does not count, as its convention says."""
    monkeypatch.setenv("NO_COLOR", "")
    async with opened(an_engine()) as deck:
        assert any(style.color for _, style in segments(deck))


async def test_no_theme_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR the key explains that there is no theme to choose."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with opened(an_engine()) as deck:
        await deck.act("theme")
        assert any("NO_COLOR" in toast for toast in deck.toasts)


async def test_a_chosen_theme_is_kept() -> None:
    """A theme chosen by key is kept for the next start, unless the settings then name another one."""
    async with opened(an_engine(theme="subdeck-light")) as deck:
        await deck.act("theme")
        await deck.until(lambda: theme_file().read().theme == "terminal", "the choice on the disk")
    async with opened(an_engine(theme="subdeck-light")) as deck:
        assert "terminal" == deck.app.theme
    async with opened(an_engine(theme="subdeck-dark")) as deck:
        assert "subdeck-dark" == deck.app.theme
