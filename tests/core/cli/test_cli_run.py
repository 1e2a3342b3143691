"""`subdeck run` and `subdeck bg`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from subdeck.core.cli.main import main
from subdeck.core.engine import Engine

from tests.core.command_line import SUBDECK, run_dirs, subdeck, write_preset, write_settings
from tests.replay import RECORDINGS

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

STREAM = RECORDINGS / "0.73.1" / "b_read_grep_find_ls" / "stdout.jsonl"


@pytest.fixture
def project(project_dir: Path) -> Path:
    write_preset(project_dir)
    (project_dir / "door.py").write_text("def open_door():\n    return 'door'\n")
    return project_dir


def test_run_prints_progress_on_stderr_and_the_answer_on_stdout(project: Path) -> None:
    """Progress goes to stderr, and only the answer to stdout."""
    done = subdeck("run", "scout", "where is open_door", cwd=project)
    assert 0 == done.code
    assert "door.py:1" in done.out
    assert "Searching code for open_door" in done.err
    assert done.out.strip() not in done.err
    assert "✓ completed (done)" in done.err


def test_run_prints_its_result_as_json(project: Path) -> None:
    """--json prints the result.json document without its signature, and nothing else."""
    done = subdeck("run", "scout", "where is open_door", "--json", cwd=project)
    assert 0 == done.code
    (run_dir,) = run_dirs(project)
    record = json.loads((run_dir / "result.json").read_bytes())
    assert record.pop("mark") and record == done.document
    assert ("completed", "done") == (done.document["status"], done.document["reason"])


def test_run_of_a_failing_child_fails(project: Path, home: Path) -> None:
    """If an agent crashes, the exit code is 1, with a readable reason and the command that shows more."""
    write_settings(home, crasher="echo boom >&2; exit 7")
    done = subdeck("run", "scout", "do it", "--agent", "crasher", cwd=project)
    assert (1, "") == (done.code, done.out)
    assert "✗ failed (agent_exit)" in done.err
    assert "exited with code 7 before it finished: boom" in done.err
    assert "subdeck logs" in done.err


def test_run_shows_text_that_came_before_a_failure(project: Path, home: Path) -> None:
    """Text of a run that did not complete is progress, never an answer."""
    said = json.dumps(
        {
            "type": "message_end",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "half a thought"}]},
        }
    )
    (project / "said.jsonl").write_text(said + "\n")
    write_settings(home, breaker=f"cat {project}/said.jsonl; exit 1")
    done = subdeck("run", "scout", "do it", "--agent", "breaker", cwd=project)
    assert (1, "") == (done.code, done.out)
    assert "half a thought" in done.err


def test_run_passes_the_answer_of_a_recorded_pi(project: Path, home: Path) -> None:
    """An agent with pi's JSON mode under another name is supervised like pi."""
    write_settings(home, recorded=f"cat {STREAM}")
    done = subdeck("run", "scout", "read", "--agent", "recorded", cwd=project)
    assert (0, "All done.\n") == (done.code, done.out)


def test_bg_prints_the_run_id(project: Path) -> None:
    """The id on stdout works with the other commands."""
    done = subdeck("bg", "scout", "where is open_door", cwd=project)
    assert 0 == done.code
    run_id = done.out.strip()
    assert [run_id] == [path.name for path in run_dirs(project)]
    assert 0 == subdeck("wait", run_id, cwd=project).code


def test_bg_answers_a_handle_as_json(project: Path) -> None:
    """--json has the id, the current state, the counts of background runs, and the paths of the files."""
    done = subdeck("bg", "scout", "where is open_door", "--json", cwd=project)
    handle = done.document
    assert ["artifacts", "counts", "runId", "status"] == sorted(handle)
    assert handle["status"] in ("running", "completed")
    assert 1 == handle["counts"]["total"]
    assert Path(handle["artifacts"]["meta.json"]).is_file()
    assert 0 == subdeck("wait", handle["runId"], cwd=project).code


def test_bg_tells_a_run_that_failed_at_once(project: Path, home: Path, tmp_path: Path) -> None:
    """If the agent cannot be executed, the run fails and is not reported as started."""
    program = tmp_path / "agent"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"default_model: fake/test\nagents:\n  broken:\n    command: [{program}]\n")
    done = subdeck("run", "scout", "do it", "--agent", "broken", cwd=project)
    assert 1 == done.code
    assert "agent_missing" in done.err


@pytest.mark.parametrize(
    "task",
    [
        "@file.txt where",
        'it\'s "quoted" `ticks`',
        "two\nlines\n\nand more",
        "\x1b[31mred\x1b[0m \x9b5m",
        "[bold]not markup[/bold] [/",
        "$(rm -rf ~) ; #(touch x) {previous} %s {0}",
        "\u2028 separator \u202e reversed",
    ],
)
def test_task_text_arrives_as_it_was_typed(project: Path, task: str) -> None:
    """A task is passed on literally, and never printed raw to the terminal."""
    done = subdeck("run", "scout", task, cwd=project)
    assert 0 == done.code
    (run_dir,) = run_dirs(project)
    assert task.encode() == (run_dir / "prompt.md").read_bytes()
    assert not {"\x1b", "\x9b", "\u202e", "\u2028"} & set(done.err)
    shown = subdeck("status", cwd=project)
    assert not {"\x1b", "\x9b", "\u202e", "\u2028"} & set(shown.out)
    assert not (project / "x").exists()


def test_task_that_begins_with_a_dash_goes_after_two(project: Path) -> None:
    """After --, a task may look like an option. Without it, the error explains that."""
    done = subdeck("run", "scout", "--", "-v where is open_door", cwd=project)
    assert 0 == done.code
    (run_dir,) = run_dirs(project)
    assert b"-v where is open_door" == (run_dir / "prompt.md").read_bytes()
    refused = subdeck("run", "scout", "-v where is open_door", cwd=project)
    assert 2 == refused.code
    assert "put a task that begins with" in refused.err


@pytest.mark.parametrize(
    "content",
    [b"where is open_door", b"where is open_door? " * 15_000, b"nul \0 in it", "t\u00e4st".encode()],
    ids=["short", "300 KB", "NUL", "umlaut"],
)
def test_task_comes_from_stdin(project: Path, content: bytes) -> None:
    """With - as the task, stdin is read, of any size and with any character."""
    done = subdeck("run", "scout", "-", cwd=project, stdin=content)
    assert 0 == done.code, done.err
    (run_dir,) = run_dirs(project)
    assert content == (run_dir / "prompt.md").read_bytes()


def test_bytes_that_are_no_utf8_are_replaced(project: Path) -> None:
    """A task with invalid bytes, as an argument or on stdin, gets replacement characters."""
    assert 0 == subdeck("run", "scout", b"caf\xe9 open_door", cwd=project).code
    assert 0 == subdeck("run", "scout", "-", cwd=project, stdin=b"caf\xe9 open_door").code
    assert 0 == subdeck("run", "scout", "x", "--description", b"caf\xe9", cwd=project).code
    tasks = [json.loads((path / "meta.json").read_bytes())["task"] for path in run_dirs(project)]
    assert ["caf? open_door", "caf\ufffd open_door", "x"] == sorted(tasks)


def test_previous_fills_in_an_answer(project: Path) -> None:
    """{previous} in a task is replaced by the answer of the chosen run."""
    first = subdeck("run", "scout", "where is open_door", "--json", cwd=project).document
    short = first["runId"][-6:]
    done = subdeck("run", "scout", "Sum up: {previous}", "--previous", short, "--json", cwd=project)
    assert 0 == done.code
    prompt = Path(run_dirs(project)[-1].parent, done.document["runId"], "prompt.md").read_text()
    assert f"Sum up: {first['finalText']}" == prompt


def test_options_reach_the_run(project: Path) -> None:
    """Model, cwd and description of the call are in meta.json."""
    (project / "sub").mkdir()
    done = subdeck(
        "run", "scout", "x", "--model", "a/b", "--cwd", "sub", "--description", "why", "--agent", "offline", cwd=project
    )
    assert 0 == done.code
    meta = json.loads((run_dirs(project)[0] / "meta.json").read_bytes())
    assert ("a/b", str(project / "sub"), "why") == (meta["requestedModel"], meta["cwd"], meta["description"])


def test_run_without_preset(project: Path) -> None:
    """A one-off run takes tools and prompt from the call."""
    (project / "prompt.txt").write_text("Be terse.\n")
    words = ("--no-preset", "--model", "a/b", "--tools", "read, grep", "--prompt", "prompt.txt")
    assert 0 == subdeck("run", *words, "where is open_door", cwd=project).code
    (run_dir,) = run_dirs(project)
    meta = json.loads((run_dir / "meta.json").read_bytes())
    assert ("", "adhoc", ["read", "grep"]) == (meta["preset"], meta["presetSource"], meta["tools"]["resolved"])
    assert "Be terse.\n" == (run_dir / "system-prompt.md").read_text()


def test_ad_hoc_run_is_saved_as_a_preset(project: Path) -> None:
    """--save-as stores the run as a preset that can be run again. A refused request stores nothing."""
    assert 2 == subdeck("run", "--no-preset", "--save-as", "terse", "--cwd", "nowhere", "x", cwd=project).code
    bad = subdeck("run", "--no-preset", "--save-as", "bad name", "x", "--json", cwd=project)
    assert (2, "--save-as") == (bad.code, bad.error["where"])
    assert [project / ".pi/subagents/scout.md"] == list((project / ".pi/subagents").glob("*.md"))
    words = ("--no-preset", "--tools", "read,grep", "--save-as", "terse", "--model", "a/b")
    assert 0 == subdeck("run", *words, "where is open_door", cwd=project).code
    (saved,) = subdeck("presets", "terse", "--json", cwd=project).document["presets"]
    assert ("a/b", ["read", "grep"], "where is open_door") == (saved["model"], saved["tools"], saved["description"])
    assert 0 == subdeck("run", "terse", "where is open_door", cwd=project).code


REFUSED = {
    "no words": (["run"], "PRESET and TASK missing"),
    "no task": (["run", "scout"], "PRESET or TASK is missing"),
    "too many words": (["run", "scout", "two", "words"], "put the task in quotes"),
    "empty task": (["run", "scout", " \n"], "the task is empty"),
    "unknown preset": (["run", "scuot", "x"], "did you mean scout?"),
    "unknown option": (["run", "scout", "x", "--modle", "a/b"], "did you mean --model?"),
    "unknown agent": (["run", "scout", "x", "--agent", "offlin"], "did you mean offline?"),
    "unknown runner": (["run", "scout", "x", "--runner", "proces"], "did you mean process?"),
    "pi is missing": (["run", "scout", "x", "--agent", "pi"], "npm install"),
    "cwd is missing": (["run", "scout", "x", "--cwd", "nowhere"], "does not exist"),
    "cwd is a file": (["run", "scout", "x", "--cwd", "door.py"], "is not a directory"),
    "previous is unknown": (["run", "scout", "x", "--previous", "abc"], "no run matches"),
    "no model": (["run", "scout", "x", "--agent", "modelless"], "default_model"),
    "tools of a preset": (["run", "scout", "x", "--tools", "read"], "cannot be used with a preset"),
    "prompt is missing": (["run", "--no-preset", "--prompt", "nowhere", "x"], "does not exist"),
    "preset and no preset": (["run", "scout", "hello", "--no-preset"], 'remove "scout", or remove --no-preset'),
    "tokens": (
        ["run", "scout", "x", "--max-tokens", "0"],
        'invalid --max-tokens "0": expected a whole number of at le',
    ),
    "budget": (["run", "scout", "x", "--budget", "-1"], 'invalid --budget "-1": expected dollars, such as 2.50, above'),
    "worktree": (["run", "scout", "x", "--worktree=fils"], 'invalid --worktree "fils": expected files or head; did yo'),
    "blank in a name": (["run", "--no-preset", "--save-as", "bad name", "x", "--cwd", "nowhere"], 'such as "bad-name"'),
    "empty name": (["run", "--no-preset", "--save-as", "", "x"], "a preset needs a name"),
    "bad tool": (["run", "--no-preset", "--tools", "re ad", "x"], "is not the name of a tool"),
}


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("name", ["run", "bg"])
def test_refused_request_leaves_nothing(project: Path, home: Path, name: str, words: list[str], said: str) -> None:
    """An error in a request has the step that fixes it. Exit code 2 means that no run exists."""
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("agents:\n  modelless:\n    command: [/bin/true]\n")
    words = [name, *words[1:]]
    done = subdeck(*words, cwd=project)
    assert (2, "") == (done.code, done.out)
    assert done.err.startswith("subdeck: ")
    assert said in done.err
    assert "Traceback" not in done.err
    as_json = subdeck(*words, "--json", cwd=project)
    assert (2, "") == (as_json.code, as_json.out)
    assert ["code", "hint", "what", "where"] == sorted(as_json.error)
    assert any(said in part for part in as_json.error.values())
    assert [] == run_dirs(project)


def test_missing_tmux_names_the_package(project: Path, tmp_path: Path) -> None:
    """Without tmux, the tmux runner starts nothing and names the package to install."""
    done = subdeck("run", "scout", "x", "--runner", "tmux", cwd=project, PATH=str(tmp_path))
    assert 2 == done.code
    assert "apt install tmux" in done.err
    assert [] == run_dirs(project)


def test_a_file_in_the_place_of_the_runs(project: Path) -> None:
    """If no run directory can be created, the error has its path, and nothing is started."""
    (project / ".pi" / "subagents" / "runs").write_text("in the way")
    done = subdeck("run", "scout", "x", cwd=project)
    assert 2 == done.code
    assert "runs is a file, not a directory" in done.err


def test_cwd_that_is_no_utf8_is_refused(project: Path) -> None:
    """A directory whose name is not UTF-8 is a regular error."""
    (project / "caf\udce9").mkdir()
    done = subdeck("run", "scout", "x", "--cwd", b"caf\xe9", cwd=project)
    assert 2 == done.code
    assert "Traceback" not in done.err
    assert [] == run_dirs(project)


@pytest.mark.parametrize("command", ["run", "bg"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_what_cannot_be_printed_is_not_a_run_that_was_not_started(
    project: Path, command: str, options: tuple[str, ...]
) -> None:
    """On a full disk, the exit code is the run's, because the run exists, and the reason is on stderr."""
    words = [*SUBDECK, command, "scout", "list files", *options]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(words, cwd=project, stdout=full, stderr=subprocess.PIPE, timeout=60)
    (run_dir,) = run_dirs(project)
    assert 0 == done.returncode
    assert run_dir.name in done.stderr.decode()
    assert "could not be printed" in done.stderr.decode()
    subdeck("wait", run_dir.name, cwd=project)


def test_deleted_background_run_was_started(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`bg` with a run deleted at once does not report that nothing was started."""
    monkeypatch.chdir(project)
    monkeypatch.setattr(Engine, "launch", lambda *_, **__: ())
    assert 1 == main(lambda _: 0, ["bg", "scout", "list files"])
    assert "was deleted right after its start" in capsys.readouterr().err
