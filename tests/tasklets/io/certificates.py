"""Certificates of an authority of the tests' own: good ones, an expired one, a foreign one."""

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Certificates:
    """PEM files; those of servers and clients have the key with the certificate."""

    authority: Path
    localhost: Path
    other: Path  # for other.test
    expired: Path
    foreign: Path  # for localhost, of an authority that nobody knows


class Authority:
    """One that signs for as long as it is told."""

    def __init__(self, name: str) -> None:
        now = dt.datetime.now(dt.UTC)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usage = dict.fromkeys(
            (
                "content_commitment",
                "key_encipherment",
                "data_encipherment",
                "key_agreement",
                "encipher_only",
                "decipher_only",
                "digital_signature",
            ),
            False,
        )
        self.certificate = (
            x509.CertificateBuilder(self.name, self.name, self.key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 9 * DAY)
            .not_valid_after(now + 9 * DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), critical=True)
            .add_extension(self._identifier(), critical=False)
            .sign(self.key, hashes.SHA256())
        )

    def _identifier(self) -> x509.SubjectKeyIdentifier:
        return x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())

    def write(self, path: Path) -> Path:
        """Write the authority's own certificate."""
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def sign(self, path: Path, host: str, *, ended: dt.timedelta = -5 * DAY) -> Path:
        """Write a new certificate and its key; ended: so long ago."""
        now = dt.datetime.now(dt.UTC)
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(self._identifier())
        certificate = (
            x509.CertificateBuilder(
                self.name,
                x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]),
                key.public_key(),
            )
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 6 * DAY)
            .not_valid_after(now - ended)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(issuer, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
            + certificate.public_bytes(serialization.Encoding.PEM)
        )
        return path


def make(folder: Path) -> Certificates:
    """Write new ones into a folder."""
    ours, theirs = Authority("authority of the tests"), Authority("somebody else")
    return Certificates(
        authority=ours.write(folder / "authority.pem"),
        localhost=ours.sign(folder / "localhost.pem", "localhost"),
        other=ours.sign(folder / "other.pem", "other.test"),
        expired=ours.sign(folder / "expired.pem", "localhost", ended=DAY),
        foreign=theirs.sign(folder / "foreign.pem", "localhost"),
    )
