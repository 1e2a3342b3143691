"""Access to a cluster: by a certificate of its authority; without certificates only from this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...config.effective_hosts import tls_paths
from ...config.host_settings import TlsFiles, is_loopback
from ...errors import RunnerUnavailable
from ...system import files
from ...text.plain import one_line
from ...text.shell import shell_word

if TYPE_CHECKING:
    from distributed.security import Security

KEYS_HINT = "create them with subdeck hosts keys"


def certificates(address: str, tls: TlsFiles) -> TlsFiles | None:
    """Return the paths of the certificates for a scheduler's address; None if it needs none.

    Raises RunnerUnavailable if the address would be open to others, or a file is missing.
    """
    if not address.startswith("tls://"):
        if is_loopback(address):
            return None
        what = f"{one_line(address, 200)} is not encrypted: anyone who can reach it can run programs on every host"
        raise RunnerUnavailable(what, where="hosts.scheduler", hint=f"use tls://, with certificates; {KEYS_HINT}")
    named = tls_paths(tls)
    for key in ("ca", "cert", "key"):
        path, where = getattr(named, key), f"hosts.tls.{key}"
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise RunnerUnavailable(f"{one_line(path, 500)}: {error.strerror}", where=where, hint=KEYS_HINT) from error
        if key == "key" and mode & 0o007:
            what = f"{one_line(path, 500)}: other users can read it and use it to run programs on every host"
            raise RunnerUnavailable(what, where=where, hint=f"chmod 600 {one_line(shell_word(path), 500)}")
    _check(named)
    return named


def _check(tls: TlsFiles) -> None:
    """Raise RunnerUnavailable if these are not a certificate and its key."""
    import ssl

    try:
        ssl.create_default_context(cafile=tls.ca).load_cert_chain(tls.cert, tls.key)
    except OSError as error:  # also ssl's errors
        why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        what = f"cannot use the certificates: {one_line(str(why or error), 200)}"
        raise RunnerUnavailable(what, where=f"{tls.ca}, {tls.cert}, {tls.key}", hint=KEYS_HINT) from error


def expiry(ca: str, cert: str) -> float:
    """Return when the first of both files expires, in seconds since 1970; 0 if unknown."""
    try:
        from cryptography import x509

        read = [x509.load_pem_x509_certificate(files.read(path)) for path in (ca, cert)]
    except (ImportError, OSError, ValueError):
        return 0.0
    return min(certificate.not_valid_after_utc.timestamp() for certificate in read)


def client_security(address: str, tls: TlsFiles) -> Security:
    """Return a client's TLS settings. Raises RunnerUnavailable as `certificates` does."""
    from distributed.security import Security  # not needed by processes that only start other programs

    shown = certificates(address, tls)
    if shown is None:
        return Security(require_encryption=False)
    return Security(require_encryption=True, tls_ca_file=shown.ca, tls_client_cert=shown.cert, tls_client_key=shown.key)


def options(tls: TlsFiles | None) -> list[str]:
    """Return the certificates as options of a scheduler or worker."""
    if tls is None:
        return []
    return ["--tls-ca-file", tls.ca, "--tls-cert", tls.cert, "--tls-key", tls.key]
