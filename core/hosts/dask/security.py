"""Access to a cluster: by a certificate of its authority; without certificates only from this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.certificates import certificates
from ...config.host_settings import TlsFiles
from ...system import files

if TYPE_CHECKING:
    from distributed.security import Security


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
