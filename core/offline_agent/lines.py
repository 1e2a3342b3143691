"""Lines of JSON on stdout, each written whole before the next."""

from __future__ import annotations

import json
import os
from typing import Any


def emit(**event: Any) -> None:
    data = memoryview(encoded(event))
    while data:
        data = data[os.write(1, data) :]


def encoded(value: dict[str, Any]) -> bytes:
    """Return one line of JSON, with its newline."""
    return f"{json.dumps(value, ensure_ascii=False, separators=(',', ':'))}\n".encode("utf-8", "replace")
