"""Text that would command a terminal, in every place where subdeck shows text, down to the written bytes."""

from __future__ import annotations

import json
import os
import re
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.run.events import AssistantText, ErrorReported, Notice, ToolCall, ToolResult, encode_event
from subdeck.core.run.model import RunReason, ToolPolicy, Tools

from tests.core.command_line import SUBDECK
from tests.factories import make_finished, make_meta

from .acts import LOOKS_APART
from .terminal import ESC, Pty

pytestmark = pytest.mark.tmux

EVIL = (
    "\x1b]0;PWNED\x07\x1b[31mPWN\x1b[2J\x9b32mPWN\x1bPqPWN\x1b\\\x1b_PWN\x1b\\\x08\x7f\x00 [b]x[/ [@click=app.quit]y[/]"
)
STRANGE = f"hostile {EVIL} \u202e\u200fשלום\u2066 👩‍👩‍👧‍👦 漢字\u200b é\u0301 \u2028 end"
LONG = f"{STRANGE} {'x' * 10_000}"

OWN = re.compile(
    rb"\x1b\[[0-9;:?<>=]*[ $]?[A-Za-z@`]"  # CSI
    rb"|\x1b\](?:2|9|52|22|777|10|11);?[^\x00-\x1f]*(?:\x07|\x1b\\)"
    rb"|\x1bP\+q[0-9a-f]*\x1b\\"
    rb"|\x1b[78=>]"
)
"""The app's own output; the rest are the characters of the screen."""


def foreign(written: bytes) -> set[bytes]:
    """Return control bytes besides the app's own sequences and harmless text."""
    whole = re.sub(rb"\x1b[^\x1b]{0,40}\Z", b"", written)  # the last sequence may be incomplete
    left = OWN.sub(b"", whole).decode("utf-8", "replace")
    controls = re.finditer("[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", left)
    bad = {repr(left[max(0, at.start() - 20) : at.end() + 20]).encode() for at in controls}
    marks = (b"\x1b]0;", b"\x1b[31mPWN", b"\x1b]2;PWN", b"\xe2\x80\xae", b"\xe2\x80\xa8")
    return bad | {mark for mark in marks if mark in written}


@pytest.fixture
def hostile(shop: Path) -> Path:
    """The shop with a hostile preset, a broken one, a hostile finished run and one whose files are garbage."""
    presets = shop / ".pi/subagents"
    fields = {"name": "evil", "description": STRANGE, "model": f"m/{STRANGE}", "tools": ["read", STRANGE]}
    (presets / "evil\x1b]0;PWNED\x07.md").write_text(f"---\n{json.dumps(fields)}\n---\n{LONG}\n")
    (presets / "broken\x1b[31mPWN.md").write_text(f"---\nname: {EVIL}\n  tools: [\n---\n{EVIL}")
    (presets / "bytes.md").write_bytes(b"---\nname: \xff\xfe\x1b[31mPWN\n---\n\x9b31m")
    project = paths.find_project(str(shop))
    meta = make_meta(
        task=STRANGE, description=STRANGE, preset=STRANGE, cwd=str(shop), resolved_model=f"m/{STRANGE}",
        background=True, system_prompt=LONG, tools=Tools(ToolPolicy.ALLOW, (STRANGE,)),
    )  # fmt: skip
    make_finished(project, meta, reason=RunReason.MODEL_ERROR, final_text=LONG, error_message=STRANGE)
    run = Path(project.run_dir(meta.run_id))
    now = paths.now_iso()
    events: tuple[Any, ...] = (
        AssistantText(seq=1, ts=now, text=f"# {LONG}\n\n```\n{EVIL}\n```\n[a](http://{STRANGE})"),
        ToolCall(seq=2, ts=EVIL, tool_call_id=STRANGE, tool_name=STRANGE, args={STRANGE: STRANGE, "path": LONG}),
        ToolResult(seq=3, ts=now, tool_call_id=STRANGE, tool_name=STRANGE, is_error=True, content=LONG),
        Notice(seq=4, ts=now, level="warning", text=STRANGE),
        ErrorReported(seq=5, ts=now, message=STRANGE),
    )
    lone = json.dumps({"type": "assistant_text", "seq": 6, "ts": now, "text": "lone \ud800 \x1b[31mPWN"}).encode()
    garbage = b"\x1b[31mPWN \xff\x00 not json \x9b31m\n"
    (run / paths.EVENTS).write_bytes(b"".join(map(encode_event, events)) + lone + b"\n" + garbage)
    (run / paths.STDERR).write_bytes(f"{LONG}\n".encode() + garbage)
    (run / "x\x1b]0;PWNED\x07").write_text(EVIL)
    return shop


DECK = b"bg: "

TABS = {
    b"1": (b"[1 Transcript]", b"No transcript yet."),
    b"2": (b"[2 Answer]", b"Last text before the error:"),
    b"3": (b"[3 Changes]",),
    b"4": (b"[4 Overview]", b"model_error"),
    b"o": ("▾ Prompt".encode(), b"appended to the agent's own"),
    b"u": (b"No usage has been reported yet.",),
    b"f": (b"result.json",),
    b"v": (b"assistant_text",),
}
"""The tabs of the detail screen and the sections of the overview by their keys, and a text of each."""
SECTIONS = {"tab_prompt": "o", "tab_usage": "u", "tab_files": "f", "tab_events": "v"}
"""The keys that the settings give to the sections."""


def visited(app: Pty, keys: bytes, *texts: bytes) -> None:
    app.press(keys)
    for text in texts:
        app.until(text)
    assert foreign(app.written) == set()


def test_no_control_of_theirs_reaches_the_terminal(hostile: Path) -> None:
    """List, transcript in all views, search, details, dialogs, pager and saved file contain no control bytes."""
    settings = hostile.parents[1] / ".config/subdeck/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"notifications": {"desktop": "osc777", "bell": True}, "app": {"keys": SECTIONS}}))
    app = Pty(SUBDECK, hostile)
    app.until(b"hostile")
    visited(app, b"3", b"follow")
    visited(app, b":unfold all\r", b"hostile")
    visited(app, b"g", b"hostile")
    visited(app, b"G", b"follow")
    visited(app, b"/hostile\r", b"hostile")
    visited(app, ESC, DECK)
    visited(app, b"t", b"raw")
    visited(app, b"t", b"stderr")
    visited(app, b"t", b"follow")
    visited(app, b"i", b"esc close", b"Last text before the error:")
    for key, texts in TABS.items():
        visited(app, key, *texts)
    visited(app, ESC, DECK)
    visited(app, b":notifications\r", b"otifications")
    visited(app, ESC, DECK)
    visited(app, b"2/hostile" + ESC, DECK)
    visited(app, b"R", b"esc cancel")
    visited(app, b"\x12", b"arlier")
    visited(app, ESC, b"esc cancel")
    visited(app, ESC, DECK)
    visited(app, b"d", b"Delete this run?")
    visited(app, ESC, DECK)
    visited(app, b"\x10", b"ind anything")
    visited(app, ESC, DECK)
    visited(app, b":clean up\r", b"lean up")
    visited(app, ESC, DECK)
    visited(app, b"1G", b"line 4: the file contains a NUL character")
    visited(app, b"e", b"esc cancel", b"line 4: the file contains a NUL character")
    visited(app, ESC, DECK)
    visited(app, b"kk", "✗ line 2: the file contains a NUL character".encode())
    visited(app, b"e", b"esc cancel", b"line 2: the file contains a NUL character")
    visited(app, ESC, DECK)
    visited(app, b"j", "✗ line 2: the file is not UTF-8".encode())
    visited(app, b"e", b"save it as UTF-8", b"esc close")
    visited(app, ESC, DECK)
    assert app.end() == 0
    assert foreign(app.written) == set()


def test_the_pager_and_the_saved_file(hostile: Path) -> None:
    """Text exported from a run shows or drops control characters."""
    page = hostile.parent / "pager.py"
    page.write_text(
        "import sys\ndata = open(sys.argv[1], 'rb').read()\nopen(sys.argv[0] + '.seen', 'xb').write(data)\n"
    )
    app = Pty(SUBDECK, hostile, PAGER=f"{sys.executable} {page}")
    app.until(b"hostile")
    visited(app, b"3", b"follow")
    app.press(b":open in pager\r")
    seen = Path(f"{page}.seen")
    app.until_true(seen.exists, "the pager's file")
    app.until(DECK)
    assert foreign(seen.read_bytes()) == set()
    begun, looks = len(app.written), count()

    def is_open() -> bool:
        """Whether the palette is open; its key is dropped if it comes while the app takes the terminal back."""
        if not next(looks) % LOOKS_APART:
            app.press(b":")
        return b"ind anything" in app.written[begun:]

    app.until_true(is_open, "the palette")
    visited(app, b"\x15save run\r", b"as markdown")
    app.press(b"\x15saved.md\r")
    app.until(b"Saved")
    assert foreign((hostile / "saved.md").read_bytes().replace(b"\t", b" ")) == set()
    assert app.end() == 0
    assert foreign(app.written) == set()


def test_a_hostile_directory(shop: Path, home: Path) -> None:
    """The name of the project's directory is never raw in the header or the window's title."""
    place = home / "src" / "x\x1b]0;PWNED\x07\x1b[31mPWN"
    os.rename(shop, place)
    app = Pty(SUBDECK, place)
    app.until(b"repo-scout")
    visited(app, b"n", b"esc cancel")
    visited(app, ESC, DECK)
    assert app.end() == 0
    assert foreign(app.written) == set()
