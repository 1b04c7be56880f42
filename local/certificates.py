"""A throw-away certificate authority and a server certificate for the services of the local stack.

Nothing is installed on the machine: programs trust the authority through environment variables alone, so the
application needs no setting and no code of its own to talk to the local services over https.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFE_DAYS = 30
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True)
class Certificates:
    """The three PEM files of one local stack.

    `authority` is also the whole trust bundle: no public authority is in it, because nothing outside the machine is
    reached.
    """

    authority: Path
    certificate: Path
    key: Path

    def environment(self) -> dict[str, str]:
        """The variables that make Python (requests, urllib, aiohttp), curl and GDAL trust the authority.

        Set them before the program starts: aiohttp reads `SSL_CERT_FILE` once, when it is imported. rasterio sets
        GDAL's own variable to the public authorities unless it is set already, so `CURL_CA_BUNDLE` alone is not heard.
        """
        names = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE", "GDAL_CURL_CA_BUNDLE")
        return dict.fromkeys(names, str(self.authority))


def create_certificates(folder: Path) -> Certificates:
    """Write a new authority and a certificate for 127.0.0.1 and localhost into `folder` (created when missing).

    The authority's own key is thrown away, so nobody can sign a second certificate with it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _sign_authority(authority_key)
    server_key = ec.generate_private_key(ec.SECP256R1())
    server = _sign_server(server_key, authority, authority_key)

    files = Certificates(folder / "authority.pem", folder / "server.pem", folder / "server-key.pem")
    files.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    files.certificate.write_bytes(server.public_bytes(serialization.Encoding.PEM))
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        server_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


def _sign_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("haste-worker local authority")
    return (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _sign_server(
    key: ec.EllipticCurvePrivateKey, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
    return (
        _builder(_name("haste-worker local services"), authority.subject, key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + timedelta(days=_LIFE_DAYS))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
