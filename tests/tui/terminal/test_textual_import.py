"""Textual without modules for other apps, in separate processes: in this one it is completely loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

LEFT_OUT = (
    *("decimal", "difflib", "hashlib", "linecache", "locale", "mimetypes", "pickle"),
    *("platformdirs", "random", "shutil", "ssl", "tempfile", "textwrap", "tokenize", "traceback", "typing_extensions"),
    *("rich.panel", "rich.table", "rich.tree", "textual.canvas", "textual.command", "textual.types"),
    *("textual.widgets._input", "textual.widgets._option_list", "urllib.parse"),
)
"""Modules that the first screen does not need."""

BEGIN = """
import sys; before = set(sys.modules)
from subdeck.core.system.imports import import_msgspec
from subdeck.tui.terminal.textual_import import import_textual
import_msgspec(); import_textual()
"""


def run(code: str) -> str:
    """Run code in a process that imported Textual like the app; return its output."""
    done = subprocess.run([sys.executable, "-P", "-c", BEGIN + code], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.strip()


def test_the_first_screen_loads_little() -> None:
    """No module needed only by other apps, other screens or errors is loaded before the first paint."""
    assert run(f"import subdeck.tui.app; print(set({LEFT_OUT!r}) & sys.modules.keys() - before)") == "set()"


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print(textual.app.user_downloads_path().name != '', 'platformdirs' in sys.modules)", "True True"),
        ("from textual.suggestions import get_suggestion; print(get_suggestion('blu', ['blue', 'red']))", "blue"),
        ("from rich.style import Style; print(Style.from_meta({'a': 1}).meta)", "{'a': 1}"),
        ("import pathlib; print(pathlib.Path('/a b').as_uri())", "file:///a%20b"),
        ("print(textual.app.mimetypes.guess_type('a.svg')[0])", "image/svg+xml"),
        ("print(type(textual.layout.Canvas(2, 1)).__module__)", "textual.canvas"),
        ("print(textual.app.CommandPalette.is_open.__module__)", "textual.command"),
        ("import textual.command; print(textual.command.CommandPalette.__mro__[1].__name__)", "SystemModalScreen"),
        ("import traceback, logging; print(traceback is sys.modules['traceback'])", "True"),
        ("import decimal; print(decimal.Decimal('1.50'))", "1.50"),
    ],
)
def test_what_was_left_out_comes_when_it_is_used(code: str, printed: str) -> None:
    """An omitted module is loaded completely when it is first used."""
    assert printed == run("import textual.app, textual.layout\n" + code)


def test_an_error_is_told_whole() -> None:
    """An app's crash report is complete, although it needs many omitted modules."""
    code = (
        "from textual.app import App\n"
        "class Broken(App):\n"
        "    def on_mount(self): raise ValueError('the app is broken')\n"
        "import asyncio, io\n"
        "app = Broken(); app.error_console.file = io.StringIO()\n"
        "asyncio.run(app.run_async(headless=True))\n"
        "print(app.error_console.file.getvalue())"
    )
    told = run(code)
    assert "on_mount" in told
    assert "the app is broken" in told
