"""The benchmarks: a broken one does not lose the figures of the others, and each can run with small numbers."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from subdeck.core.system import processes

from tests.bench import __main__ as bench, figures
from tests.bench.figures import Figure, not_measured
from tests.bench.pane import Panes
from tests.waiting import wait_until

from .set_up import ROOT

Measure = Callable[[], Iterator[Figure]]
Run = Callable[..., int]


def figure(name: str, *, reached: bool = True) -> Figure:
    return Figure(name, "3 ms", "", "2 ms", reached)


def broken() -> Iterator[Figure]:
    yield figure("measured before it")
    raise RuntimeError("the server has gone")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the program with named benchmarks."""
    monkeypatch.setattr(figures, "_is_smoke", False)
    monkeypatch.setattr(figures, "REPEATS", figures.REPEATS)

    def run(*options: str, **modules: Measure) -> int:
        monkeypatch.setattr(bench, "ALL", tuple(modules))
        monkeypatch.setattr(
            importlib, "import_module", lambda name, _: SimpleNamespace(measure=modules[name.removeprefix(".")])
        )
        return bench.main(options)

    return run


def test_a_benchmark_that_breaks(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """Each prints its table before the next begins; the end has all figures, and the reason; exit code 1."""
    printed: list[str] = []

    def last() -> Iterator[Figure]:
        printed.append(capsys.readouterr().out)
        yield figure("the last")

    code = run(one=lambda: iter([figure("the first")]), two=broken, three=last)
    first, second = printed[0].split("\ntwo, ")
    assert re.search(r"^the first  +3 ms  ", first, re.MULTILINE)
    assert re.search(r"^measured before it  +3 ms  ", second, re.MULTILINE)
    assert second.endswith("FAILED  two: RuntimeError: the server has gone\n")
    at_the_end = capsys.readouterr().out
    assert all(f"{name}  " in at_the_end for name in ("the first", "measured before it", "the last"))
    assert at_the_end.endswith("FAILED  two: RuntimeError: the server has gone\n")
    assert 1 == code


def test_a_target_that_is_missed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named at the end, and the exit code is 1; in smoke mode neither, as small numbers prove nothing."""
    assert 1 == run(slow=lambda: iter([figure("a start", reached=False), figure("an end")]))
    assert capsys.readouterr().out.endswith("\nMISSED  a start: 3 ms, must reach 2 ms\n")
    assert 0 == run("--smoke", slow=lambda: iter([figure("a start", reached=False)]))
    printed = capsys.readouterr().out
    assert "a start" in printed
    assert "MISSED" not in printed and "must reach" not in printed


def test_a_benchmark_that_cannot_run_here(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """It does not fail; the end names the reason."""
    assert 0 == run("--smoke", hosts=lambda: iter([not_measured("runs on hosts", "it needs root")]))
    assert "SKIPPED  runs on hosts: not measured: it needs root\n" in capsys.readouterr().out


def test_one_that_hangs(run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """In smoke mode it counts as broken after a while, and the others continue."""
    monkeypatch.setattr(bench, "SMOKE_LIMIT_S", 0.1)

    def hangs() -> Iterator[Figure]:
        threading.Event().wait(60)
        yield figure("never")

    assert 1 == run("--smoke", one=hangs, two=lambda: iter([figure("the last")]))
    printed = capsys.readouterr().out
    assert "FAILED  one: TookTooLong: it has not ended within 0.1 s\n" in printed
    assert "the last" in printed


@pytest.mark.processes
def test_one_that_leaves_a_process(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The process is ended and named, and the benchmark counts as broken."""
    monkeypatch.setattr(bench, "TO_END_S", 0.0)
    started: list[subprocess.Popen[bytes]] = []

    def leaves() -> Iterator[Figure]:
        started.append(process := subprocess.Popen(("sleep", "60")))
        # The kernel shows the environment that identifies it a moment after the program began.
        wait_until(Path(f"/proc/{process.pid}/environ").read_bytes, "its environment")
        yield figure("done")

    assert 1 == run("--smoke", one=leaves)
    assert -9 == started[0].wait(timeout=10)
    assert f"FAILED  one: left a process behind: {started[0].pid}: sleep 60\n" in capsys.readouterr().out


def test_an_unknown_name(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused before any measurement, with the known names."""
    with pytest.raises(SystemExit, match="2"):
        run("one", "tow", one=broken, two=broken)
    assert "unknown benchmark tow; there are one, two" in capsys.readouterr().err


def test_all_are_listed() -> None:
    """Every module that measures something is run, so that none rots."""
    modules = (ROOT / "tests" / "bench").glob("*.py")
    assert {path.stem for path in modules if "\ndef measure() ->" in path.read_text()} == set(bench.ALL)


@pytest.mark.processes
def test_they_need_nothing_of_the_tests() -> None:
    """They import without packages that only tests need: `make bench` has none of them."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["dev"]
    names = {re.split(r"[^\w-]", extra)[0].replace("-", "_") for extra in extras}
    program = f"import sys, importlib; sys.modules.update(dict.fromkeys({sorted(names - {'subdeck', 'setuptools'})}))\n"
    program += f"for name in {bench.ALL}: importlib.import_module('tests.bench.' + name)"
    done = subprocess.run((sys.executable, "-c", program), cwd=ROOT, capture_output=True, text=True)
    assert not done.returncode, done.stderr


@pytest.mark.processes
def test_a_benchmark_with_small_numbers() -> None:
    """In smoke mode a benchmark measures less than usual."""
    command = (sys.executable, "-m", "tests.bench", "--smoke", "start_up")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert not done.returncode, done.stdout + done.stderr
    assert "subdeck status --all, 20 finished runs  " in done.stdout


@pytest.mark.tmux
def test_the_process_of_a_pane(project_dir: Path) -> None:
    """The figures are about the program's process, not a shell around it, even if it has no arguments."""
    with Panes() as panes:
        pane = panes.open("cat", cwd=str(project_dir))
        wait_until(lambda: processes.name(pane.pid) == "cat", "the program in the pane")
