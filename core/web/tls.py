"""TLS for the reply page."""

from __future__ import annotations

import ssl

from ..errors import UsageError


def tls_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return a server's TLS settings. Raises UsageError for files that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        why = error.strerror or "not a certificate with its key"
        hint = "--cert and --key name PEM files"
        raise UsageError(f"cannot use the certificate: {why}", where=certificate, hint=hint) from error
    return context
