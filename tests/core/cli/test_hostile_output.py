"""No command writes control sequences from runs, presets, settings or model lists to a terminal."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.cli import output
from subdeck.core.cli.main import main
from subdeck.core.delegation.call import call_tool
from subdeck.core.delegation.channels import Emitter
from subdeck.core.delegation.parent import Parent
from subdeck.core.delegation.results import PLACES
from subdeck.core.delegation.schema import tools_for
from subdeck.core.engine import Engine
from subdeck.core.run.model import LauncherKind
from subdeck.core.text.plain import can_encode_unsafe, decode_unsafe, display_encoded, encode_unsafe, one_line, plain

from tests.factories import open_engine
from tests.hostile import EVIL, IN_JSON, IN_YAML, controls, hostile_preset, hostile_run


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    hostile_preset(project_dir)
    agent = Path(paths.agent_dir())
    agent.mkdir(parents=True)
    models = {"providers": {f"p{IN_JSON}": {"models": [{"id": f"m{IN_JSON}"}]}}}
    (agent / "models.json").write_text(json.dumps(models))
    (agent / "providers.json").write_text(json.dumps({"roles": {f"r{IN_JSON}": f"m{IN_JSON}"}}))
    return open_engine(project_dir, roles={"fast": f"a/b{IN_YAML}"}, models=[f"x/y{IN_YAML}"])


@pytest.fixture
def runs(engine: Engine) -> Iterator[tuple[str, str]]:
    """A finished run and a running one."""
    ended, lock = hostile_run(engine, ended=True)
    os.close(lock)
    live, lock = hostile_run(engine, ended=False)
    yield ended, live
    os.close(lock)


ARGUMENT = EVIL.replace("\0", "").replace("\ud800", "\udcff")
"""The hostile text, reduced to what an argument can contain."""

COMMANDS = [
    *(["status"], ["status", "--all"], ["status", "--json"], ["status", "ENDED", "LIVE"], ["status", ARGUMENT]),
    *(["wait", "ENDED"], ["wait", "--json", "ENDED"], ["wait", "LIVE", "--timeout", "0"]),
    *(["logs", f"--{kind}", "ENDED"] for kind in ("events", "stderr", "raw", "markdown", "json")),
    *(["logs", f"--{kind}", "LIVE"] for kind in ("events", "markdown")),
    *(["logs", "ENDED"], ["logs", "-f", "ENDED"], ["attach", "ENDED"], ["attach", "LIVE"]),
    *(["presets"], ["presets", "--json"], ["presets", "evil"], ["presets", f"evil{IN_YAML}"], ["presets", ARGUMENT]),
    *(["models"], ["models", "--json"], ["models", ARGUMENT], ["settings"], ["settings", "--json"], ["doctor"]),
    *(["run", "--no-preset", ARGUMENT, "--agent", ARGUMENT], ["run", "scout", "x", "--cwd", ARGUMENT]),
    ["run", ARGUMENT, "x"],
    *(["run", "--no-preset", "x", "--model", ARGUMENT], ["run", "--no-preset", "x", "--runner", ARGUMENT], [ARGUMENT]),
    *(["run", f"evil{IN_YAML}", "x"], ["run", "--no-preset", "x", f"--{ARGUMENT}"], ["-C", ARGUMENT, "status"]),
    *(["run", "--no-preset", "x", "--parent-session", ARGUMENT], ["run", "--no-preset", "x", "--prompt", ARGUMENT]),
    *(["replay", ARGUMENT], ["stop", "ENDED"], ["stop", "LIVE"]),
    *(["clean", "--keep", "0", "--yes"], ["rm", "--undo", "ENDED"]),
    *(["clean", "--keep", "0", "--dry-run", "--json"], ["rm", "LIVE"], ["rm", "ENDED"], ["rm", "--undo", ARGUMENT]),
]  # fmt: skip


@pytest.mark.processes
def test_the_commands(
    runs: tuple[str, str], project_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lists, runs, logs, presets, models, settings and errors are plain on a terminal, and no command raises."""
    monkeypatch.chdir(project_dir)
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
    for words in COMMANDS:
        given = [{"ENDED": runs[0], "LIVE": runs[1]}.get(word, word) for word in words]
        main(lambda *_: 0, given)
        shown = capsys.readouterr()
        assert [] == controls(shown.out), words
        assert [] == controls(shown.err), words
        assert shown.out + shown.err, words


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in built-in values, except paths."""
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                yield name
                yield from texts_in(item) if name not in PLACES else ()
        case list() | tuple():
            for item in value:
                yield from texts_in(item)
        case _:
            pass


def test_a_parent(engine: Engine, runs: tuple[str, str]) -> None:
    """A parent's answers, rejections, emissions and tools are plain text for its model or a person."""
    parent = Parent("operator", LauncherKind.CLI)
    results = [
        call_tool(engine, "background_agent_status", {"includeCompleted": True}, parent=parent),
        *(call_tool(engine, "background_agent_status", {"runId": run_id}, parent=parent) for run_id in runs),
        call_tool(engine, "background_agent_status", {"runId": EVIL}, parent=parent),
        call_tool(engine, "subagent", {"preset": EVIL, "task": "x", EVIL: EVIL}, parent=parent),
        call_tool(engine, "subagent", {"preset": EVIL, "task": "x"}, parent=parent),
        call_tool(engine, EVIL, {}, parent=parent),
    ]
    assert all(run_id in results[0].text for run_id in runs)
    shown = [text for result in results for text in texts_in(msgspec.to_builtins(result))]
    stop = threading.Event()
    emitter = Emitter(engine, whole=True)
    update = next(engine.updates(stop))
    emissions = [*emitter.take(update), *emitter.take(msgspec.structs.replace(update, ended=update.runs))]
    assert emissions
    shown += [text for emission in emissions for text in texts_in(emission.payload)]
    shown += [text for spec in tools_for(engine) for text in texts_in(msgspec.to_builtins(spec))]
    assert set() == {found for text in shown for found in controls(text)}


@pytest.mark.parametrize("clean", [plain, one_line, lambda text: display_encoded(encode_unsafe(text))])
def test_the_cleaner(clean: object) -> None:
    """All control characters, direction marks, tags and half pairs are removed."""
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    for part in (every, EVIL, *(f"a{chr(code)}b" for code in range(0x3000))):
        assert [] == controls(clean(part).replace("\n", "").replace("\t", ""))  # type: ignore[operator]


def test_a_forgotten_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Text that no caller has cleaned is cleaned when it is printed; only subdeck's own colours get through."""
    bold = output.Coloured("\x1b[1mdone\x1b[m")
    output.show((EVIL, [EVIL, bold], output.Note(EVIL), "a\tb"))
    output.report(EVIL)
    printed = capsys.readouterr()
    assert f"{bold}\na\tb\n" == printed.out[-len(bold) - 5 :]
    assert [] == controls(printed.out.replace(bold, "").replace("\n", "")) == controls(printed.err.replace("\n", ""))


def test_an_editor_gives_it_back() -> None:
    """Replaced unsafe characters can be restored, including tags."""
    assert can_encode_unsafe(EVIL)
    assert EVIL == decode_unsafe(encode_unsafe(EVIL))
    tags = "".join(map(chr, range(0xE0000, 0xE0080)))
    assert tags == decode_unsafe(encode_unsafe(tags))


def test_json_for_a_terminal_is_the_same_json() -> None:
    """Escapes stand for their characters, those beyond sixteen bits as pairs."""
    assert [] == controls(output._json(IN_JSON).replace("\n", ""))
    assert IN_JSON == json.loads(output._json(IN_JSON))
