"""Permission rules: what each allows, asks about and denies, and what it never allows."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from subdeck.core.errors import UsageError
from subdeck.core.permissions._shell_programs import possible_commands
from subdeck.core.permissions.rules import MOST_PATHS, Policy, asked_tools, checked_rules, denied_tools, merged
from subdeck.core.permissions.shell_words import simple_command
from subdeck.core.run.events import CUT, Request
from subdeck.core.run.model import Permissions, RequestKind, Verdict

from tests.repositories import git

HERE = "/nowhere/project"


def asked(tool: str, *, command: str = "", paths: tuple[str, ...] = (), **fields: Any) -> Request:
    return Request(
        id="1", kind=RequestKind.PERMISSION, title="wants", tool_name=tool, command=command, paths=paths, **fields
    )


def says(request: Request, cwd: str | Path = HERE, **rules: str) -> Verdict | str | None:
    """Decide by one rule of each list; return the rule if it asks."""
    policy = Policy(Permissions(**{name: (rule,) for name, rule in rules.items()}), str(cwd))
    verdict, rule = policy.decide(request)
    return verdict or rule or None


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("bash(git *)", "git status"),
        ("bash(git *)", "git"),
        ("bash(git *)", "  git   log -1 --format='%h; rm x' "),
        ("bash(git *)", 'git commit -m "fix: a & b (c) > d"'),
        ("bash(git *)", r"git add foo\;bar HEAD~1 *.py"),
        ("bash(git commit *)", "git commit -m 'größer'"),
        ("bash(npm run *)", "npm run test -- --fix"),
        ("bash(make CC=gcc *)", "make CC=gcc all"),
        ("bash(* --version)", "python3 --version"),
        ("bash(python3 -m pytest *)", "python3 -m pytest tests/x.py"),
        ("bash(./do-*.sh)", "./do-all.sh"),
        ("bash(ls)", "ls"),
        ("bash(=cd src && make)", "cd src && make"),
        ("bash(=source venv/bin/activate)", "source venv/bin/activate"),
        ("bash", "anything | at > all"),
    ],
)
def test_rule_allows_the_command_that_it_names(rule: str, command: str) -> None:
    """A pattern covers one command with its words, in any quotes; `=` covers exactly one text."""
    assert Verdict.ALLOW is says(asked("bash", command=command), allow=rule)


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm x",
        "git status && rm x",
        "git status || rm x",
        "git status & rm x",
        "git status | sh",
        "git status |& sh",
        "git status\nrm x",
        "git status\rrm x",
        "git log $(rm x)",
        "git log `rm x`",
        'git log "$(rm x)"',
        'git log "`rm x`"',
        "git log $X",
        "git log ${X}",
        "git log $'\\n'",
        "git log > x",
        "git log >x",
        "git log 2>&1",
        "git < x",
        "git <(rm x)",
        "git << EOF",
        "(git status)",
        "{ git status; }",
        "{ git,status}",
        "git a{b,c}",
        "! git status",
        "PATH=. git status",
        "X=1 git status",
        "env git status",
        "/usr/bin/git status",
        "g?t status",
        "git 'unclosed",
        'git "unclosed',
        "git \\",
        "git # rm",
        "git\u00a0status",
        "git \u2028 rm",
        "git \x1b[2K",
        "time git status",
        "",
        "   ",
        "gitx",
        "status git",
    ],
)
def test_pattern_allows_nothing_but_one_simple_command(command: str) -> None:
    """A pattern allows no operators, substitutions, redirections, assignments or anything uncertain."""
    assert says(asked("bash", command=command), allow="bash(git *)") is None


@pytest.mark.parametrize(
    "command", ["eval 'a; b'", ". ./x", "source x", "trap 'rm x' EXIT", "test -v 'a[$(rm x)]'", "if x"]
)
def test_star_does_not_stand_for_what_runs_its_arguments(command: str) -> None:
    """A builtin that runs its arguments as commands is allowed only by its exact text."""
    assert says(asked("bash", command=command), allow="bash(*)") is None
    assert says(asked("bash", command=command), allow=f"bash(={command})") is Verdict.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "ls; rm x",
        "ls && /bin/rm -rf x",
        "ls | xargs -n 1 rm -f",
        "ls\nrm x",
        "echo $(rm x)",
        'echo "$(rm x)"',
        'echo "a `rm x` b"',
        "r''m x",
        "r\\m x",
        '"rm" x',
        "$'\\x72m' x",
        "$X x",
        "${X:-rm} x",
        "$(echo r)m x",
        "r$(echo m) x",
        "r? x",
        "{rm,-rf,x}",
        "sudo -n rm x",
        "env A=1 rm x",
        "A=1 rm x",
        "bash -c 'rm x'",
        "bash -lc \"cd /; sh -c 'rm x'\"",
        'eval "rm" x',
        "find . -exec rm {} +",
        "if true; then rm x; fi",
        "for f in a; do rm $f; done",
        "f() { rm x; }; f",
        "(cd /; rm x)",
        ">out rm x",
        "2>&1 rm x",
        "rm>out x",
        "cat <<EOF\ndon't\nEOF\nrm x",
        "# don't\nrm x",
        "echo 'unclosed\nrm x",
        "true &>x; rm x",
        "! rm x",
        "time rm x",
        "case x in x) rm x;; esac",
        "cat <(rm x)",
        "ls \\\n; rm x",
        "r\\\nm x",
        "",
    ],
)
def test_denial_holds_wherever_the_command_may_be_run(command: str) -> None:
    """A deny rule applies to every part of a text that a shell might run."""
    assert Verdict.DENY is says(asked("bash", command=command), deny="bash(rm *)", allow="bash")
    assert says(asked("bash", command=command), ask="bash(rm *)", allow="bash") == "bash(rm *)"


@pytest.mark.parametrize(
    "command",
    [
        r"""fish -c "echo 'a\' ' ; rm x ; 'b" """,
        "fish -c 'and rm x'",
        "/usr/bin/fish --command='x'",
        "env A=1 fish -ic x",
        "find . -exec fish -c x ';'",
        "fish $X",
        "sh -c 'fish -c x'",
        "pwsh -EncodedCommand cgBtACAAeAA=",
        "nu -c x",
    ],
)
def test_text_for_a_shell_that_quotes_otherwise_may_run_anything(command: str) -> None:
    """Any deny rule matches text for a shell that quotes otherwise; a rule that allows another command does not."""
    assert Verdict.DENY is says(asked("bash", command=command), deny="bash(rm *)", allow="bash")
    assert says(asked("bash", command=command), ask="bash(rm *)", allow="bash") == "bash(rm *)"
    assert says(asked("bash", command=command), allow="bash(echo *)") is None


@pytest.mark.parametrize("command", ["fish --version", "echo fish -c x", "grep -r fish src", "fish script.fish"])
def test_name_of_such_a_shell_alone_is_not_denied(command: str) -> None:
    """Such a shell without commands is treated like any program."""
    assert Verdict.ALLOW is says(asked("bash", command=command), deny="bash(rm *)", allow="bash")


@pytest.mark.parametrize(
    "command",
    [
        "git rm x",
        "echo rm x",
        "git commit -m 'rm the rest'",
        "ls src && grep -r rm .",
        '"$HOME/bin/tool" x',
        "echo done > rm",
        "[ -f x ] && cat x",
        "cp *.py backup/",
        "python3 - <<'EOF'\nprint('rm x')\nEOF",
        "for f in *.py; do wc $f; done",
    ],
)
def test_denial_leaves_other_commands_alone(command: str) -> None:
    """A denied word that is not a command is not denied."""
    assert Verdict.ALLOW is says(asked("bash", command=command), deny="bash(rm *)", allow="bash")


@pytest.mark.parametrize(
    "command", ["git push origin", "git >x push", "git &>x push", "git <(x) push", "git $(x) push", "git p$X"]
)
def test_denial_sees_words_behind_redirections_and_substitutions(command: str) -> None:
    """A command's words continue after redirections and substitutions."""
    assert Verdict.DENY is says(asked("bash", command=command), deny="bash(git push *)")


def test_denial_goes_before_a_question_and_that_before_leave() -> None:
    """Rules apply in the order deny, ask, allow; the agent decides if no rule matches."""
    rules = {"deny": "bash(git push --force *)", "ask": "bash(git push *)", "allow": "bash(git *)"}
    assert Verdict.DENY is says(asked("bash", command="git push --force x"), **rules)
    assert says(asked("bash", command="git push x"), **rules) == "bash(git push *)"
    assert Verdict.ALLOW is says(asked("bash", command="git fetch"), **rules)
    assert says(asked("bash", command="make"), **rules) is None
    assert says(Request(id="1", kind=RequestKind.QUESTION, title="asks", tool_name="bash"), **rules) is None


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an allowed directory, and links out of it and into it."""
    for name in ("project/src/deep", "project/other", "outside"):
        (tmp_path / name).mkdir(parents=True)
    root = tmp_path / "project"
    (root / "src" / "out").symlink_to("../../outside")
    (root / "src" / "file").symlink_to("/etc/hostname")
    (root / "in").symlink_to("src")
    (root / "secret").symlink_to("../outside")
    return root


@pytest.mark.parametrize(
    "path", ["src/a.py", "./src/deep/b.py", "src/deep/new/c.py", "other/../src/a.py", "in/a.py", "{root}/src/a.py"]
)
def test_edit_is_allowed_below_the_directory_of_its_pattern(project: Path, path: str) -> None:
    """Paths are relative to the run's directory; any spelling of a path into the allowed directory is allowed."""
    call = asked("edit", paths=(path.replace("{root}", str(project)),))
    assert Verdict.ALLOW is says(call, project, allow="edit(src/**)")
    assert Verdict.ALLOW is says(asked("write", paths=call.paths), project, allow="edit(src/**)")


@pytest.mark.parametrize(
    "paths",
    [
        ("other/a.py",),
        ("src/../other/a.py",),
        ("src/out/a.py",),
        ("src/out/../project/src/a.py", "/etc/passwd"),
        ("src/file",),
        ("/etc/passwd",),
        ("~/src/a.py",),
        ("@/etc/passwd",),
        ("file:///etc/passwd",),
        ("src/a.py", "other/a.py"),
        ("src/a\x00.py",),
        ("src/a\n.py",),
        ("srcs/a.py",),
        ("",),
        (),
    ],
)
def test_edit_is_not_allowed_where_a_path_may_lead_elsewhere(project: Path, paths: tuple[str, ...]) -> None:
    """Links, `..`, absolute paths and spellings that an agent may read differently are judged by their targets."""
    assert says(asked("edit", paths=paths), project, allow="edit(src/**)") in (None, "unclear path")


def test_relative_paths_begin_where_the_call_is_made(project: Path) -> None:
    """A call in another directory has its paths relative to that one, and its command is not the allowed one."""
    assert Verdict.ALLOW is says(asked("edit", paths=("a.py",), cwd="src"), project, allow="edit(src/**)")
    assert says(asked("edit", paths=("src/a.py",), cwd="/tmp"), project, allow="edit(src/**)") is None
    assert Verdict.ALLOW is says(asked("bash", command="make", cwd=str(project / "src")), project, allow="bash(make)")
    assert says(asked("bash", command="make", cwd="/tmp"), project, allow="bash(make)") is None


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("edit(src/**)", "src/a.py"),
        ("edit(src/**)", "in/a.py"),
        ("edit(src/**)", "other/../src/a.py"),
        ("edit(secret/**)", "../outside/key"),
        ("edit(secret/**)", "secret/key"),
        ("edit(src/out/**)", "src/out/x"),
        ("edit(**/.env)", "a/b/.env"),
        ("edit(**/.env)", ".env"),
        ("edit(*.lock)", "uv.lock"),
        ("edit(src/)", "src/a.py"),
        ("write(src/**)", "src/a.py"),
        ("edit(/etc/**)", "/etc/passwd"),
        ("edit(~/.ssh/**)", "~/.ssh/config"),
        ("edit(src/**)", "x" * 5000),
        ("edit(src/**)", "src\x00"),
    ],
)
def test_denied_path_is_denied_by_every_way_to_it(project: Path, rule: str, path: str) -> None:
    """A deny rule covers a path's name, its target, and unclear paths."""
    assert Verdict.DENY is says(asked("edit", paths=("README", path)), project, deny=rule)


def test_search_is_denied_where_it_would_look_into_what_is_denied(project: Path) -> None:
    """A search of a directory touches the files below it; reading one file does not."""
    for paths in ((".",), (), ("src",), ("src/deep",)):
        assert Verdict.DENY is says(asked("grep", paths=paths), project, deny="grep(src/deep/**)")
    assert says(asked("grep", paths=("other",)), project, deny="grep(src/deep/**)") is None
    assert says(asked("read", paths=("src",)), project, deny="read(src/deep/**)") is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("", "is not a valid rule"),
        ("bash(git *", "is not a valid rule"),
        ("bash git", "is not a valid rule"),
        ("bash()", "empty brackets"),
        ("Bash(git *)", "use bash, for every agent"),
        ("bash(git:*)", "ends with :*"),
        ("bash(git * | sh)", "more than one command in its brackets"),
        ("bash($X)", "more than one command in its brackets"),
        ("bash(X=1 make)", "begins with text that cannot begin a command"),
        ("bash(~/bin/x *)", "begins with text that cannot begin a command"),
        ("bash(then *)", "begins with text that cannot begin a command"),
        ("edit(../x)", '".." in its path'),
        ("webfetch(example.org)", "which webfetch does not support"),
        ("bash(a\nb)", "is not a valid rule"),
        ("bash(" + "x" * 2000 + ")", "is not a valid rule"),
    ],
)
def test_what_is_no_rule_is_refused(rule: str, words: str) -> None:
    """An ambiguous rule is an error with the correct form."""
    with pytest.raises(UsageError, match="permissions") as caught:
        checked_rules([rule])
    assert words in str(caught.value)


def test_names_of_rules_may_be_beginnings() -> None:
    """A final `*` matches any ending of a name, as for the tools of one server."""
    assert Verdict.DENY is says(asked("mcp__github__push"), deny="mcp__github__*")
    assert says(asked("mcp__gitlab__push"), deny="mcp__github__*") is None
    assert says(asked("anything"), ask="*") == "*"


def test_what_an_agent_has_to_be_made_to_ask_about() -> None:
    """Rules that ask or deny select tools, `edit` and `write` together; fully denied tools are not provided."""
    rules = Permissions(allow=("read",), ask=("bash(git push *)", "edit(src/**)"), deny=("bash", "mcp__x__*", "ls"))
    assert asked_tools(rules) == ("bash", "edit", "write", "mcp__x__*", "ls")
    assert denied_tools(rules) == ("bash", "ls")
    assert asked_tools(None) == denied_tools(None) == ()


def test_tools_of_an_agent_that_do_the_same() -> None:
    """A rule without a pattern also denies an agent's other tools that change files or run commands."""
    rules = Permissions(deny=("edit", "bash"))
    offered = ("Read", "NotebookEdit", "Monitor", "WebFetch")
    assert denied_tools(rules, offered) == ("edit", "write", "bash", "NotebookEdit", "Monitor")
    assert denied_tools(Permissions(deny=("edit(src/**)", "read")), offered) == ("read",)


def test_a_tool_that_runs_commands_in_the_background() -> None:
    """Rules for `bash` cover Claude Code's `Monitor`, unless it opens a connection instead."""
    watching = asked("Monitor", command="touch x; tail -f log")
    assert Verdict.DENY is says(watching, deny="bash(touch *)")
    assert says(watching, ask="bash(tail *)") == "bash(tail *)"
    assert says(watching, allow="bash(tail *)") is None
    assert Verdict.ALLOW is says(asked("Monitor", command="tail -f log"), allow="bash(tail *)")
    assert says(asked("Monitor"), deny="bash(touch *)") is None
    assert Policy(None, "/srv").run_rule(asked("Monitor", command="tail -f log")) == "bash(tail -f log)"


def test_rules_of_several_places_go_together() -> None:
    """Merging keeps each rule once; merging no rules gives None."""
    both = merged(Permissions(allow=("a",), deny=("b",)), Permissions(allow=("a", "c")))
    assert both == Permissions(allow=("a", "c"), deny=("b",))
    assert merged(Permissions(), Permissions()) is None


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (asked("bash", command=" git  push origin "), "bash(git push origin)"),
        (asked("bash", command="rm *.o"), "bash(=rm *.o)"),
        (asked("bash", command="cd src && make"), "bash(=cd src && make)"),
        (asked("bash", command="a\nb"), ""),
        (asked("bash", command="x" * 5000), ""),
        (asked("bash", command="make", cwd="/tmp"), ""),
        (asked("edit", paths=("src/a", "b")), "edit(**)"),
        (asked("write", paths=("src/a",)), "edit(**)"),
        (asked("read", paths=("/etc/hosts",)), "read(/etc/hosts)"),
        (asked("edit", paths=("/nowhere/*",)), ""),
        (asked("edit"), ""),
        (asked("webfetch"), "webfetch"),
        (asked(""), ""),
        (Request(id="1", kind=RequestKind.QUESTION, title="asks"), ""),
    ],
)
def test_leave_for_the_run_is_a_rule_that_covers_the_request(request_: Request, rule: str) -> None:
    """Permission for the run is a rule for exactly this command, the files of the run's directory, or the tool."""
    policy = Policy(Permissions(ask=("*",)), HERE)
    assert policy.run_rule(request_) == rule
    if rule:
        policy.allow_in_run(rule)
        assert policy.decide(request_) == (Verdict.ALLOW, rule)


def test_leave_for_the_run_does_not_outrank_a_denial() -> None:
    """Permission for the run outranks ask rules, but not deny rules."""
    policy = Policy(Permissions(deny=("bash(rm *)",), ask=("bash",)), HERE)
    policy.allow_in_run("bash(rm x)")
    policy.allow_in_run("bash(ls)")
    assert policy.decide(asked("bash", command="rm x")) == (Verdict.DENY, "bash(rm *)")
    assert policy.decide(asked("bash", command="ls")) == (Verdict.ALLOW, "bash(ls)")
    assert policy.decide(asked("bash", command="ls -l")) == (None, "bash")


def test_a_command_that_was_cut_is_not_allowed_by_its_beginning() -> None:
    """A cut command is allowed by no pattern, and denied by any pattern that denies commands."""
    cut = asked("bash", command=f"git log {CUT}")
    assert says(cut, allow="bash(git *)") is None
    assert Verdict.DENY is says(cut, deny="bash(rm *)")
    assert Policy(None, HERE).run_rule(cut) == ""


def test_as_many_paths_as_are_kept_may_not_be_all(project: Path) -> None:
    """A request whose list of paths may be incomplete is allowed by no rule, and denied by any pattern."""
    many = asked("edit", paths=tuple(f"src/{number}" for number in range(MOST_PATHS)))
    assert says(many, project, allow="edit(src/**)") == "unclear path"
    assert Verdict.DENY is says(many, project, deny="edit(other/**)")
    assert says(many, project, allow="edit") == "unclear path"


def test_rule_of_a_record_that_is_not_understood_bounds_everything() -> None:
    """An unknown rule of a newer version asks about or denies every call, and allows none."""
    assert Verdict.DENY is says(asked("read"), deny="later{rule}")
    assert says(asked("read"), ask="later{rule}") == "later{rule}"
    assert says(asked("read"), allow="later{rule}") is None


WORDS = (
    "git rm x ; & | ' \" \\ $ ` ( ) { } < > # ! * ? ~ = - $(rm) `rm` && || PATH= eval [ ] ^ % é , \\' \\\" if then fi"
    " do @ + : ${x} <<x"
)
PIECES = st.sampled_from([*WORDS.split(), *" " * 9, "\t", "\n", "\\\n", "\r", "\x0b", "\u00a0", "\x7f", "; rm x"])
COMMANDS = st.builds(
    lambda start, parts: start + "".join(parts), st.sampled_from(["git", "git "]), st.lists(PIECES, max_size=10)
)


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of programs that only record their calls."""
    directory = tmp_path_factory.mktemp("programs")
    for name in ("git", "rm", "x", "gitx", "gitrm", "gitgit"):
        program = directory / name
        program.write_text(f'#!/bin/sh\nprintf "%s\\0" {name} "$@" "" >>"$CALLS"\nprintf "\\n" >>"$CALLS"\n')
        program.chmod(0o700)
    return directory


@pytest.mark.processes
@settings(max_examples=250, deadline=None)
@given(command=COMMANDS)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_shell_runs_what_is_allowed_as_one_command_with_its_words(recorder: Path, shell: str, command: str) -> None:
    """A shell runs an allowed text as one command: the named program with the recognized words."""
    words = simple_command(command)
    is_allowed = says(asked("bash", command=command), allow="bash(git *)") is Verdict.ALLOW
    assert is_allowed == (words is not None and words[0] == "git")
    if words is None or not is_allowed:
        return
    place = recorder / "place"
    place.mkdir(exist_ok=True)
    calls = recorder / "calls"
    calls.unlink(missing_ok=True)
    program = shutil.which(shell) or pytest.skip(f"no {shell}")
    environment = {"PATH": str(recorder), "CALLS": str(calls), "HOME": "/home"}
    subprocess.run(
        [program, "-c", command], cwd=place, env=environment, stdin=subprocess.DEVNULL, timeout=20, check=False
    )
    assert os.listdir(place) == []
    expected = [*(word.translate({1: "*", 2: "?", 3: "~"}) for word in words), "", "\n"]
    said = calls.read_text().split("\0")
    assert len(said) == len(expected)
    assert all(is_ == was or "~" in was for is_, was in zip(said, expected, strict=True))


STEPS = st.sampled_from(["src", "deep", "out", "..", "in", "a", "secret", ".", "", "~", "@src"])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.sampled_from(["src", "in", "{root}/src", "~"]), steps=st.lists(STEPS, max_size=4))
def test_file_that_may_be_written_is_one_of_the_pattern(project: Path, first: str, steps: list[str]) -> None:
    """A file opened by an allowed path lies below the pattern's directory."""
    path = "/".join([first.replace("{root}", str(project)), *steps])
    if says(asked("edit", paths=(path,)), project, allow="edit(src/**)") is not Verdict.ALLOW:
        return
    try:
        file = os.open(project / path, os.O_RDONLY | os.O_CREAT)
    except OSError:
        return  # its directory is missing
    try:
        assert os.readlink(f"/proc/self/fd/{file}").startswith(f"{os.path.realpath(project)}/src")
    finally:
        os.close(file)


@settings(max_examples=300, deadline=None)
@given(command=st.text(alphabet=st.characters(codec="utf-8"), max_size=60) | COMMANDS)
def test_no_text_breaks_the_rules(command: str) -> None:
    """Any text is decided, and a text recognized as one command is among its possible commands."""
    says(asked("bash", command=command, paths=(command,)), deny="bash(rm *)", ask="edit(a/**)", allow="bash(git *)")
    words = simple_command(command)
    if words is not None and not set("\x01\x02\x03") & set("".join(words)):
        assert words in list(possible_commands(command))


@pytest.mark.parametrize(
    "command",
    [
        *("a" * 100_000, "$(" * 20_000, "`" * 20_001, "# " * 20_000, "xargs " + "a " * 20_000, "'" * 20_001),
        *("{a," * 20_000, "sh -c '" * 2_000, "a*" * 20_000, "<<x\n" * 5_000, '"$x"' * 20_000),
    ],
)
@pytest.mark.timeout(10)
def test_long_command_is_decided_at_once(command: str) -> None:
    """A text of any length and depth is decided in moments."""
    says(asked("bash", command=command), deny="bash(r*m * *x *y)", allow="bash(a*b*c*d *)")


@pytest.mark.processes
def test_rules_hold_in_each_working_tree(tmp_path: Path) -> None:
    """A deny rule also covers the same file in other worktrees of the repository. An allow rule doesn't."""
    root, tree = tmp_path / "shop", tmp_path / "shop" / ".claude" / "worktrees" / "x"
    (root / "web" / "secret").mkdir(parents=True)
    (root / "web" / "secret" / "key").write_text("key\n")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "all")
    git(root, "worktree", "add", "-q", str(tree))
    git(root, "init", "-q", "other")
    inner, main = tree / "web", root / "web"
    for here, there in ((main, inner), (inner, main)):
        for path in (f"{here}/secret/key", f"{there}/secret/key", f"{there}/secret/new"):
            assert Verdict.DENY is says(asked("read", paths=(path,)), here, deny="read(secret/**)")
            assert says(asked("write", paths=(path,)), here, ask="edit(**)") == "edit(**)"
        assert says(asked("read", paths=(f"{there}/open",)), here, deny="read(secret/**)") is None
        assert says(asked("read", paths=(f"{there}/secret/key",)), inner, allow="read(secret/**)") is (
            Verdict.ALLOW if there == inner else None
        )
    for other in (f"{root}/other/web/secret/key", f"{tmp_path}/web/secret/key"):
        assert says(asked("read", paths=(other,)), main, deny="read(secret/**)") is None
