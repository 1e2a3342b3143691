"""Sanitize untrusted text for display or editing, and decode untrusted JSON.

Every other package may import it; it imports no other part of subdeck.
"""
