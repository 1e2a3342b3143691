"""`subdeck completion`: print the script that makes a shell complete, and answer that script."""

from __future__ import annotations

import re

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from ..errors import SubdeckError
from ..text.plain import one_line
from .options import OneOf, json_option
from .output import document, say

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


@click.command("completion")
@click.argument("shell", type=OneOf(list(SCRIPTS)))
@click.option("--line", hidden=True, help="The command line up to the cursor: print what completes it.")
@click.option("--word", hidden=True, help="The part of the last word that bash replaces.")
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, line: str | None, word: str | None, as_json: bool) -> None:
    """Print a script that completes commands, options, runs, presets, agents and models in bash, zsh or fish.

    In ~/.bashrc: eval "$(subdeck completion bash)"

    In ~/.zshrc, after compinit: eval "$(subdeck completion zsh)"

    For fish: subdeck completion fish > ~/.config/fish/completions/subdeck.fish
    """
    if line is not None:
        for item in _Line(ctx.find_root().command, line).items(word):
            say("\t".join((item.type, item.value, one_line(item.help or "", DESCRIPTION))))
    elif as_json:
        document({"shell": shell, "script": SCRIPTS[shell]})
    else:
        say(SCRIPTS[shell].rstrip("\n"))


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
        from .completing import attach

        attach(self.cli)
        is_value = self._last.startswith("--") and "=" in self._last
        before = self._last[: self._last.index("=") + 1] if is_value else ""
        cut = len(self._last) - len(word) if word is not None and self._last.endswith(word) else 0
        try:
            found = self.get_completions(list(self._before), self._last)
        except SubdeckError:
            return []  # such a command does not exist
        return [
            CompletionItem((before + item.value)[cut:], item.type, item.help) for item in found if _is_one_line(item)
        ]


def _is_one_line(item: CompletionItem[str]) -> bool:
    return one_line(item.value, 10_000) == item.value
