"""The certificates for a cluster's scheduler: the files that `hosts.tls` names."""

from __future__ import annotations

import os

from ..errors import RunnerUnavailable
from ..text.plain import one_line
from ..text.shell import shell_word
from .effective_hosts import tls_paths
from .host_settings import TlsFiles, is_loopback

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
