"""pi launched from the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.lab import Lab, lab
from tests.real.model_server import called
from tests.real.programs import PI

from .acts import launch, only_run
from .conftest import OpenApp

pytestmark = [pytest.mark.tmux, pytest.mark.pi]

SENTENCE = "The token is checked by authenticate in src/auth.py, and orders rely on it."


@pytest.fixture
def pi(shop: Path, home: Path, pi_executable: str) -> Iterator[Lab]:
    with lab(PI, pi_executable, shop, home) as ready:
        yield ready


def test_a_sentence_is_seen_while_it_is_written(pi: Lab, open_app: OpenApp) -> None:
    """The transcript shows tool calls, and the answer while the model writes it."""
    reading = called(("read", {"path": "src/auth.py"}), text="I look where requests get authenticated.")
    first, rest = SENTENCE[:30], SENTENCE[30:]
    goes_on = pi.project / "go"
    pi.script(reading, {"steps": [{"text": first}, {"until": str(goes_on)}, {"text": rest}], "chunk_size": 5})
    app = open_app()
    assert "pi 0.73.1" in app.screen
    launch(app, "where are requests authenticated?")
    app.until_shown("● ", "I look where requests get authenticated.")
    app.until_shown("● ", "Reading src/auth.py", "Finished reading src/auth.py")
    half = app.until_shown("The token is checked by", "▋")
    assert SENTENCE not in half
    goes_on.touch()
    app.until_shown(SENTENCE, "✓ completed: done", " ✓ repo-scout", "bg: 0 running / 1 total")
    run = only_run(pi.project)
    assert (SENTENCE, "fake/test", 1) == (run["finalText"], run["resolvedModel"], run["usage"]["toolUses"])


def test_a_refused_key_is_no_success(pi: Lab, open_app: OpenApp) -> None:
    """If the provider refuses the key, the run fails although pi exits with code 0. The app shows why."""
    pi.script({"status": 401, "body": {"error": {"message": "Invalid API key sk-…"}}})
    app = open_app()
    launch(app, "where are requests authenticated?")
    app.until_shown("✗ ", "model_error: 401", "bg: 0 running / 1 total", "1 needs you")
    run = only_run(pi.project)
    assert ("failed", "model_error", 0) == (run["status"], run["reason"], run["exitCode"])
    assert "Invalid API key" in run["errorMessage"]
