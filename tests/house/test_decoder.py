"""Only the modules that know every error of decoding decode outside data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

DECODERS = {
    "json.load",
    "json.loads",
    "json.JSONDecoder",
    "msgspec.convert",
    "msgspec.json.decode",
    "msgspec.json.Decoder",
    "msgspec.msgpack.decode",
    "yaml.compose",
    "yaml.load",
    "yaml.parse",
    "yaml.safe_load",
}
ERRORS = {"msgspec.DecodeError", "msgspec.ValidationError", "msgspec.MsgspecError", "UnicodeDecodeError"}
LIKE_IT = re.compile("json|msgspec|yaml|Unicode|decode")
"""Every decoding has one of these in its text; searching for them is far faster than parsing a module."""

ALLOWED = {
    "core/text/decoder.py": "the one place",
    "core/config/yaml_tree.py": "the one place for YAML and for whole text files",
    "core/presets/write.py": "takes apart frontmatter that yaml_tree has parsed before",
    "core/acp_bridge/__main__.py": "what its wrapper says in the first line of stdin",
    "core/acp_bridge/_session_options.py": "the servers that its wrapper names in the arguments",
    "core/acp_bridge/_handshake.py": "the first answers of an agent, before a library for it is there",
    "core/acp_bridge/_session.py": "what its own SDK is about to write",
    "core/acp_bridge/_dialogue.py": "a program of its own, which its wrapper alone talks to",
    "core/agents/pi/session.py": "ASCII that a pattern matched",
    "core/agents/pi/stream.py": "ASCII that a pattern matched",
    "core/agents/pi/_models.py": "a generated JavaScript file, of which UTF-8 that is broken says nothing",
    "core/offline_agent/_host.py": "a program of its own, which its wrapper alone talks to",
    "core/offline_agent/_stream.py": "ASCII that a pattern matched",
    "core/offline_agent/_directory.py": "gives ASCII back to text",
    "core/cli/output.py": "gives our own text back after the encoding of the terminal; our own JSON",
    "core/cli/setup.py": "our own JSON",
    "core/cli/_stdio.py": "our own JSON",
    "core/launch/plan.py": "gives our own text back, without halves of surrogate pairs",
    "core/launch/child_session.py": "gives our own text back, without halves of surrogate pairs",
    "core/mcp/clients.py": "the settings of clients, with words of its own",
    "core/wrapper/_pane_input.py": "what is typed, a byte at a time, by a decoder that replaces what is no UTF-8",
    "core/wrapper/replay.py": "gives our own text back, without halves of surrogate pairs",
    "tui/launch/_memory.py": "gives our own text back, without halves of surrogate pairs",
    "tui/launch/_tasks.py": "the file of a task, with words of its own",
    "tui/presets/draft.py": "bytes that the draft encoded itself",
}


def dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case _:
            return "?"


def decodings(tree: ast.Module) -> Iterator[str]:
    """Yield a module's decoders, and the errors of decoding that it names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name) and dotted(node) in DECODERS | ERRORS:
            yield dotted(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "decode":
            has_errors = len(node.args) > 1 or any(keyword.arg == "errors" for keyword in node.keywords)
            if not has_errors:
                yield f"{dotted(node.func)} without a word on errors"


@cache
def found() -> dict[str, list[str]]:
    paths = sorted(path for tree in ("core", "tui") for path in (ROOT / tree).rglob("*.py"))
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    by_path = {path: list(decodings(ast.parse(text))) for path, text in texts.items() if LIKE_IT.search(text)}
    return {path: named for path, named in by_path.items() if named}


def test_nobody_decodes_on_his_own() -> None:
    """Only a few modules decode JSON, YAML or strict text, or catch errors of decoding."""
    assert {} == {path: named for path, named in found().items() if path not in ALLOWED}


def test_no_exception_is_left_over() -> None:
    """Each exception is still needed."""
    assert set() == ALLOWED.keys() - found().keys()
