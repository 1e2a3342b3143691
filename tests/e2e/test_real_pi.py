"""pi launched from the app."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fake_llm import FakeLLM

from .acts import launch, only_run
from .conftest import OpenApp

pytestmark = [pytest.mark.tmux, pytest.mark.pi]

SENTENCE = "The token is checked by authenticate in src/auth.py, and orders rely on it."
READING = {
    "turns": [
        {
            "steps": [
                {"text": "I look where requests get authenticated."},
                {"tool_calls": [{"name": "read", "arguments": {"path": "src/auth.py"}}]},
            ]
        },
        {"chunk_delay": 0.15, "chunk_size": 5, "steps": [{"text": SENTENCE}]},
    ]
}
REFUSED = {"turns": [{"status": 401, "body": {"error": {"message": "Invalid API key sk-…"}}}]}


@pytest.fixture
def serve(world: Path, home: Path, pi_executable: str) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Make pi the agent, with one provider that a scripted server answers."""
    agent_dir = Path(os.environ["PI_CODING_AGENT_DIR"])
    agent_dir.mkdir(parents=True)
    settings = home / ".config/subdeck/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"agents": {"pi": {"command": [pi_executable]}}}))
    with ExitStack() as stack:

        def served(scenario: dict[str, Any]) -> None:
            server = stack.enter_context(FakeLLM(scenario))
            provider = {"baseUrl": server.base_url, "api": "openai-completions", "apiKey": "sk-fake"}
            models = {"providers": {"fake": {**provider, "models": [{"id": "test"}]}}}
            (agent_dir / "models.json").write_text(json.dumps(models))

        yield served


def test_a_sentence_is_seen_while_it_is_written(
    serve: Callable[[dict[str, Any]], None], open_app: OpenApp, shop: Path
) -> None:
    """The transcript shows tool calls, and the answer while the model writes it."""
    serve(READING)
    app = open_app()
    assert "pi 0.73.1" in app.screen
    launch(app, "where are requests authenticated?")
    app.until_shown("● ", "I look where requests get authenticated.")
    app.until_shown("● ", "Reading src/auth.py", "Finished reading src/auth.py")
    half = app.until_shown("The token is checked by", "▋")
    assert SENTENCE not in half
    app.until_shown(SENTENCE, "✓ completed: done", " ✓ repo-scout", "bg: 0 running / 1 total")
    run = only_run(shop)
    assert (SENTENCE, "fake/test", 1) == (run["finalText"], run["resolvedModel"], run["usage"]["toolUses"])


def test_a_refused_key_is_no_success(serve: Callable[[dict[str, Any]], None], open_app: OpenApp, shop: Path) -> None:
    """If the provider refuses the key, the run fails although pi exits with code 0. The app shows why."""
    serve(REFUSED)
    app = open_app()
    launch(app, "where are requests authenticated?")
    app.until_shown("✗ ", "model_error: 401", "bg: 0 running / 1 total", "1 needs you")
    run = only_run(shop)
    assert ("failed", "model_error", 0) == (run["status"], run["reason"], run["exitCode"])
    assert "Invalid API key" in run["errorMessage"]
