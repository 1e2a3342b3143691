"""Report growth: modules and classes that a reviewer should ask about. Guidance, not a limit.

`make check` prints it; `test_sizes.py` has the one hard limit.
"""

from __future__ import annotations

import ast
import statistics
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LONG_MODULE = 300
MANY_METHODS = 25


def lines(*directories: str) -> dict[str, int]:
    """Return the lines of every Python file below the directories; empty files are not modules."""
    files = (path for directory in directories for path in (ROOT / directory).rglob("*.py"))
    counted = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    return {name: count for name, count in counted.items() if count}


def methods() -> Iterator[tuple[str, int]]:
    """Iterate over the classes of the program, as `core/engine.py:Engine`, and their numbers of methods."""
    for name in lines("core", "tui"):
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            if isinstance(node, ast.ClassDef):
                count = sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)
                yield f"{name}:{node.name}", count


def main() -> None:
    modules = lines("core", "tui")
    print(
        f"sizes: {len(modules)} modules, {sum(modules.values())} lines, median {statistics.median(modules.values()):g}"
    )
    for name, count in sorted(modules.items(), key=lambda item: -item[1]):
        if count > LONG_MODULE:
            print(f"  {name}: {count} lines; is it one idea?")
    for name, count in sorted(methods(), key=lambda item: -item[1]):
        if count > MANY_METHODS:
            print(f"  {name}: {count} methods; is it one thing?")


if __name__ == "__main__":
    main()
