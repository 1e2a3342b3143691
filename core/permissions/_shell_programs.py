"""The commands that a shell may run for a text, and the commands that these run in turn."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

from ._shell_builtins import (
    ARRAY_IN_TEXT,
    SET_OPTIONS,
    SPECIAL_IN_TEXT,
    changes_commands,
    is_arithmetic,
    is_evaluated,
    names_program,
)
from ._shell_grammar import commands_in
from ._shell_lexer import Command, NotUnderstood, Word
from .shell_words import ANYTHING, ARRAY, HOLE, NUMBER, SPLIT, without_quotes, word_set

Words = tuple[str, ...]

_ANY: Words = (ANYTHING,)
_MARKS = str.maketrans({NUMBER: HOLE, ARRAY: HOLE, SPLIT: ""})
_TEXT = 10
"""Levels that a text within a word counts for."""
_MOST_NESTED = 4 * _TEXT
"""Most levels of nested commands that are followed."""
_MOST_FOUND = 5_000
"""Most commands of a text that are checked."""


_SHELLS = word_set("sh bash dash zsh ksh ash mksh lksh pdksh yash posh oksh rbash rzsh rksh osh bosh hush")
_OF_VERSION = re.compile(r"-?(?:static|[0-9][0-9.]*)$")
"""Endings of shells' and interpreters' names on some systems: `zsh5`, `bash-static`."""
OTHER_SHELLS = word_set("fish csh tcsh nu xonsh elvish pwsh powershell rc es ion")
"""Shells with other quoting than sh: text given to one may run anything."""
_ASKS_SHELL = frozenset({"--version", "-v", "--help", "-h"})
_LONG_OPTIONS = word_set("--norc --noprofile --posix --login --noediting --verbose")

_CARRIERS = word_set(
    "su ssh fd fdfind watch strace ltrace script flock chroot unshare nsenter systemd-run"
    " systemd-inhibit runuser entr prlimit setpriv choom cgexec dbus-run-session fakeroot fakechroot firejail"
    " bwrap proot torsocks torify proxychains proxychains4 xvfb-run catchsegv valgrind gdb lldb perf numactl"
    " rlwrap unbuffer expect pkexec gosu su-exec run0 runcon sg newgrp openvt start-stop-daemon daemonize daemon"
    " screen dtach abduco chronic ifne ts errno lckdo pee mispipe watchexec hyperfine nix-shell pkgx mosh rsh pdsh"
    " softlimit setuidgid envdir envuidgid chpst tini dumb-init catatonit snice schedtool cpulimit timelimit"
    " faketime eatmydata execline apptainer singularity toolbox distrobox flatpak wine autossh ccache"
    " sccache distcc heaptrack tmux sudoedit machinectl lxc-attach lxc-execute reptyr nocache trickle logsave wsl"
    " cmd cmd.exe start tclsh busctl scl crun runc ctr ssh-agent gpg-agent systemd-cat systemd-socket-activate"
    " uclampset dbus-launch aa-exec capsh dotlockfile with-lock-ex fakeroot-sysv fakeroot-tcp fakeroot-ng coreutils"
    " arch xcrun sandbox-exec sshpass scp sftp slogin mpirun mpiexec srun salloc uftrace rr kcov setlock pgrphack xinit"
)
"""Programs that run a command among their arguments, in a way that is not modeled exactly."""
_READS_COMMANDS = word_set("at batch crontab parallel sem")
"""Programs that run the commands in their input."""
_STARTS_SHELL = {
    **dict.fromkeys(word_set("unshare fakeroot fakechroot proot newgrp tmux screen nix-shell toolbox distrobox"), 0),
    **dict.fromkeys(word_set("linux32 linux64 i386 x86_64 uname26 busctl"), 0),
    **dict.fromkeys(word_set("script chroot su runuser sg setarch nsenter machinectl bwrap firejail"), 1),
}
"""Programs that start a shell if they get no command, with the number of words before the command."""
_RUNNERS = {
    **dict.fromkeys(
        ("docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "incus"), word_set("run exec create debug")
    ),
    **dict.fromkeys(("docker-compose", "podman-compose"), word_set("run exec")),
    **dict.fromkeys(("uv", "poetry", "pdm", "rye", "hatch", "pipenv", "conda", "mamba", "micromamba"), word_set("run")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "corepack"), word_set("exec x dlx")),
    **dict.fromkeys(
        ("nix", "direnv", "aws-vault", "op", "mise", "asdf", "vagrant"), word_set("run exec shell develop x")
    ),
    **dict.fromkeys(("pipx", "bundle", "snap"), word_set("run exec")),
    **dict.fromkeys(("npx", "pnpx", "bunx", "uvx", "dotenv"), frozenset[str]()),
}
"""Programs that run the words after one of their commands, or after any option if they have no commands."""
_SCRIPT_COMMANDS = word_set("exec x dlx run shell develop")
"""Commands of runners whose option `-c` takes text for a shell; containers have additional commands."""


class _Options(NamedTuple):
    """The options of a program that runs the command after them."""

    flags: str = ""
    """Letters without a value."""
    valued: str = ""
    """Letters with a value."""
    long: frozenset[str] = frozenset()
    """Long options without a value; `--name=value` is always one word."""
    operands: int = 0
    """Number of words before the command."""
    has_numbers: bool = False
    """Whether a number may be an option."""


_WRAPPERS = {
    "-": _Options(),
    "noglob": _Options(),
    "nocorrect": _Options(),
    "builtin": _Options(),
    "nohup": _Options(),
    "exec": _Options("cl", "a"),
    "command": _Options("p"),
    "time": _Options("pvaq", "fo"),
    "nice": _Options("", "n", has_numbers=True),
    "ionice": _Options("t", "cn"),
    "setsid": _Options("cfw"),
    "stdbuf": _Options("", "ioe"),
    "timeout": _Options("v", "ks", word_set("--foreground --preserve-status --verbose"), 1),
    "taskset": _Options("ac", operands=1),
    "chrt": _Options("bfiormRv", "TPD", operands=1),
    "caffeinate": _Options("dimsu", "tw"),
    "sudo": _Options("ABbEHnPSkis", "ugphCcrtTRD", word_set("--preserve-env --non-interactive --login --shell")),
    "doas": _Options("ns", "uC"),
    "busybox": _Options(),
    "toybox": _Options(),
    "setarch": _Options("RvZLXBIST3", operands=1),
    "linux32": _Options("RvZLXBIST3"),
    "linux64": _Options("RvZLXBIST3"),
    "i386": _Options("RvZLXBIST3"),
    "x86_64": _Options("RvZLXBIST3"),
    "uname26": _Options("RvZLXBIST3"),
}
"""Programs and builtins that run the words after their options."""

_BUILTINS = word_set("- . noglob nocorrect builtin exec command eval source trap alias test [ printf true echo")
"""Commands that run others only within a shell, or that run none."""
_LOADER = re.compile(r"ld(?:-linux|-musl|64|\.so|-).*|ld\.so")
_FIND_TESTS = word_set(
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -newer -anewer -cnewer -type"
    " -xtype -size -mtime -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -maxdepth -mindepth -inum"
    " -links -samefile -printf -fstype -used -regextype -fprint -fprint0 -fls"
)
"""Words of `find` that take any next word as their value."""
_FIND_RUNS = word_set("-exec -execdir -ok -okdir")
_GIT_HARMLESS = re.compile(
    r"(?i)(?:user|author|committer|color|advice|http|push|pull|status|log|column|safe|commit)\..*"
)
"""Settings of git that name no programs."""
_GIT_VALUED = word_set("-C -c --git-dir --work-tree --namespace --super-prefix --attr-source --list-cmds")
_GIT_OPTIONS = word_set(
    "--exec --extcmd --upload-pack --receive-pack --open-files-in-pager --tree-filter --index-filter --msg-filter"
    " --env-filter --commit-filter --parent-filter --tag-name-filter --setup --sendmail-cmd --to-cmd --cc-cmd"
)
"""Options that take a command; git also accepts abbreviations of them."""
_GIT_SHORT = {
    **dict.fromkeys(("rebase", "difftool"), re.compile("-[A-Za-z]*?x(.*)", re.DOTALL)),
    "clone": re.compile("-[A-Za-z]*?u(.*)", re.DOTALL),
    "grep": re.compile("-[A-Za-z]*O([a-z./].*)", re.DOTALL),
}
_DIRECTORY = r"(?:\$(?:HOME|PWD|PATH|\{(?:HOME|PWD|PATH)\})|~|/|\$\(pwd\))"
_PATH = re.compile(rf'"?{_DIRECTORY}[\w./@+-]*(?::{_DIRECTORY}[\w./@+-]*)*"?')
"""A `PATH` of absolute directories, whose programs are run by name."""


def possible_commands(text: str, depth: int = 0) -> Iterator[Words]:
    """Yield the words of everything that a shell might run for a text.

    Programs and builtins that run others are followed. The value of a variable or substitution is ANYTHING, or a HOLE
    if quoted. `(ANYTHING,)` is any command: a part of the text is not understood with certainty.
    """
    commands = _of_commands(text, depth)
    yield from commands if depth else itertools.islice(commands, _MOST_FOUND)
    if not depth and next(commands, None) is not None:
        yield _ANY


def _of_commands(text: str, depth: int) -> Iterator[Words]:
    try:
        commands = commands_in(text, is_nested=depth > 0) if depth < _MOST_NESTED else None
    except NotUnderstood:
        commands = None
    if commands is None:
        yield _ANY
        return
    bare = without_quotes(text)
    may_split = depth > 0 or SPECIAL_IN_TEXT.search(bare) is not None
    has_arrays = depth > 0 or ARRAY_IN_TEXT.search(bare) is not None
    for command in commands:
        for words in _of_command(command, depth, may_split=may_split, has_arrays=has_arrays):
            yield tuple(word.translate(_MARKS) for word in words)


def _of_command(command: Command, depth: int, *, may_split: bool, has_arrays: bool) -> Iterator[Words]:
    words = tuple(word.value for word in command.words)
    for name, value in command.assigned:
        yield from _with_variable(name, value, depth, is_exported=bool(words))
    if not words:
        return
    if words[0] in ("export", "declare", "typeset", "local", "readonly"):
        for word in command.words[1:]:
            name, equals, value = word.value.partition("=")
            if equals:
                raw = word.raw.partition("=")[2] if word.raw.startswith(f"{name}=") else ""
                value_word = Word(HOLE * name.endswith("+") + value, raw)
                yield from _with_variable(name.rstrip("+"), value_word, depth, is_exported=words[0] == "export")
            if ANYTHING in value and may_split and name != "PATH":
                yield _ANY  # dash splits it
            if value.startswith((HOLE, ANYTHING)) and has_arrays and words[0] != "export":
                yield _ANY  # bash evaluates it for an array
    yield from _of_words(words, depth)


def _with_variable(name: str, value: Word, depth: int, *, is_exported: bool) -> Iterator[Words]:
    """Yield the commands run because a variable is set: a program that gets it may run its value."""
    is_literal = not _is_open(value.value)
    if name in ("PATH", "path"):
        if not _PATH.fullmatch(value.raw):
            yield _ANY
    elif changes_commands(name) or (names_program(name) and not is_literal) or is_arithmetic(name, value.value):
        yield _ANY
    elif names_program(name):
        for words in possible_commands(value.value.lstrip("!"), depth + _TEXT):
            yield (*words, ANYTHING)
    elif is_exported and is_literal and (words := value.value.lstrip("!").split()):
        yield (words[0].rpartition("/")[2], ANYTHING)


def _is_open(word: str) -> bool:
    return any(mark in word for mark in (ANYTHING, HOLE, NUMBER, ARRAY))


def _program(word: str) -> str | None:
    """Return the name of a word's program, without directories; None if unknown."""
    name = word.rpartition("/")[2]
    if ANYTHING in word or _is_open(name) or name.startswith(("%", "!", "=")):
        return None
    return name


def _of_words(words: Words, depth: int) -> Iterator[Words]:
    """Yield a command and the commands that it runs."""
    name = _program(words[0])
    if name is None or depth >= _MOST_NESTED:
        yield _ANY
        return
    yield words
    if name != words[0]:
        yield (name, *words[1:])
    if name.lower() != name:  # some file systems ignore case
        yield from _of_words((name.lower(), *words[1:]), depth + 1)
    if is_evaluated((name, *words[1:]), is_text=True) or _may_read_commands(name, words):
        yield _ANY
    else:
        yield from _run_by(name, words, depth)


def _may_read_commands(name: str, words: Words) -> bool:
    """Return whether a program may run its input, or text that is not parsed here, as commands."""
    if name in OTHER_SHELLS:
        arguments = words[1:]
        return not arguments or any(
            _is_open(word) or (word[:1] == "-" and word not in _ASKS_SHELL) for word in arguments
        )
    is_shell = name in _STARTS_SHELL and sum(word[:1] != "-" for word in words[1:]) <= _STARTS_SHELL[name]
    return is_shell or name in _READS_COMMANDS


def _run_by(name: str, words: Words, depth: int) -> Iterator[Words]:
    """Yield the commands that a known program runs."""
    if name[:1] == "g" and (name[1:] in _RUNS or name[1:] in _WRAPPERS):
        name = name[1:]  # names of GNU programs beside those of BSD
    if name in _RUNS:
        yield from _RUNS[name]((name, *words[1:]), depth)
    elif _OF_VERSION.sub("", name) in _SHELLS:
        yield from _of_shell(words, depth)
    elif name in _WRAPPERS:
        yield from _of_wrapper(name, words, depth)
    elif name in _RUNNERS:
        yield from _of_runner(_RUNNERS[name], words, depth)
    elif name in _CARRIERS or _LOADER.fullmatch(name):
        yield from _carried(words, depth)


def _carried(words: Words, depth: int) -> Iterator[Words]:
    """Yield each tail of the words as a command: the program runs one of them, but which is unknown."""
    for position, word in enumerate(words[1:], 1):
        tail = words[position:]
        name = word.rpartition("/")[2]
        yield _ANY if SPLIT in word else tail
        if name != word:
            yield (name, *tail[1:])
        if name in _FOLLOWED:
            yield from _of_words((name, *tail[1:]), depth + 1)
        cluster = re.match("-[A-Za-z]{1,8}", word)  # one of these letters may take the rest as its value
        begins = range(2, cluster.end() + 1) if cluster else (2,) if re.match("-[^-]", word) else ()
        attached = {word[begin:] for begin in begins}
        parts = {word, *attached, word.partition("=")[2].lstrip("!")}
        for part in sorted(filter(None, parts)):
            if part != word or re.search(r"[\s;&|()<>`$]", part):
                yield from _of_text(part, depth)


def _of_runner(commands: frozenset[str], words: Words, depth: int) -> Iterator[Words]:
    """Yield the words after a command that runs programs, and the text that `-c` passes to a shell."""
    begin = next((at for at, word in enumerate(words) if word in commands or _is_open(word)), 0)
    if commands and not begin:
        return
    for position in range(begin + 1, len(words)):
        name = words[position].rpartition("/")[2]
        if commands <= _SCRIPT_COMMANDS and words[position - 1] in ("-c", "--call", "--command"):
            yield from _of_text(words[position], depth)
        elif name and name not in _BUILTINS:
            yield from _of_words((name, *words[position + 1 :]), depth + 1)


def _of_text(text: str, depth: int) -> Iterator[Words]:
    if _is_open(text) and re.search(r"[\s;&|()<>`$]", text):
        yield _ANY
    elif _is_open(text):
        yield (text.replace(ANYTHING, HOLE).replace(SPLIT, ""),)
    else:
        yield from possible_commands(text, depth + _TEXT)


def _of_wrapper(name: str, words: Words, depth: int) -> Iterator[Words]:
    options = _WRAPPERS[name]
    if name == "command" and words[1:2] and words[1] in ("-v", "-V"):
        return
    at = _behind_options(options, words)
    if at is None:
        yield from _carried(words, depth)
        return
    if name in ("sudo", "doas"):
        if at == len(words) and any(re.match(r"-\w*[is]|--login|--shell", word) for word in words[1:]):
            yield _ANY  # a shell that reads its input
        while at < len(words) and (variable := re.match(r"([A-Za-z_]\w*)=", words[at])):
            value = words[at][variable.end() :]
            yield from _with_variable(variable[1], Word(value, value), depth, is_exported=True)
            at += 1
    if any(ANYTHING in word or word == HOLE for word in words[1 : at + options.operands]):
        yield _ANY
    if words[at + options.operands :]:
        yield from _of_words(words[at + options.operands :], depth + 1)
    if name == "setarch" and words[at:]:
        yield from _of_words(words[at:], depth + 1)  # the architecture may be omitted


def _behind_options(options: _Options, words: Words) -> int | None:
    """Return the position of the first word after the options; None if an option is unknown."""
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        if word.startswith("--"):
            if word not in options.long and ("=" not in word or ANYTHING in word):
                return None
        elif not (options.has_numbers and re.fullmatch(r"-\d+", word)):
            valued = next((index for index, letter in enumerate(word) if letter in options.valued), len(word))
            if not set(word[1:valued]) <= set(options.flags):
                return None
            at += valued == len(word) - 1
    return at


def _of_shell(words: Words, depth: int) -> Iterator[Words]:
    """Yield the commands of a shell: the text after `-c`, anything if it reads its input, or only a script itself."""
    at, is_text = 1, False
    while at < len(words) and words[at].startswith(("-", "+", HOLE, ANYTHING)):
        word = words[at]
        at += 1
        if word in ("--version", "--help"):
            return
        if word in ("-", "--"):
            break
        if word in _LONG_OPTIONS:
            continue
        if not re.fullmatch(r"[-+][abcefhlmnruvxBCEHTio]+", word):
            yield _ANY
            return
        is_text = is_text or "c" in word
        options = words[at : at + word.count("o")]
        at += len(options)
        if not SET_OPTIONS.issuperset(options):
            yield _ANY
            return
    if is_text and at < len(words) and not _is_open(words[at]):
        yield from possible_commands(words[at], depth + _TEXT)
    elif is_text or at >= len(words) or not _is_script(words[at]):
        yield _ANY
    else:
        yield from _of_script(words[at:])


def _of_script(words: Words) -> Iterator[Words]:
    """Yield a script that a shell runs; the commands in it are not checked."""
    yield words
    yield (words[0].rpartition("/")[2], *words[1:])


def _is_script(word: str) -> bool:
    """Return whether a word names a file, rather than another kind of input for a shell."""
    if re.search(r"^-|(?:^|/)(?:dev|proc)/", word):
        return False
    if re.fullmatch(r"stdin|stdout|stderr|[0-9]+", word.rpartition("/")[2]):
        return False  # in a directory of devices
    return not _is_open(word) or bool(re.fullmatch(rf"{HOLE}(?:/[\w.+-]+)+", word))


def _of_eval(words: Words, depth: int) -> Iterator[Words]:
    text = " ".join(words[1:])
    yield from (_ANY,) if _is_open(text) else possible_commands(text, depth + _TEXT)


def _of_trap(words: Words, depth: int) -> Iterator[Words]:
    arguments = words[2:] if words[1:2] == ("--",) else words[1:]
    if arguments and arguments[0] not in ("-l", "-p", "-"):
        yield from (_ANY,) if _is_open(arguments[0]) else possible_commands(arguments[0], depth + _TEXT)


def _of_source(words: Words, _: int) -> Iterator[Words]:
    """Yield a named file like any other script; other input may be any command."""
    arguments = words[2:] if words[1:2] == ("--",) else words[1:]
    if not arguments or not _is_script(arguments[0]):
        yield _ANY
    else:
        yield from _of_script(arguments)


def _of_alias(words: Words, _: int) -> Iterator[Words]:
    if words[1:]:
        yield _ANY  # dash then replaces later words


def _of_env(words: Words, depth: int) -> Iterator[Words]:
    at = 1
    while at < len(words):
        word = words[at]
        if word in ("-u", "-C", "--unset", "--chdir"):
            at += 1
            if at < len(words) and ANYTHING in words[at]:
                yield _ANY
        elif variable := re.match(r"([A-Za-z_]\w*)=", word):
            value = word[variable.end() :]
            if ANYTHING in value:
                yield _ANY
            yield from _with_variable(variable[1], Word(value, value), depth, is_exported=True)
        elif word.startswith("-") or _is_open(word) or "=" in word:
            if word not in ("-", "-i", "-0", "--", "--ignore-environment", "--null") and not re.fullmatch(
                r"--(?:unset|chdir)=[\w./-]*", word
            ):
                yield _ANY
                return
        else:
            yield from _of_words(words[at:], depth + 1)
            return
        at += 1


def _of_xargs(words: Words, depth: int) -> Iterator[Words]:
    at, replaced = 1, ""
    while at < len(words) and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word in ("-I", "-J", "--replace", "-i"):
            replaced = words[at] if word in ("-I", "-J") and at < len(words) else "{}"
            at += word in ("-I", "-J")
        elif match := re.fullmatch(r"-[IiJ](.+)|--replace=(.+)", word):
            replaced = match[1] or match[2]
        elif re.fullmatch(r"-[nPLsdaE]|--(?:max-args|max-procs|delimiter|arg-file)", word):
            at += 1
        elif word == "--":
            break
        elif not re.fullmatch(r"-[0rtpxo]+|-[nPLsdaEel].*|--[a-z-]+=.*|--(?:null|no-run-if-empty|verbose|exit)", word):
            yield from _carried((*words, ANYTHING), depth)
            return
    if any(_is_open(word) for word in words[1:at]):
        yield _ANY
    inner = words[at:]
    if not inner:
        return
    if replaced:
        inner = tuple(word.replace(replaced, ANYTHING if word == replaced else HOLE) for word in inner)
    yield from _of_words((*inner, *(() if replaced else (ANYTHING,))), depth + 1)


def _of_find(words: Words, depth: int) -> Iterator[Words]:
    is_value = may_be_shifted = is_within = False
    for position, word in enumerate(words[1:], 1):
        following = words[position + 1 :]
        if SPLIT in word or (ANYTHING in word and not word.partition(ANYTHING)[0].strip("-")):
            yield _ANY
        is_unknown = _is_open(word) and (may_be_shifted or not is_value)
        is_run = word in _FIND_RUNS or (is_unknown and not is_within)
        may_be_shifted = may_be_shifted or is_unknown
        is_value = not is_value and word in _FIND_TESTS
        is_within = word in _FIND_RUNS or (
            is_within and not is_unknown and not _ends_run(words[position - 1 : position + 1])
        )
        if is_run:
            end = next(
                (at for at in range(1, len(following) + 1) if _ends_run(following[max(at - 2, 0) : at])),
                len(following) + 1,
            )
            inner = tuple(part.replace("{}", ANYTHING if part == "{}" else HOLE) for part in following[: end - 1])
            if inner:
                yield from _of_words(inner, depth + 1)


def _ends_run(words: Words) -> bool:
    """Return whether the last word ends a command of `find`."""
    return words[-1] == ";" or words[-2:] == ("{}", "+")


def _of_git(words: Words, depth: int) -> Iterator[Words]:
    """Yield the command without the options before it, and the commands that git's options and commands run."""
    at = 1
    while at < len(words) and (words[at].startswith("-") or _is_open(words[at])):
        option = words[at : at + (2 if words[at] in _GIT_VALUED else 1)]
        if any(SPLIT in word for word in option) or (_is_open(option[0]) and "=" not in option[0]):
            yield _ANY  # it may be `-c`
        at += len(option)
    if 1 < at < len(words):
        yield ("git", *words[at:])
    for position, word in enumerate(words[1:], 1):
        earlier, following = words[1:position], words[position + 1 :]
        if words[position - 1] == "-c":
            key, _, value = word.partition("=")
            if _is_open(key) or not _GIT_HARMLESS.fullmatch(key):
                yield from _with_arguments(value, depth)
                yield from _of_text(f"git {value}", depth)  # an alias without `!`
        elif word.startswith(("--exec-path=", "--config-env")):
            yield _ANY
        elif (word == "run" and "bisect" in earlier) or (word == "foreach" and "submodule" in earlier):
            arguments = tuple(part for part in following if part not in ("--recursive", "--quiet"))
            yield from _of_eval(("eval", *arguments), depth)
        else:
            for text in _given_to_git(word, earlier, following[:1]):
                yield from _with_arguments(text, depth)


def _given_to_git(word: str, earlier: Words, following: Words) -> Iterator[str]:
    """Yield the commands that a git command takes through an option, or as its address."""
    name, equals, value = word.partition("=")
    if len(name) > 3 and any(option.startswith(name) for option in _GIT_OPTIONS):
        yield from (value,) if equals else following
    for command in earlier:
        if command in _GIT_SHORT and (match := _GIT_SHORT[command].fullmatch(word)):
            yield from (match[1],) if match[1] else following
    if "remote-ext" in earlier or word.startswith("ext::"):
        yield word.removeprefix("ext::")


def _with_arguments(text: str, depth: int) -> Iterator[Words]:
    """Yield the commands of a text that a program runs with additional arguments."""
    if _is_open(text):
        yield _ANY
        return
    for words in possible_commands(text.lstrip("!"), depth + _TEXT):
        yield (*words, ANYTHING)


_RUNS = {
    "eval": _of_eval,
    "trap": _of_trap,
    "source": _of_source,
    ".": _of_source,
    "alias": _of_alias,
    "env": _of_env,
    "xargs": _of_xargs,
    "find": _of_find,
    "git": _of_git,
}
_FOLLOWED = frozenset((*_SHELLS, *OTHER_SHELLS, *_WRAPPERS, *_RUNS, *_READS_COMMANDS, *_STARTS_SHELL)) - _BUILTINS
