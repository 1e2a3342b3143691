"""The presets that come along; they are offered where the setting `bundled_presets` says so."""

from __future__ import annotations

import os

BUNDLED = os.path.dirname(os.path.abspath(__file__))
"""The directory that holds them."""
