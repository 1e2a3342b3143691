"""The project in the pictures: a small source tree, its presets, and the model server's scripts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.real.model_server import Script

FILES = {
    "README.md": "# shop\n\nOrders, carts and payments.\n",
    "src/auth.py": '''"""Who asks: every request passes here."""

from .tokens import decode


def authenticate(request):
    """Return the customer of a request; raises Unauthorized."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    return decode(token).customer


def require_admin(request):
    customer = authenticate(request)
    if "admin" not in customer.roles:
        raise Forbidden(request.path)
    return customer
''',
    "src/tokens.py": '''"""Signed tokens."""


def decode(token):
    """Return the claims; raises Unauthorized when the signature does not fit."""
    return claims_of(token, key=signing_key())
''',
    "src/orders.py": '''"""Orders: placing, paying, cancelling."""

from .auth import authenticate


def place(request):
    return Order.of(authenticate(request), parse_items(request.body))


def parse_items(body):
    """Read `sku x count` lines."""
    return [line.split(" x ") for line in body.splitlines()]
''',
    "src/settings.py": """import os

DATABASE = os.environ["SHOP_DATABASE"]
SECRET = os.environ.get("SHOP_SECRET", "")
""",
}

PRESETS = {
    "repo-scout": ("Fast repo exploration", "model: local/qwen3-coder\ntools: read, grep, find, ls"),
    "reviewer": ("Reviews one change with evidence", "model: local/devstral"),
    "fixer": ("Mends what a review found", "model: local/codestral"),
    "docs-writer": ("Writes guides for users", "model: hosted/mistral-large"),
    "offline-scout": ("Searches without a model", "agent: offline\ntools: read, grep, find, ls"),
}

USER_PRESETS = ("docs-writer",)

SENTENCE = (
    "Every request passes authenticate in src/auth.py:6: it takes the bearer token from the header and asks "
    "tokens.decode for the claims. Orders rely on it in src/orders.py:7, and require_admin adds a check of "
    "the roles. What is missing is a limit on how often a wrong token may be tried, so I look at"
)
FUNCTIONS = "5 public functions in 4 files; authenticate is the one that all others rely on."
QUESTION = "find where requests are authenticated"
"""The task of the run being watched."""
REVIEWS = ("review src/auth.py", "review src/tokens.py", "review src/orders.py")
"""The tasks of the group; the second one completes."""
QUEUED = "review src/settings.py"
SOUND = "Sound: decode checks the signature before it reads the claims. src/tokens.py:5 lacks a test for an empty key."

FIX = "refuse tokens that are empty, and test that"
MENDED = (
    "    return claims_of(token, key",
    """\
    if not token.strip():
        raise Unauthorized("empty token")
    return claims_of(token.strip(), key""",
)
TEST = """import pytest

from src.tokens import Unauthorized, decode


@pytest.mark.parametrize("token", ["", " "])
def test_empty_tokens_are_refused(token):
    with pytest.raises(Unauthorized):
        decode(token)
"""


def write(home: Path) -> Path:
    """Write the project and the presets below a home directory; return the project's root."""
    project = home / "src" / "shop"
    (project / ".git").mkdir(parents=True)
    texts = {project / name: text for name, text in FILES.items()}
    for name, (description, more) in PRESETS.items():
        place = home / ".pi/agent/subagents" if name in USER_PRESETS else project / ".pi/subagents"
        prompt = "Answer with evidence as path:line."
        texts[place / f"{name}.md"] = f"---\nname: {name}\ndescription: {description}\n{more}\n---\n{prompt}\n"
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return project


def _read(path: str) -> dict[str, Any]:
    return {"name": "read", "arguments": {"path": path}}


def _edit(path: str, old: str, new: str) -> dict[str, Any]:
    return {"name": "edit", "arguments": {"path": path, "edits": [{"oldText": old, "newText": new}]}}


def _turn(said: str, *calls: dict[str, Any], tokens: int = 2100, **more: Any) -> dict[str, Any]:
    usage = {"input": tokens, "output": len(said) // 4}
    return {"steps": [{"text": said}, *([{"tool_calls": list(calls)}] if calls else [])], "usage": usage, **more}


SCRIPTS = {
    "qwen3-coder": Script(
        _turn(
            "I'm looking for where requests get authenticated.",
            {"name": "grep", "arguments": {"pattern": "authenticate", "path": "src"}},
        ),
        _turn("The check is in one file; two others rely on it.", _read("src/auth.py"), _read("src/tokens.py")),
        {"chunk_delay": 0.05, "chunk_size": 8, "steps": [{"text": SENTENCE}, {"hang": True}]},
        is_each_from_the_start=True,
    ),
    "devstral": Script(
        _turn(FUNCTIONS, tokens=3900, when={"any_contains": "public functions"}),
        _turn(SOUND, tokens=3100, when={"any_contains": "review src/tokens.py"}),
        _turn("I read the parser first.", _read("src/orders.py"), tokens=4300),
        {"steps": [{"hang": True}]},
        is_each_from_the_start=True,
    ),
    "codestral": Script(
        _turn(
            "A token of blanks reaches the signature; I refuse it before.",
            _edit("src/tokens.py", *MENDED),
            _edit("src/auth.py", '.removeprefix("Bearer ")', '.removeprefix("Bearer").strip()'),
            {"name": "write", "arguments": {"path": "tests/test_tokens.py", "content": TEST}},
        ),
        _turn("Empty tokens are refused in src/tokens.py; tests/test_tokens.py shows it."),
        is_each_from_the_start=True,
    ),
    "mistral-large": Script({"status": 401, "body": {"error": {"message": "Incorrect API key provided: sk-…f3a"}}}),
}


def providers(url: str, *more: str) -> dict[str, Any]:
    """Return pi's models.json: two providers, both of them the scripted server, the first with more models."""
    server = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "sk-none"}
    cost = {"input": 1.2, "output": 4.8, "cacheRead": 0, "cacheWrite": 0}
    local = [{"id": name, "cost": cost} for name in ("qwen3-coder", "devstral", "codestral", *more)]
    hosted = [{"id": "mistral-large", "cost": cost}]
    return {"providers": {"local": {**server, "models": local}, "hosted": {**server, "models": hosted}}}
