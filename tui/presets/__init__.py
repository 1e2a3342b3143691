"""Presets as the operator sees and edits them."""
