"""Worker: makes a certificate that signs itself, on P-256, for the servers that speak TLS.

Parameters: folder, where `chain.pem` and `key.pem` are put.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.common import worker
from benchmarks.tasklet_io.workers import CHAIN, HOST, KEY

VALID = dt.timedelta(days=1)


def make(folder: Path) -> None:
    """Write a certificate for HOST and its key into `folder`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / CHAIN).write_bytes(certificate.public_bytes(pem))
    (folder / KEY).write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def main() -> None:
    """Make one and end."""
    parameters = worker.begin()
    make(Path(parameters["folder"]))
    worker.finish(parameters, {})


if __name__ == "__main__":
    main()
