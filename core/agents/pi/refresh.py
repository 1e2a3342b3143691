"""Ask pi itself for its models, which takes it a second or two, and keep what it says."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence

from ... import paths
from ...errors import AgentUnavailable
from ...models.catalog import Model
from ...text.plain import one_line, plain
from .models import keep_list, list_key

TIMEOUT_S = 120

_NONE = "No models available"


def refresh_models(command: Sequence[str]) -> tuple[Model, ...]:
    """Start pi once, keep and return what it lists. Raises AgentUnavailable with what pi said instead."""
    key = list_key(command)
    models = tuple(_table(_asked(command)))
    try:
        keep_list(command, key, models)
    except OSError as error:
        raise AgentUnavailable(
            f"the list of models cannot be kept: {error.strerror}", where=paths.cache_dir(), hint="check its rights"
        ) from error
    return models


def _asked(command: Sequence[str]) -> str:
    try:
        answer = subprocess.run(
            [*command, "--list-models"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            cwd=os.path.expanduser("~"),
            env={**os.environ, "PI_SKIP_VERSION_CHECK": "1"},
        )
    except subprocess.TimeoutExpired:
        raise _refused(command, f"it said nothing for {TIMEOUT_S} seconds") from None
    except OSError as error:
        raise _refused(command, str(error.strerror)) from error
    # Which of the two has the table depends on the version, and on whether there is a terminal.
    said = plain(f"{answer.stdout.decode(errors='replace')}\n{answer.stderr.decode(errors='replace')}")
    if answer.returncode != 0 or not (_NONE in said or _HEADER.search(said)):
        raise _refused(command, one_line(said, 400) or f"it ended with exit code {answer.returncode}")
    return said


_HEADER = re.compile(r"^provider +model +.*$", re.MULTILINE)


def _table(said: str) -> Iterator[Model]:
    header = _HEADER.search(said)
    if header is None:
        return
    titles = header[0].split()
    for line in said[header.end() :].split("\n"):
        cells = line.split()
        if len(cells) == len(titles):
            row = dict(zip(titles, cells, strict=True))
            yield Model(row["provider"], row["model"], "pi", thinks=row.get("thinking") == "yes")


def _refused(command: Sequence[str], what: str) -> AgentUnavailable:
    return AgentUnavailable(
        f"pi could not list its models: {what}", where=f"{' '.join(command)} --list-models", hint="try that command"
    )
