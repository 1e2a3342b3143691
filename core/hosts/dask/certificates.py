"""A cluster's certificates: one authority, and one certificate shared by all members.

dask checks only a certificate's authority, so separate certificates would not keep members apart. The authority's key
is never stored: no further certificate can be made, and excluding a member means creating all of them again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ...config.effective_hosts import keys_in
from ...config.host_settings import TlsFiles
from ...errors import UsageError
from ...system import files
from ...text.plain import one_line

LIFETIME = timedelta(days=3650)
"""Validity of the certificates."""
SERVER_LIFETIME = timedelta(days=800)
"""Validity of a web server's certificate: Apple's browsers accept at most 825 days."""


def make_keys(directory: str, names: Sequence[str] = ()) -> TlsFiles:
    """Write authority, certificate and key, readable by this user only; return their paths. With `names`, the
    certificate is for a web server with these names and IP addresses, otherwise for a cluster's members.

    Raises UsageError if one of them exists, OSError.
    """
    paths = keys_in(directory)
    for path in (paths.ca, paths.cert, paths.key):
        if os.path.lexists(path):
            hint = "choose another directory; or, to create new ones, remove it and all copies of it"
            raise UsageError("the file already exists and is not overwritten", where=one_line(path, 500), hint=hint)
    files.make_private_directory(directory)
    for path, content in zip((paths.ca, paths.cert, paths.key), _made(names), strict=True):
        files.write_new(path, content, durable=True)
    return paths


def _made(names: Sequence[str]) -> tuple[bytes, bytes, bytes]:
    """Return an authority's certificate, a certificate it issued, and the key of the latter, as PEM."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority, member = (
        (_name("subdeck web"), _name(names[0])) if names else (_name("subdeck hosts"), _name("subdeck host"))
    )
    purposes = (
        [ExtendedKeyUsageOID.SERVER_AUTH]
        if names
        else [
            ExtendedKeyUsageOID.SERVER_AUTH,
            ExtendedKeyUsageOID.CLIENT_AUTH,
        ]
    )
    signs_certificates = _usage(key_cert_sign=True, crl_sign=True)
    authority_certificate = (
        _begun(authority, authority, authority_key, LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs_certificates, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _begun(member, authority, key, SERVER_LIFETIME if names else LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(digital_signature=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.SubjectAlternativeName([*map(_alternative, names or ("subdeck",))]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return authority_certificate.public_bytes(pem), certificate.public_bytes(pem), secret


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # host clocks differ
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
