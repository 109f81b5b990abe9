"""The process groups of one rank: torch.distributed's, made for this model and closed with it, beside whatever a program has of its own."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import PrefixStore, ProcessGroupGloo, Store, Work

from headway.distributed.rank_place import RankPlace

JOIN_SECONDS: Final = 300.0
_JOIN: Final = timedelta(seconds=JOIN_SECONDS)


@dataclass(frozen=True, slots=True)
class Meeting:
    """Where ranks find each other: the store's address, and the address by which the others reach this rank. An operation may
    take twice `timeout_seconds`, so that a silence is noticed first and the right rank blamed; coming together JOIN_SECONDS, since some
    ranks have more to read before that than others."""

    store_host: str
    store_port: int
    own_host: str
    timeout_seconds: float


class PeerLostError(RuntimeError):
    """An operation ended because another rank is gone, or did not come in time; which one, it cannot tell."""


class ProcessGroups:
    """All ranks of a model, and those of one stage, which add up what each has a part of.

    Operations block until all that take part have come, and raise PeerLostError when one does not. One thread uses it, and all ranks call
    the same operations in the same order.
    """

    def __init__(self, place: RankPlace, meeting: Meeting, store: Store | None = None):
        """Meets the others. `store`: that of rank 0, which is the first to be there."""
        self.place = place
        self._store = store or TCPStore(meeting.store_host, meeting.store_port, None, False, _JOIN, wait_for_workers=False)
        self._world = _group("world", self._store, place.rank, place.world, meeting)
        self._stage = (
            _group(f"stage{place.stage}", self._store, place.part, place.tensor, meeting) if place.tensor > 1 else None
        )

    def summed(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of the `x` of all ranks of the stage, in the memory of `x`."""
        if self._stage is not None:
            x = x.contiguous()
            _done(self._stage.allreduce([x]))
        return x

    def send(self, x: torch.Tensor, rank: int) -> None:
        """`x`, contiguous, to a rank that receives."""
        _done(self._world.send([x], rank, 0))

    def receive(self, out: torch.Tensor, rank: int) -> torch.Tensor:
        """Fills `out` with what a rank sends."""
        _done(self._world.recv([out], rank, 0))
        return out

    def close(self) -> None:
        """Break the connections, so that others that wait for this rank hear of it."""
        for group in (self._stage, self._world):
            if group is not None:
                with contextlib.suppress(RuntimeError):
                    group.abort()
        self._stage = None
        del self._world, self._store


def _done(work: Work) -> None:
    try:
        work.wait()
    except RuntimeError as error:
        raise PeerLostError(str(error)) from None


def _group(name: str, store: Store, rank: int, size: int, meeting: Meeting) -> Any:  # a group of gloo, of whose operations the types do not tell
    gloo: Any = ProcessGroupGloo
    options = gloo._Options()
    options._timeout = _JOIN
    options._devices = [gloo.create_device(hostname=meeting.own_host)]
    group = gloo(PrefixStore(name, store), rank, size, options)
    group._set_default_timeout(timedelta(seconds=2 * meeting.timeout_seconds))
    return group


def open_store(host: str, port: int) -> TCPStore:
    """The store of rank 0; port 0 = a free one (`store.port`)."""
    return TCPStore(host, port, None, True, _JOIN, wait_for_workers=False)


