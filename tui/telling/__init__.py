"""Telling the operator what happened: on the screen, beside it, and again later."""
