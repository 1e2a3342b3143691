"""An agent of the Agent Client Protocol that plays a recording: `python acp_player.py STDOUT.jsonl`.

It repeats the recorded agent's output, and waits wherever the recorded agent received input. Ids are those of the
present client.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _next(wanted: str) -> dict[str, Any]:
    """Return the client's next message of this method; the next reply if the method is empty."""
    for line in sys.stdin:
        message: dict[str, Any] = json.loads(line)
        if message.get("method", "") == wanted:
            return message
    sys.exit(0)


def main() -> None:
    ids: dict[object, object] = {}
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        message: dict[str, Any] = json.loads(line)
        if "sent" in message:
            sent = message["sent"]
            ids[sent.get("id")] = _next(sent.get("method", "")).get("id")
        elif "bridge" not in message:
            if "method" not in message:
                message["id"] = ids.get(message.get("id"), message.get("id"))
            print(json.dumps(message), flush=True)
    for _ in sys.stdin:
        pass


if __name__ == "__main__":
    main()
