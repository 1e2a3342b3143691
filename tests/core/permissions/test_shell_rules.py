"""Command rules against real shells: denied programs never run, allowed ones run once, others are unaffected."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from subdeck.core.permissions._shell_programs import possible_commands
from subdeck.core.permissions.rules import Policy
from subdeck.core.run.events import Request
from subdeck.core.run.model import Permissions, RequestKind, Verdict

from tests.killing import sampled

from .shell_mutations import text

TEXTS = Path(__file__).parent / "shell_texts"


def texts(name: str) -> tuple[str, ...]:
    """Read commands of one line, and blocks of several lines separated by dashes."""
    lines = (TEXTS / f"{name}_lines.txt").read_text().splitlines()
    return *lines, *(TEXTS / f"{name}_blocks.txt").read_text().removesuffix("\n").split("\n---\n")


ATTACKS = texts("attacks")
"""Commands that run the program `canary` in disguise."""
ORDINARY = texts("ordinary")
"""Commands that run neither rm, sudo nor curl, nor `git push`."""
CHUNK = 100
SHELLS = ("bash", "dash", "zsh")


def says(command: str, **rules: str) -> Verdict | None:
    policy = Policy(Permissions(**{name: (rule,) for name, rule in rules.items()}), "/nowhere")
    return policy.decide(
        Request(id="1", kind=RequestKind.PERMISSION, title="", tool_name="bash", command=command),
    )[0]


def ran(shell: str, commands: Iterable[str], place: Path) -> list[str]:
    """Run each command in a shell; return the commands that ran the program `canary`."""
    program = shutil.which(shell) or pytest.skip(f"no {shell}")
    work, trace = place / "work", place / "trace"
    canary = work / "bin" / "canary"
    canary.parent.mkdir(parents=True)
    environment = {"PATH": f"{canary.parent}:/usr/bin:/bin", "HOME": str(work), "LANG": "C.UTF-8"}
    found: list[str] = []
    for command in commands:
        if not canary.exists():
            canary.write_text(f"#!/bin/sh\n: >'{trace}'\n")
            canary.chmod(0o700)
        child = subprocess.Popen(
            [program, "-c", command],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            child.communicate(timeout=2)  # until its last process has ended
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        if trace.exists():
            trace.unlink()
            found.append(command)
    return found


def test_commands_in_disguise_are_denied() -> None:
    """A deny rule matches every disguise of its program."""
    found = {command: says(command, deny="bash(canary *)", allow="bash") for command in ATTACKS}
    assert {} == {command: verdict for command, verdict in found.items() if verdict is not Verdict.DENY}


@pytest.mark.processes
@pytest.mark.parametrize("start", range(0, len(ATTACKS), CHUNK))
@pytest.mark.parametrize("shell", SHELLS)
def test_attacks_are_real(shell: str, start: int, tmp_path: Path) -> None:
    """Many of these texts run the program in a real shell.

    All are denied, as the test above shows, so every fourth of each chunk is enough: others each day, and all for
    `make soak`.
    """
    commands = sampled(ATTACKS[start : start + CHUNK], 4)
    found = ran(shell, commands, tmp_path)
    assert len(found) > len(commands) / 6
    assert [command for command in found if says(command, deny="bash(canary *)") is not Verdict.DENY] == []


@pytest.mark.parametrize("rule", ["rm *", "sudo *", "curl *", "git push *"])
def test_ordinary_commands_are_not_denied(rule: str) -> None:
    """A rule does not match everyday commands that certainly do not run its program."""
    denied = [command for command in ORDINARY if says(command, deny=f"bash({rule})") is Verdict.DENY]
    assert denied == []


@pytest.mark.processes
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shell", SHELLS)
def test_whatever_runs_a_denied_program_is_denied(shell: str, seed: int, tmp_path: Path) -> None:
    """If a random mix of shell constructs ran the program, the rule matched it."""
    source = random.Random(seed)
    found = ran(shell, [text(source) for _ in range(40)], tmp_path)
    assert found
    assert [command for command in found if says(command, deny="bash(canary *)") is not Verdict.DENY] == []


@pytest.mark.parametrize("seed", range(4))
def test_damaged_text_is_decided(seed: int) -> None:
    """Any text is decided; a rule for another program never allows a text that may run this one."""
    source = random.Random(1000 + seed)
    for _ in range(500):
        command = text(source)
        assert ("canary",) not in possible_commands(command) or says(command, deny="bash(canary)") is Verdict.DENY
        assert says(command, allow="bash(printf *)") is None


@pytest.mark.parametrize(
    "command",
    [
        *("printf -v x y", "printf -v a* x", "printf *", "printf '%d' x", "printf '%n' x", "printf a?"),
        *("read x*", "read -p x 'a[0]'", "read a[0]", "read PATH", "read -t *", "declare a*", "declare -i x=y"),
        *("declare 'x[y]=1'", "typeset -n x=y", "typeset *", "let x=y", "let *", "test -v x", "test -v a*"),
        *(
            "test x -eq y",
            "test *",
            "jobs -x ls",
            "jobs *",
            "hash -p ls x",
            "mapfile -C x",
            "compgen -C x",
            "wait -p x",
        ),
        *("unset a[0]", "unset *", "export *", "getopts x a[0]", "set -k", "set *", "shift x", "exit x", "ulimit x"),
        *("alias x=y", "fc -s", "enable -f x y", "exec ls", "command ls", "builtin ls", "trap ls EXIT", "eval ls"),
        *("export RANDOM=a", "declare SECONDS=x", "readonly OPTIND=a*", "typeset HISTCMD=x", "read RANDOM"),
        *("shopt -so history histexpand", "set -o histexpand", "set -o rcquotes"),
        *("coproc ls", "time ls", "noglob ls", "print x", "zle x", "setopt x", "integer x=y"),
    ],
)
def test_star_does_not_stand_for_what_a_builtin_evaluates(command: str) -> None:
    """A rule with a star allows a builtin only in the forms that run none of their words as code."""
    name = command.split()[0]
    assert says(command, allow="bash(*)") is None
    if name not in ("coproc", "time", "noglob"):
        assert says(command, allow=f"bash({name} *)") is None


@pytest.mark.parametrize(
    "command",
    [
        *(
            "printf '%s\\n' a b",
            "printf 'a b'",
            "printf '%s' *",
            "printf '%d' 5",
            "read -r x",
            "declare x=1",
            "test -f x",
        ),
        *(
            "export A=b",
            "unset X",
            "set -e",
            "echo *",
            "ls ~",
            "jobs",
            "jobs -l",
            "wait",
            "hash -r",
            "exit 1",
            "umask 022",
        ),
    ],
)
def test_star_stands_for_the_words_of_other_builtins(command: str) -> None:
    """Forms of a builtin that run no code are allowed like any command."""
    assert Verdict.ALLOW is says(command, allow=f"bash({command.split()[0]} *)")


@pytest.mark.parametrize(
    "mark", ["\u00a0", "\x1f", "\n", "\r", "\x0b", "\u2003", "\u200b", "\ufeff", "\x1b", ";", " x"]
)
def test_exactly_this_text_is_no_other(mark: str) -> None:
    """`=` allows only its text; only spaces and tabs at its ends are ignored."""
    assert Verdict.ALLOW is says(" \t./run.sh\t ", allow="bash(=./run.sh)")
    assert says(f"./run.sh{mark}", allow="bash(=./run.sh)") is None
    assert says(f"{mark}./run.sh", allow="bash(=./run.sh)") is None


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("git push *", "git -C x push"),
        ("git push *", "git --no-pager -c a=b push origin"),
        ("git push *", 'git "$X" origin'),
        ("git push *", "git $X"),
        ("git push *", "ls | xargs git"),
        ("git push *", "GIT push"),
        ("./run.sh *", "././run.sh x"),
        ("./run.sh *", '"$PWD"/run.sh'),
        ("/usr/bin/Tool *", "tool x"),
        ("npm publish", "cd x && npm  'publish'"),
        ("* --force", "git push --force"),
    ],
)
def test_denied_words_are_found_in_other_spellings(rule: str, command: str) -> None:
    """Options before a git command, directories before a program and capital letters are ignored."""
    assert Verdict.DENY is says(command, deny=f"bash({rule})")


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("env ", "npx ", "docker run ", "find -exec ", "nice strace ", "xargs ", "strace git -c alias.x=", "a;", "a "),
        *("ls &&\n", "cat <<E\nx\nE\n", "(", "{ ", "! ", "time ", "f() ", "if ", "case x in ", "eval 'eval '", "\\\n"),
        *(": $(: )", "cat <<E $(:)\n", "[ ", "EDITOR='EDITOR=a b' x ", "<(", "a=(", "${x:-", "$((", "[[ a && ", "x=1 "),
    ],
)
@pytest.mark.timeout(10)
def test_repeated_constructs_are_decided_at_once(unit: str) -> None:
    """The time to decide stays proportional to the text, however a construct is repeated or nested."""
    says(unit * (40_000 // len(unit)), deny="bash(r*m * *x *y)", allow="bash(a*b *)")
