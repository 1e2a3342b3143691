"""Which provider pi takes when it is told no model."""

from __future__ import annotations

import os
from typing import Any

import msgspec
from msgspec import Struct

from ... import paths


class _Settings(Struct, rename="camel"):
    default_provider: Any = None


def default_provider(cwd: str) -> str:
    """Read it from pi's settings, those of the directory before the user's; "" where none is set."""
    for path in (os.path.join(cwd, ".pi", "settings.json"), os.path.join(paths.agent_dir(), "settings.json")):
        try:
            with open(path, "rb") as file:
                provider = msgspec.json.decode(file.read(), type=_Settings).default_provider
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(provider, str) and provider:
            return provider
    return ""
