"""Libraries imported without modules that only other programs need."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

LEFT_OUT = "ast decimal dis gettext inspect locale msgspec.inspect platform textwrap tokenize typing_extensions"
"""Modules that click or msgspec name, and the modules those would load."""


PYPROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"
EXACT = {"click", "msgspec", "rich", "textual", "watchfiles"}
"""Libraries that are imported without modules that they name."""


def run(code: str) -> str:
    """Run code with both libraries imported; return its output."""
    begin = "import sys; from subdeck.core.system.imports import import_click, import_msgspec\n"
    begin += "import_click(); import_msgspec(); import click, msgspec\n"
    done = subprocess.run([sys.executable, "-P", "-c", begin + code], capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.strip()


def test_stand_ins_do_not_stay() -> None:
    """No stand-in stays after the import: later imports get the real module, and so does the library."""
    assert run(f"print([name for name in {LEFT_OUT.split()!r} if name in sys.modules])") == "[]"
    assert run("import decimal; print(decimal.Decimal('1.50'))") == "1.50"
    assert run("import platform; print(platform.python_version() == sys.version.split()[0])") == "True"


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print(click.core.inspect.isfunction(click.echo))", "True"),
        ("print(click.Option(['--a'], help='  one line\\n    and one\\n    more ').help)", "one line\nand one\nmore"),
        ("print(msgspec.json.schema(int))", "{'type': 'integer'}"),
        ("print(msgspec.inspect.type_info(bool))", "BoolType()"),
    ],
)
def test_a_library_gets_what_it_comes_to_use(code: str, printed: str) -> None:
    """Attributes that a stand-in does not have come from the real module."""
    assert printed == run(code)


def test_what_is_loaded_is_left_alone() -> None:
    """A module that is already loaded stays in use, for the program and the library."""
    code = (
        "import inspect, sys; from subdeck.core.system.imports import import_click; import_click()\n"
        "import click.core; print(click.core.inspect is inspect is sys.modules['inspect'])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True)
    assert ("True", "") == (done.stdout.strip(), done.stderr)


def test_their_versions_are_exact() -> None:
    """Versions are pinned, because another version may need an omitted module."""
    dependencies = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    assert EXACT == {name for name, _, version in (each.partition("==") for each in dependencies) if version}
