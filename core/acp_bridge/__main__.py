"""Send a task to an agent; every message of the agent goes to stdout unchanged, one per line.

`python -P -E -m subdeck.core.acp_bridge [NAME=VALUE…] -- PROGRAM [ARG…]`; the names are in `_wishes.py`.

stdin is the task. With `task=lines` it has lines of JSON instead: `{"prompt": [TEXT, …]}`, `{"cancel": true}`, and
`{"reply": {"id": ID, "answer": ANSWER}}` to the agent's request: an option, the content of a form, or null.

`{"bridge":"ready"}` on stdout means that it waits for the first line, `{"bridge":"reopened"}` that a new session
replaces the continued one; the end of stdin ends the session.
"""

from __future__ import annotations

import json
import os
import sys
from subprocess import PIPE, Popen

from ._handshake import CHUNK, Handshake, Refused, end, write_out
from ._options import OptionError, choose
from ._session_options import Wishes

_READY = b'{"bridge":"ready"}\n'


def main() -> int:
    """Return the exit code: 0 if the agent answered, even with an error in its messages."""
    end_of_wishes = sys.argv.index("--")
    wishes, command = Wishes(sys.argv[1:end_of_wishes]), sys.argv[end_of_wishes + 1 :]
    try:
        agent = Popen(command, stdin=PIPE, stdout=PIPE, bufsize=0)
    except OSError as error:
        return _failed(f"cannot start {command[0]}: {error.strerror}")
    try:
        try:
            return _put(wishes, agent)
        finally:
            end(agent)  # writes the agent's last output before the error
    except (Refused, OptionError) as error:
        return _failed(str(error))
    except ConnectionError:
        return _failed(f"{command[0]} ended with exit code {agent.returncode}")


def _failed(why: str) -> int:
    print(f"Error: {why}", file=sys.stderr)
    return 1


def _put(wishes: Wishes, agent: Popen[bytes]) -> int:
    """Open a session and begin its first turn without the SDK, then load the SDK while the agent works: loading takes
    as long as an agent's start. Raises Refused, OptionError, and ConnectionError if the agent has exited.
    """
    opening = Handshake(agent)
    opening.begin(wishes.servers, wishes.resume, fills_forms=wishes.talks, reopens=bool(wishes.earlier))
    for category, value in (("mode", wishes.mode), ("model", wishes.model), ("thought_level", wishes.thinking)):
        if value:
            choose(opening, category, value)
    if not wishes.has_task:
        return 0
    first_input = b""
    if wishes.talks:
        write_out(_READY)
        first_input = _first_line()
        if texts := _prompt_in(first_input):
            opening.prompt([wishes.whole(texts[0], is_reopened=opening.is_reopened), *texts[1:]])
    else:
        task = sys.stdin.buffer.read().decode("utf-8", "replace")
        opening.prompt([wishes.whole(task, is_reopened=opening.is_reopened)])

    from ._sdk import prepare

    prepare()
    import asyncio

    from ._session import go_on

    asyncio.run(go_on(wishes, agent, opening, first_input))
    return 0


def _first_line() -> bytes:
    """Return stdin up to the end of its first line or its close, and possibly more."""
    first_input = b""
    while b"\n" not in first_input and (data := os.read(0, CHUNK)):
        first_input += data
    return first_input


def _prompt_in(first_input: bytes) -> list[str]:
    """Return the prompt's texts from the first line; empty if it is another kind of line."""
    match json.loads(first_input.partition(b"\n")[0] or b"null"):
        case {"prompt": [*texts]}:
            return texts
        case _:
            return []


if __name__ == "__main__":
    sys.exit(main())
