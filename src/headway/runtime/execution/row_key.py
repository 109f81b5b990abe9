"""RowKey: what makes two rows equal, in a few bytes however long they are."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from hashlib import blake2b
from typing import TypeAlias

from headway.runtime.row import Row

RowKey: TypeAlias = tuple[bytes, str, Hashable]
"""A digest of 128 bits over the token ids, the readout and its detail. Of one model: the model is not in it."""


def key_of(row: Row) -> RowKey:
    return blake2b(array("q", row.token_ids), digest_size=16).digest(), row.readout, row.detail
