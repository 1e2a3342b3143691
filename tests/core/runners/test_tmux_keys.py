"""The keys out of a pane, as a tmux server reports them."""

from __future__ import annotations

import pytest
from subdeck.core.runners.tmux import in_words, keys_to, through

DETACH = "bind-key    -T prefix       d                    detach-client"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((DETACH,), ("C-a", "d")),
        (("bind-key -r -T prefix M-x detach-client",), ("C-a", "M-x")),
        (("bind-key -T root F12 detach-client", DETACH), ("C-a", "d")),
        (("bind-key -T root F12 detach-client",), ("F12",)),
        (("bind-key -T copy-mode q detach-client",), ("C-a", "d")),
        ((DETACH, "bind-key -T prefix D detach-client -P"), ("C-a", "d")),
        (("bind-key -T prefix Q detach-client", DETACH), ("C-a", "d")),
        ((r"bind-key -T prefix \; detach-client",), ("C-a", ";")),
        (("bind-key -T prefix ' select-window", "unreadable", "bind-key"), ("C-a", "d")),
    ],
)
def test_keys_to_a_command(lines: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A bound key counts, the usual one first; without a binding or with unreadable lines the usual one is kept."""
    assert expected == keys_to("detach-client", ["C-a", *lines], usual="d")


def test_a_server_that_says_nothing() -> None:
    """Without an answer tmux's default keys are used."""
    assert ("C-b", "d") == keys_to("detach-client", [], usual="d")


def test_through_another_server() -> None:
    """The same prefix is sent through the outer server first; another one passes unchanged."""
    outer = ["C-b", "bind-key -T prefix s send-prefix"]
    assert ("C-b", "s", "d") == through(outer, ("C-b", "d"))
    assert ("C-a", "d") == through(outer, ("C-a", "d"))
    assert ("F12",) == through(outer, ("F12",))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("C-b", "ctrl+b"),
        ("M-x", "alt+x"),
        ("C-M-x", "ctrl+alt+x"),
        ("d", "d"),
        ("F12", "F12"),
        ("-", "-"),
        ("C--", "C--"),
    ],
)
def test_keys_in_words(key: str, expected: str) -> None:
    """Keys are written as people write them; an unknown one stays unchanged."""
    assert expected == in_words(key)
