"""RankPlace: which share of a model a rank computes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Rank = stage * tensor + part. A stage is a group of layers; its ranks have a part of every layer each."""

    rank: int
    tensor: int  # parts of every layer
    pipeline: int  # stages

    @property
    def world(self) -> int:
        return self.tensor * self.pipeline

    @property
    def part(self) -> int:
        return self.rank % self.tensor

    @property
    def stage(self) -> int:
        return self.rank // self.tensor

    @property
    def is_first(self) -> bool:
        """Whether tokens enter here."""
        return self.stage == 0

    @property
    def is_last(self) -> bool:
        """Whether hidden states leave here."""
        return self.stage == self.pipeline - 1

    @property
    def stage_ranks(self) -> tuple[int, ...]:
        """All ranks of this one's stage."""
        return tuple(range(self.stage * self.tensor, (self.stage + 1) * self.tensor))

    @property
    def last_ranks(self) -> tuple[int, ...]:
        """All ranks of the last stage."""
        return tuple(range(self.world - self.tensor, self.world))

    def share(self, size: int) -> range:
        """Which of `size` equal things are this part's. Raises ValueError unless they divide."""
        if size % self.tensor:
            raise ValueError(f"{size} cannot be divided by {self.tensor}")
        each = size // self.tensor
        return range(self.part * each, (self.part + 1) * each)

    def uneven_share(self, size: int) -> range:
        """The same where the last parts may have fewer."""
        return self.share_of(self.rank, size)

    def share_of(self, rank: int, size: int) -> range:
        """The uneven share of another rank."""
        each, part = -(-size // self.tensor), rank % self.tensor
        return range(min(part * each, size), min((part + 1) * each, size))


def stage_layers(layers: int, stages: int, partition: tuple[int, ...] | None = None) -> tuple[range, ...]:
    """The layers of every stage: as even as possible, the longer stages in the middle, since the ends also have embedding and head.

    `partition` says how many each has. Raises ValueError for one that does not fit, or for more stages than layers.
    """
    if stages > layers:
        raise ValueError(f"{layers} layers cannot be divided into {stages} stages")
    counts = list(partition or ())
    if not counts:
        counts, extra = [layers // stages] * stages, layers % stages
        order = sorted(range(stages), key=lambda stage: abs(2 * stage - (stages - 1)))
        for stage in order[:extra]:
            counts[stage] += 1
    if len(counts) != stages or sum(counts) != layers or min(counts) < 1:
        raise ValueError(f"{','.join(map(str, counts))} is no partition of {layers} layers into {stages} stages")
    starts = [sum(counts[:stage]) for stage in range(stages)]
    return tuple(range(start, start + count) for start, count in zip(starts, counts, strict=True))
