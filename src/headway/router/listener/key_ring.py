"""KeyRing: the API keys of one listener, found by digest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headway.errors import ConfigError
from headway.router.config.document.listeners import KeyBudget, Listener


@dataclass(frozen=True, slots=True)
class Key:
    """`name` is shown in metrics and spend; the key itself is kept nowhere. `models` None = all that the listener allows."""

    name: str
    named: bool = False
    models: frozenset[str] | None = None
    budget: KeyBudget | None = None


class KeyRing:
    """Keys are looked up by their SHA-256 digest: how long a look-up takes says nothing about a key."""

    def __init__(self, keys: Sequence[tuple[str, Key]] = ()) -> None:
        self._by_digest = {_digest(secret): key for secret, key in keys}
        self.keys = tuple(key for _, key in keys)

    @property
    def empty(self) -> bool:
        return not self._by_digest

    def find(self, given: Sequence[str]) -> Key | None:
        """The key of the first of `given` that is one."""
        for secret in given:
            found = self._by_digest.get(_digest(secret))
            if found is not None:
                return found
        return None


def compile_keys(listener: Listener, environment: Mapping[str, str]) -> KeyRing:
    """The unnamed `api_keys` are called `key-` and 8 digits of a digest, so that they keep their name whatever their place in the list.

    Raises ConfigError for an empty or repeated key, and for a variable that is not set.
    """
    found: list[tuple[str, Key]] = [(secret, Key(f"key-{_digest(secret).hex()[:8]}")) for secret in listener.api_keys or ()]
    for entry in listener.keys or ():
        secret = entry.key if entry.key is not None else environment.get(entry.key_env or "", "")
        if not secret:
            raise ConfigError(
                f'the API key "{entry.name}" is in the variable {entry.key_env}, which is not set', reason="key_missing",
                param=f"listeners[{listener.name}].keys", fix=f"Set {entry.key_env}, or remove the key.",
            )  # fmt: skip
        found.append((secret, Key(entry.name, True, None if entry.models is None else frozenset(entry.models), entry.budget)))
    if any(not secret.strip() for secret, _ in found):
        raise ConfigError("an API key is empty, so that everybody would have it", param=f"listeners[{listener.name}].api_keys", reason="key_missing")
    for what, values in (("API key", [_digest(secret) for secret, _ in found]), ("key name", [key.name for _, key in found])):
        if len(set(values)) < len(values):
            raise ConfigError(f"two entries have the same {what}", param=f"listeners[{listener.name}].keys", reason="key_repeated")
    return KeyRing(found)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()
