"""The key that producers and consumers share: from the environment, and what each end derives from it."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from typing import Final

from headway.engine.kv_transfer.settings import KEY_VARIABLE
from headway.errors import ConfigError

NONCE_BYTES: Final = 32
_LEAST: Final = 16


def shared_key() -> bytes:
    """Empty without the variable. Raises ConfigError for one of fewer than 16 characters."""
    text = os.environ.get(KEY_VARIABLE, "")
    if text and len(text) < _LEAST:
        raise ConfigError(f"{KEY_VARIABLE} has {len(text)} characters, at least {_LEAST} are needed", param=KEY_VARIABLE, fix="Set it to a long random text, such as that of `openssl rand -hex 32`.")
    return text.encode()


def proof(key: bytes, nonces: bytes) -> bytes:
    """That the consumer has the key; worthless for other nonces."""
    return _derived(key, nonces, b"proof")


def session_key(key: bytes, nonces: bytes) -> bytes:
    """For the tags of one connection."""
    return _derived(key, nonces, b"session")


def same(a: bytes, b: bytes) -> bool:
    return hmac.compare_digest(a, b)


def is_loopback(address: str) -> bool:
    """`address` is numeric."""
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _derived(key: bytes, nonces: bytes, purpose: bytes) -> bytes:
    return hashlib.blake2b(nonces, key=hashlib.sha256(key).digest(), person=b"headway-kv", salt=purpose).digest()
