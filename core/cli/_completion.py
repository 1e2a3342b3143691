"""`subdeck completion`: print the script that makes a shell complete, and answer that script.

No agent is started, nothing is written, and what cannot be read completes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from ..errors import SubdeckError
from ..text.plain import one_line
from ._command import Document, command
from ._options import OneOf
from .output import Output, show

_BASH = """\
_subdeck_completion() {
    local kind value quoted program=${1/#\\~/$HOME}
    COMPREPLY=()
    while IFS=$'\\t' read -r kind value _; do
        case $kind in
            file) compopt -o default ;;
            dir) compopt -o dirnames ;;
            *) printf -v quoted %q "$value"; COMPREPLY+=("$quoted") ;;
        esac
    done < <("$program" completion bash --line "${COMP_LINE:0:COMP_POINT}" --word "$2" 2>/dev/null)
}
complete -o nosort -F _subdeck_completion subdeck
"""

_ZSH = """\
#compdef subdeck
_subdeck() {
    local line kind value description
    local -a found
    for line in "${(@f)$(${~words[1]} completion zsh --line "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)}"; do
        IFS=$'\\t' read -r kind value description <<< "$line"
        case $kind in
            file) _files ;;
            dir) _files -/ ;;
            plain) found+=("${value//:/\\\\:}${description:+:$description}") ;;
        esac
    done
    (( $#found )) && _describe -V subdeck found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _subdeck "$@"
else
    compdef _subdeck subdeck
fi
"""

_FISH = """\
function __subdeck_complete
    set -l program (commandline -opc)[1]
    for line in (eval $program completion fish --line (string escape -- (commandline -cp)) 2>/dev/null)
        set -l fields (string split -m 2 \\t -- $line)
        switch $fields[1]
            case dir
                __fish_complete_directories $fields[2]
            case file
                __fish_complete_path $fields[2]
            case plain
                printf '%s\\t%s\\n' $fields[2] $fields[3]
        end
    end
end
complete --command subdeck --no-files --keep-order --arguments '(__subdeck_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
DESCRIPTION = 60
"""Characters of a description."""


class Script(Document, frozen=True):
    shell: str
    script: str
    """To be evaluated by the shell."""


@command(
    "completion",
    'eval "$(subdeck completion bash)" # in ~/.bashrc',
    'eval "$(subdeck completion zsh)" # in ~/.zshrc, after compinit',
    "subdeck completion fish > ~/.config/fish/completions/subdeck.fish",
)
@click.argument("shell", type=OneOf(list(SCRIPTS)))
@click.option("--line", hidden=True, help="The command line up to the cursor: print what completes it.")
@click.option("--word", hidden=True, help="The part of the last word that bash replaces.")
@click.pass_context
def completion(ctx: click.Context, shell: str, line: str | None, word: str | None) -> Output[Script] | None:
    """Print a script that completes commands, options, runs, presets, agents and models in bash, zsh or fish."""
    if line is not None:
        items = _Line(ctx.find_root().command, line).items(word)
        show("\t".join((item.type, item.value, one_line(item.help or "", DESCRIPTION))) for item in items)
        return None
    return Output(Script(shell, SCRIPTS[shell]), SCRIPTS[shell].rstrip("\n"))


class _Line(ShellComplete):
    """One command line that is completed at its end."""

    def __init__(self, command: click.Command, line: str) -> None:
        super().__init__(command, {}, "subdeck", "")
        words = split_arg_string(line)
        while words and re.match(r"\w+=", words[0]):
            words.pop(0)
        self._last = "" if not words or line[-1].isspace() else words.pop()
        self._before = words[1:]

    def items(self, word: str | None) -> list[CompletionItem[str]]:
        """Return what can stand in the place of the last word; with `word`, of the part of it that this is.

        bash takes a word apart at signs such as `:` and `=`, and replaces only what is behind the last one.
        """

        attach(self.cli)
        is_value = self._last.startswith("--") and "=" in self._last
        before = self._last[: self._last.index("=") + 1] if is_value else ""
        cut = len(self._last) - len(word) if word is not None and self._last.endswith(word) else 0
        try:
            candidates = self.get_completions(list(self._before), self._last)
        except SubdeckError:
            return []  # such a command does not exist
        return [
            CompletionItem((before + item.value)[cut:], item.type, item.help)
            for item in candidates
            if _is_one_line(item)
        ]


def _is_one_line(item: CompletionItem[str]) -> bool:
    return one_line(item.value, 10_000) == item.value


# --- values that are completed ---------------------------------------------------------------------------------------

MOST = 60
"""Runs that are offered, the newest ones."""
DESCRIBED = 60
"""Characters of a description."""

Found = Iterator[tuple[str, str]]
"""Values, each with its description."""
Source = Callable[[click.Context, str], Found]


def attach(command: click.Command) -> None:
    """Have each parameter of a command complete what its name in the help stands for."""
    for param in command.params:
        name = name_of(command, param)
        if source := SOURCES.get(name):
            param.shell_complete = partial(_completed, source)
        elif kind := PATHS.get(name):
            param.shell_complete = partial(_path, kind)


def name_of(command: click.Command, param: click.Parameter) -> str:
    """Return the name of a value in the help: `RUN` for `[RUN...]`. A NAME may be that of anything."""
    name = (param.metavar or param.name or "").replace("...", "").strip("[]")
    of = param.opts[0] if isinstance(param, click.Option) else command.name
    return f"{of} {name}" if name == "NAME" else name


def _path(kind: str, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(incomplete, type=kind)]


def _completed(source: Source, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    try:
        if directory := ctx.find_root().params.get("directory"):
            os.chdir(os.path.expanduser(directory))
        candidates = list(source(ctx, incomplete))
    except (SubdeckError, OSError):
        return []
    return [
        CompletionItem(value, help=description) for value, description in candidates if value.startswith(incomplete)
    ]


def _runs(ctx: click.Context, incomplete: str) -> Found:
    """Yield runs by their short ids, the newest first; by the whole id where that was begun."""
    from .. import trust
    from ..run import artifacts

    project = trust.find_project(os.getcwd())
    trust.check(project)
    directory = project.trash if ctx.params.get("undo") else project.runs
    already_named: set[str] = {*(ctx.params.get("refs") or ()), *(ctx.params.get("words") or ())}
    ids = sorted(artifacts.run_ids(directory), reverse=True)
    matching = [name for name in ids if name.startswith(incomplete) or name[-6:].startswith(incomplete)]
    for name in [name for name in matching if not {name, name[-6:]} & already_named][:MOST]:
        meta = artifacts.read_meta(os.path.join(directory, name))
        description = f"{meta.title}: {meta.description or meta.task}" if meta else ""
        yield name[-6:] if name[-6:].startswith(incomplete) else name, one_line(description, DESCRIBED)


def _presets(ctx: click.Context, _: str) -> Found:
    from ..engine import Engine

    for preset in Engine.open(readonly=True).presets().presets:
        yield preset.name, one_line(preset.description, DESCRIBED)


def _preset_of_run(ctx: click.Context, incomplete: str) -> Found:
    return iter(()) if ctx.params.get("args") or ctx.params.get("no_preset") else _presets(ctx, incomplete)


def _reply(ctx: click.Context, incomplete: str) -> Found:
    return iter((("allow", ""), ("deny", ""))) if ctx.params.get("words") else _runs(ctx, incomplete)


def _agents(_: click.Context, __: str) -> Found:
    from ..agent_kinds import KINDS
    from ..engine import Engine

    for name in dict.fromkeys(("auto", *KINDS, *Engine.open(readonly=True).settings.agents)):
        yield name, ""


def _models(ctx: click.Context, _: str) -> Found:
    """Yield the models that are known of the agent that is named, or of all that are installed, and the roles."""
    from ..agents.installed import agents_of, models_of
    from ..engine import Engine

    settings = Engine.open(readonly=True).settings
    for agent in agents_of(ctx.params.get("agent") or "auto", settings):
        for model in models_of(agent, settings).models:
            yield model.ref, agent.label
    for name, model in settings.roles.items():
        yield f"@{name}", model


def _checks(_: click.Context, __: str) -> Found:
    from ..engine import Engine

    for name, argv in Engine.open(readonly=True).settings.checks.items():
        yield name, one_line(" ".join(argv), DESCRIBED)


def _runners(_: click.Context, __: str) -> Found:
    from ..run.enumerations import RunnerKind

    return _plain(map(str, RunnerKind))


def _plain(names: Iterable[str]) -> Found:
    return ((name, "") for name in names)


SOURCES: dict[str, Source] = {
    "--check NAME": _checks,
    "A": _agents,
    "A B": _runs,
    "M": _models,
    "PRESET TASK": _preset_of_run,
    "R": _runners,
    "RUN": _runs,
    "RUN [REQUEST] allow|deny|TEXT": _reply,
    "RUN TEXT": _runs,
    "presets NAME": _presets,
}
"""By the name that a value has in the help."""
PATHS = {"DIR": "dir", "FILE": "file"}
