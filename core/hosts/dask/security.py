"""Who is let into a cluster: whoever has a certificate of its authority; without certificates only this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...config.host_values import TlsFiles, is_loopback
from ...config.hosts_in_force import tls_paths
from ...errors import RunnerUnavailable
from ...text.plain import one_line

if TYPE_CHECKING:
    from distributed.security import Security

KEYS_HINT = "subdeck hosts keys makes them, and says what belongs where"


def certificates(address: str, tls: TlsFiles) -> TlsFiles | None:
    """Return the paths of the certificates for a scheduler's address; None where it needs none.

    Raises RunnerUnavailable where it would be open to others, or a file is missing.
    """
    if not address.startswith("tls://"):
        if is_loopback(address):
            return None
        what = f"{one_line(address, 200)} is not encrypted: whoever reaches it could run programs on every host"
        raise RunnerUnavailable(what, where="hosts.scheduler", hint=f"use tls://, with certificates; {KEYS_HINT}")
    files = tls_paths(tls)
    for key in ("ca", "cert", "key"):
        path, where = getattr(files, key), f"hosts.tls.{key}"
        try:
            mode = os.stat(path).st_mode
        except OSError as error:
            raise RunnerUnavailable(f"{one_line(path, 500)}: {error.strerror}", where=where, hint=KEYS_HINT) from error
        if key == "key" and mode & 0o007:
            what = f"{one_line(path, 500)}: others can read it, and run programs on every host by it"
            raise RunnerUnavailable(what, where=where, hint=f"chmod 600 {one_line(path, 500)}")
    _check(files)
    return files


def _check(files: TlsFiles) -> None:
    """Raise RunnerUnavailable where they are no certificates, or not one with its key."""
    import ssl

    try:
        ssl.create_default_context(cafile=files.ca).load_cert_chain(files.cert, files.key)
    except OSError as error:  # of ssl, too
        why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        what = f"the certificates cannot be used: {one_line(str(why or error), 200)}"
        raise RunnerUnavailable(what, where=f"{files.ca}, {files.cert}, {files.key}", hint=KEYS_HINT) from error


def client_security(address: str, tls: TlsFiles) -> Security:
    """Return what a client shows and asks for. Raises RunnerUnavailable as `certificates` does."""
    from distributed.security import Security  # not for who only starts other programs

    files = certificates(address, tls)
    if files is None:
        return Security(require_encryption=False)
    return Security(require_encryption=True, tls_ca_file=files.ca, tls_client_cert=files.cert, tls_client_key=files.key)


def options(files: TlsFiles | None) -> list[str]:
    """Return the same as options of a scheduler or worker."""
    if files is None:
        return []
    return ["--tls-ca-file", files.ca, "--tls-cert", files.cert, "--tls-key", files.key]
