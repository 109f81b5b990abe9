"""A rank's own DecoderConfig: the sizes of its share."""

from __future__ import annotations

from dataclasses import replace

from headway.distributed.rank_place import RankPlace
from headway.errors import ConfigError
from headway.models.decoder_config import DecoderConfig


def check_divisible(config: DecoderConfig, tensor: int, name: str) -> None:
    """Raises ConfigError (`cannot_divide`) unless `tensor` ranks can have equal shares, with the sizes for which they can."""
    if tensor == 1:
        return
    fitting = [str(size) for size in range(1, config.num_heads + 1) if not _obstacles(config, size)]
    obstacles = _obstacles(config, tensor)
    if obstacles:
        raise ConfigError(
            f"{name} cannot be divided among {tensor} tensor parallel ranks: {'; '.join(obstacles)}",
            reason="cannot_divide", param="tensor_parallel_size",
            fix=f"Use one of {', '.join(fitting)}; it need not be a power of two. Or divide by layers: --pipeline-parallel-size.",
        )  # fmt: skip


def _obstacles(config: DecoderConfig, tensor: int) -> list[str]:
    found = []
    if config.num_heads % tensor:
        found.append(f"Total number of attention heads ({config.num_heads}) must be divisible by tensor parallel size ({tensor})")
    if config.num_kv_heads % tensor and tensor % config.num_kv_heads:
        found.append(f"{config.num_kv_heads} key-value heads can neither be divided by {tensor} nor repeated evenly")
    widths = {"feed-forward": config.intermediate_size if not all(config.layer_sparse) else 0}
    if config.experts is not None:
        widths["experts'"] = config.experts.intermediate_size
    found += [f"the {what} width ({width}) does not divide by {tensor}" for what, width in widths.items() if width % tensor]
    return found


def kv_heads(config: DecoderConfig, place: RankPlace) -> range:
    """Which key-value heads a rank has: its share, or, where there are fewer than ranks, the one that its query heads read."""
    if config.num_kv_heads % place.tensor == 0:
        return place.share(config.num_kv_heads)
    head = place.part * config.num_kv_heads // place.tensor
    return range(head, head + 1)


def kv_repeats(config: DecoderConfig, place: RankPlace) -> int:
    """On how many ranks each key-value head is."""
    return max(1, place.tensor // config.num_kv_heads)


def divided_config(config: DecoderConfig, place: RankPlace, layers: range) -> DecoderConfig:
    """`config` of the whole model, checked by `check_divisible`; `layers` are those of the rank's stage."""
    experts = config.experts
    return replace(
        config,
        vocab_size=len(place.uneven_share(config.vocab_size)),
        intermediate_size=config.intermediate_size // place.tensor,
        num_layers=len(layers),
        num_heads=config.num_heads // place.tensor,
        num_kv_heads=len(kv_heads(config, place)),
        layer_ropes=config.layer_ropes[layers.start : layers.stop],
        layer_windows=config.layer_windows[layers.start : layers.stop],
        experts=None if experts is None else replace(
            experts, intermediate_size=experts.intermediate_size // place.tensor, sparse=experts.sparse[layers.start : layers.stop]
        ),
    )  # fmt: skip
