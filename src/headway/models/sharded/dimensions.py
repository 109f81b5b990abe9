"""Which part of a dimension a rank has, by the name that weight tables give the dimension."""

from __future__ import annotations

from headway.artifacts.sliced_tensor import Ranges
from headway.distributed.rank_place import RankPlace
from headway.models.decoder_config import DecoderConfig
from headway.models.sharded.divided_config import kv_heads


def kept_of(dimension: str, size: int, config: DecoderConfig, place: RankPlace, *, grouped: bool = False) -> Ranges:
    """The entries of a dimension of `size` that a rank reads, in their order. `grouped`: the queries of each key-value head lie before its
    key and its value, instead of all queries before all keys."""
    head = config.head_dim
    queries, keys = place.share(config.num_heads), kv_heads(config, place)
    if dimension == "vocab":
        return (place.uneven_share(size),)
    if dimension == "heads":
        return (queries,)
    if dimension == "kv_heads":
        return (keys,)
    if dimension == "q":
        return (_scaled(queries, head),)
    if dimension == "kv":
        return (_scaled(keys, head),)
    if dimension == "qkv":
        return _grouped(config, queries, keys) if grouped else _fused(config, queries, keys)
    if dimension in ("ffn", "expert_ffn"):
        return (place.share(size),)
    if dimension in ("gate_up", "expert_gate_up"):
        gate = place.share(size // 2)
        return gate, _moved(gate, size // 2)
    return (range(size),)


def _fused(config: DecoderConfig, queries: range, keys: range) -> Ranges:
    head, own = config.head_dim, _scaled(keys, config.head_dim)
    first_key = config.num_heads * head
    return _scaled(queries, head), _moved(own, first_key), _moved(own, first_key + config.num_kv_heads * head)


def _grouped(config: DecoderConfig, queries: range, keys: range) -> Ranges:
    head, shared = config.head_dim, config.num_heads // config.num_kv_heads
    width = shared + 2
    if len(queries) == len(keys) * shared:  # whole groups
        return (_scaled(range(keys.start * width, keys.stop * width), head),)
    group = keys.start
    own = range(group * width + queries.start - group * shared, group * width + queries.stop - group * shared)
    return _scaled(own, head), _scaled(range(group * width + shared, (group + 1) * width), head)


def _scaled(items: range, width: int) -> range:
    return range(items.start * width, items.stop * width)


def _moved(items: range, by: int) -> range:
    return range(items.start + by, items.stop + by)
