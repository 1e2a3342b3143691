"""Mistakes on the command line that click finds, as UsageError."""

from __future__ import annotations

import click

from ..errors import UsageError, nearest_of
from ..text.plain import one_line

LONGEST = 200
"""Characters of the input that an error repeats."""


def explained(error: click.ClickException, command: str) -> UsageError:
    """Return click's error as a UsageError; `command` is the called command, for an error that does not name it."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else command
    where, hint, code = path, f"{path} --help shows its usage", "usage.invalid_value"
    match error:
        case click.NoSuchOption():
            name = one_line(error.option_name, LONGEST)
            what, hint = f"{path} has no option {name}", _instead(error, path) or hint
            code = "usage.unknown_option"
        case click.MissingParameter(param=click.Parameter() as param):
            where = name_of(param)
            what, code = f"{where} is missing", "usage.missing_argument"
        case click.BadParameter(param=click.Parameter() as param):
            where = name_of(param)
            what = f"invalid {where} {error.message}"
        case click.BadOptionUsage():
            where = one_line(error.option_name, LONGEST)
            what = f"{where} {'takes no value' if 'does not take' in error.message else 'needs a value'}"
        case _:
            words = error.message.partition("extra argument")[2].partition("(")[2].removesuffix(")")
            message = error.format_message()
            code = "usage.unexpected_argument" if words else ""
            what = f'unexpected argument "{one_line(words, LONGEST)}"' if words else message[:1].lower() + message[1:]
    return UsageError(what.rstrip("."), where=where, hint=hint, code=code)


def name_of(param: click.Parameter) -> str:
    """Return the name of a parameter as it is typed: `--max-tokens`, `RUN`, or `ACTION` for one of a few words."""
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return (param.metavar or param.name or "argument").strip("[].").upper()


def _instead(error: click.NoSuchOption, path: str) -> str:
    """Return a hint with the nearest option; empty for none."""
    context = error.ctx
    options = [option for param in context.command.params for option in param.opts] if context else ()
    bare = {option.lstrip("-"): option for option in options if option.startswith("--")}
    close = [bare[name] for name in nearest_of(error.option_name.lstrip("-"), bare, cutoff=0.6, count=2)]
    near = f"did you mean {', '.join(close)}?" if close else ""
    if context is not None and context.info_name in ("run", "bg"):
        name = one_line(error.option_name, LONGEST)
        return f'{near} put a task that begins with "-" after "--": {path} PRESET -- "{name} …"'.strip()
    return near
