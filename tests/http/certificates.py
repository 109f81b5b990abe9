"""Certificates for tests, made by trustme."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization


@dataclass(frozen=True)
class Pair:
    """PEM files of a certificate and its key, and of both in one file."""

    certificate: Path
    key: Path
    both: Path


class Authority:
    def __init__(self, folder: Path, name: str = "ca"):
        self._ca = trustme.CA()
        self._folder = folder
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def issue(self, name: str, not_after: datetime.datetime | None = None) -> Pair:
        made = self._ca.issue_cert("127.0.0.1", "localhost", not_after=not_after)
        pair = Pair(*(self._folder / f"{name}{end}" for end in (".pem", ".key", ".both.pem")))
        pair.certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        made.private_key_pem.write_to_path(str(pair.key))
        made.private_key_and_cert_chain_pem.write_to_path(str(pair.both))
        return pair


def encrypted(key: Path, to: Path, password: bytes = b"secret") -> Path:
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    to.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(password)
        )
    )
    return to
