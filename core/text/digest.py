"""Short names for long texts."""

from __future__ import annotations


def hex_digest(content: bytes, digits: int) -> str:
    """Return the first so many hexadecimal digits of a text's SHA-256."""
    import hashlib  # with it comes OpenSSL, which neither a launch nor the first paint waits for

    return hashlib.sha256(content).hexdigest()[:digits]
