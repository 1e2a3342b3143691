"""Two calm themes; colour is kept for the state of runs and for what has the keys."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="subdeck-dark",
    primary="#6cb6c9",
    secondary="#8aa0b4",
    accent="#c9a86c",
    warning="#d9a657",
    error="#e0716c",
    success="#86b97a",
    foreground="#d5d9de",
    background="#14171b",
    surface="#1a1e23",
    panel="#22272e",
    variables={"border": "#6cb6c9", "border-blurred": "#353c45"},
)
LIGHT = Theme(
    name="subdeck-light",
    primary="#1f7a8c",
    secondary="#53687c",
    accent="#8a6a1f",
    warning="#9a6700",
    error="#b3322c",
    success="#2f7d32",
    foreground="#1f2328",
    background="#fbfbfa",
    surface="#f1f2f2",
    panel="#e6e8ea",
    dark=False,
    variables={"border": "#1f7a8c", "border-blurred": "#c4cad0"},
)
