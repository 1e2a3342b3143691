"""Telling the operator what happened: on the screen, and again later."""
