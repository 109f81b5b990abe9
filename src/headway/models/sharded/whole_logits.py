"""The logits of a vocabulary that is divided among the ranks of the last stage, put together at rank 0."""

from __future__ import annotations

import torch

from headway.distributed.process_groups import ProcessGroups


def send_logits(groups: ProcessGroups, own: torch.Tensor) -> None:
    """A rank of the last stage that is not rank 0: `own` float32 [N, its share]."""
    groups.send(own.contiguous(), 0)


def receive_logits(groups: ProcessGroups, vocabulary: int, rows: int, own: torch.Tensor | None) -> torch.Tensor:
    """At rank 0, float32 [rows, vocabulary]; `own` is its share where it is of the last stage."""
    out = torch.empty(rows, vocabulary)
    place = groups.place
    for rank in place.last_ranks:
        share = place.share_of(rank, vocabulary)
        if rank == place.rank:
            assert own is not None
            out[:, share.start : share.stop] = own
        elif len(share) == vocabulary:
            groups.receive(out, rank)
        else:
            out[:, share.start : share.stop] = groups.receive(torch.empty(rows, len(share)), rank)
    return out
