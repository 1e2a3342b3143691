"""Sizes of modules and classes: one file must not become the place where everything happens."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MEDIAN_LINES = 150
MODULE_LINES = 400
TEST_LINES = 600
METHODS = 30


def sizes(*directories: str) -> dict[str, int]:
    """Lines of every Python file below the directories; empty files are no modules."""
    files = (path for directory in directories for path in (ROOT / directory).rglob("*.py"))
    counted = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    return {name: lines for name, lines in counted.items() if lines}


def methods() -> Iterator[tuple[str, int]]:
    for name in sizes("core", "tui"):
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            if isinstance(node, ast.ClassDef):
                yield (
                    f"{name}:{node.name}",
                    sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body),
                )


def test_the_median_module_is_short() -> None:
    """Half of the modules stay under 150 lines."""
    assert statistics.median(sizes("core", "tui").values()) < MEDIAN_LINES


def test_no_module_is_long() -> None:
    """No module of the program exceeds 400 lines."""
    assert {} == {name: lines for name, lines in sizes("core", "tui").items() if lines > MODULE_LINES}


def test_no_test_module_is_long() -> None:
    """No file of the tests exceeds 600 lines."""
    assert {} == {name: lines for name, lines in sizes("tests").items() if lines > TEST_LINES}


def test_no_class_does_everything() -> None:
    """No class has more than 30 methods."""
    assert {} == {name: count for name, count in methods() if count > METHODS}
