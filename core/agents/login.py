"""Whether an agent is logged in, judging by its files and the environment; only reads them."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ..system import files
from ..text.decoder import UNDECODABLE, decode
from ._json_lines import mapping


class LoginState(StrEnum):
    IN = "logged in"
    OUT = "not logged in"
    UNKNOWN = "login unknown"
    UNNEEDED = "needs no login"


class Login(Struct, frozen=True):
    state: LoginState
    source: str = ""
    """The variable with the key; empty for a login in a file."""
    hint: str = ""
    """How to log in; empty if no login is needed."""

    @property
    def words(self) -> str:
        """Return the state as text: `logged in (ANTHROPIC_API_KEY)`, `not logged in: run codex login`."""
        if self.source:
            return f"{self.state} ({self.source})"
        return f"{self.state}: {self.hint}" if self.hint and self.state is LoginState.OUT else str(self.state)


UNKNOWN = Login(LoginState.UNKNOWN)
LOGGED_IN = Login(LoginState.IN)


def read_json(path: str) -> dict[str, object] | None:
    """Return the object in a file; empty if the file does not exist, None if it is unreadable."""
    try:
        return mapping(decode(files.read(path)))
    except FileNotFoundError:
        return {}
    except (OSError, *UNDECODABLE):
        return None
