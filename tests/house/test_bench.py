"""The benchmarks: one that fails takes no figures from the others."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from tests.bench import __main__ as bench
from tests.bench.figures import Figure


def figure(name: str) -> Figure:
    return Figure(name, "1 ms", "", "2 ms", True)


def broken() -> Iterator[Figure]:
    yield figure("measured before it")
    raise RuntimeError("the server has gone")


def test_a_benchmark_that_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """All figures that were measured are printed, the reason of the failure with them, and the exit code is 1."""
    modules = {
        ".one": lambda: iter([figure("the first")]),
        ".two": broken,
        ".three": lambda: iter([figure("the last")]),
    }
    monkeypatch.setattr(importlib, "import_module", lambda name, _: SimpleNamespace(measure=modules[name]))
    assert 1 == bench.main(["one", "two", "three"])
    printed = capsys.readouterr().out
    assert all(f"{name}  " in printed for name in ("the first", "measured before it", "the last"))
    assert "FAILED  two: RuntimeError: the server has gone" in printed
    assert 0 == bench.main(["one", "three"])
