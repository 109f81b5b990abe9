"""The key with which the processes of a launch recognize each other."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headway.errors import ConfigError

VARIABLE: Final = "HEADWAY_CLUSTER_KEY"
LEAST_CHARACTERS: Final = 16


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """`secret`: 32 bytes. Not `is_secret`: it follows from what everybody may know, and only keeps launches apart that
    meet by accident."""

    secret: bytes = field(repr=False)
    is_secret: bool


def cluster_key(master_port: int, environment: Mapping[str, str] = os.environ) -> ClusterKey:
    """From HEADWAY_CLUSTER_KEY, else from the port. Raises ConfigError (`key_too_short`)."""
    text = environment.get(VARIABLE, "").strip()
    if text and len(text) < LEAST_CHARACTERS:
        raise ConfigError(
            f"{VARIABLE} has {len(text)} characters, at least {LEAST_CHARACTERS} are needed", reason="key_too_short", param=VARIABLE,
            fix="Take a random one, the same on all nodes: `openssl rand -hex 32`.",
        )  # fmt: skip
    material = text if text else f"port {master_port}"
    return ClusterKey(hashlib.sha256(f"headway cluster: {material}".encode()).digest(), bool(text))
