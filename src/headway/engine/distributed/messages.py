"""What rank 0 and the other ranks tell each other."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import torch

from headway.kernels.batch import ForwardBatch


class Hello(msgspec.Struct, tag=True, frozen=True):
    """A rank that has connected. `state` and so on follow in Beats."""

    rank: int
    host: str
    pid: int


class Task(msgspec.Struct, tag=True, frozen=True):
    """What a rank is to load. `config`: fields of EngineConfig that differ from their defaults; `max_model_len`: the length for which rank 0
    planned. `own_host`: where the other ranks reach this one."""

    config: dict[str, Any]
    max_model_len: int
    tensor: int
    pipeline: int
    store_host: str
    store_port: int
    own_host: str


class Beat(msgspec.Struct, tag=True, frozen=True):
    """A sign of life, in both directions."""

    state: str = ""


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The last word of a rank that cannot go on. `lost`: because it lost another one, which is the one that failed."""

    why: str
    lost: bool = False


class Reserve(msgspec.Struct, tag=True, frozen=True):
    """Make the KV cache. `dtype`: a name in torch."""

    num_blocks: int
    block_size: int
    dtype: str


class Forward(msgspec.Struct, tag=True, frozen=True):
    """Run a batch: the fields of ForwardBatch as the bytes of their arrays."""

    token_ids: bytes
    positions: bytes
    slots: bytes
    query_lens: bytes
    context_lens: bytes
    block_tables: bytes
    table_width: int
    logits_rows: bytes


class Logits(msgspec.Struct, tag=True, frozen=True):
    """Compute the logits of rows [start, stop) of the last hidden states; the ranks of the last stage send theirs to rank 0."""

    start: int
    stop: int


class GivenLogits(msgspec.Struct, tag=True, frozen=True):
    """The same for hidden states [rows, hidden] that rank 0 sends."""

    rows: int


class Clear(msgspec.Struct, tag=True, frozen=True):
    """Zero blocks of the KV cache."""

    blocks: list[int]


class End(msgspec.Struct, tag=True, frozen=True):
    """Exit."""


Command = Task | Reserve | Forward | Logits | GivenLogits | Clear | Beat | End
Report = Hello | Beat | Failed

_commands = msgspec.msgpack.Decoder(Command)
_reports = msgspec.msgpack.Decoder(Report)
encoded = msgspec.msgpack.Encoder().encode


def command_of(message: bytes) -> Command:
    """Raises msgspec.DecodeError for anything else."""
    return _commands.decode(message)


def report_of(message: bytes) -> Report:
    """Raises msgspec.DecodeError for anything else."""
    return _reports.decode(message)


def as_message(batch: ForwardBatch) -> Forward:
    return Forward(
        _bytes(batch.token_ids), _bytes(batch.positions), _bytes(batch.slots), batch.query_lens.tobytes(), batch.context_lens.tobytes(),
        np.ascontiguousarray(batch.block_tables).tobytes(), batch.block_tables.shape[1], _bytes(batch.logits_rows),
    )  # fmt: skip


def as_batch(message: Forward) -> ForwardBatch:
    tables = np.frombuffer(message.block_tables, np.int32)
    lens = np.frombuffer(message.query_lens, np.int32)
    return ForwardBatch(
        token_ids=_longs(message.token_ids), positions=_longs(message.positions), slots=_longs(message.slots),
        query_lens=lens.copy(), context_lens=np.frombuffer(message.context_lens, np.int32).copy(),
        block_tables=tables.reshape(len(lens), message.table_width).copy(), logits_rows=_longs(message.logits_rows),
    )  # fmt: skip


def _bytes(numbers: torch.Tensor) -> bytes:
    return numbers.contiguous().numpy().tobytes()


def _longs(raw: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.int64) if raw else torch.empty(0, dtype=torch.int64)
