"""An agent of the Agent Client Protocol that plays a recording: `python acp_player.py STDOUT.jsonl`.

It says what the recorded agent said, and waits wherever that was sent something. Ids are those of the client at hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _next(wanted: str) -> dict[str, Any]:
    """Return what the client sends next of this method; of an answer where that is empty."""
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
