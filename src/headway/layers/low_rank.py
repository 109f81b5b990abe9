"""Low-rank updates of linear layers (LoRA): for some rows of a batch a layer computes y = x W^T + b + (x A^T) B^T."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch

from headway.kernels.interface import Activation, Kernels, PackedLinear

Rows = slice | torch.Tensor  # neighbours, or int64 [n]


class LowRankUpdate:
    """The update of one layer: `down` A [R, in] and `up` B [out, R], in one dtype, the scaling in B. The matrices of fused projections (query,
    key and value; gate and up) lie one below the other in A, and in B each in its own rows and columns, among zeros: two products for all.

    They are packed when they are first used, on the thread that computes: kernels belong to one thread.
    """

    __slots__ = ("_down", "_dtype", "_plain", "_up", "nbytes")

    _down: PackedLinear
    _up: PackedLinear

    def __init__(self, down: torch.Tensor, up: torch.Tensor):
        self._plain: tuple[torch.Tensor, torch.Tensor] | None = (down, up)
        self._dtype = down.dtype
        self.nbytes = down.nbytes + up.nbytes

    def add_to(self, out: torch.Tensor, x: torch.Tensor, rows: Rows, kernels: Kernels) -> None:
        """Add to `rows` of `out` [T, out] what they make of `x` [T, in]. Products are made in the dtype of the update."""
        if self._plain is not None:
            self._down, self._up = (kernels.pack_linear(each, None) for each in self._plain)
            self._plain = None
        if isinstance(rows, slice):
            target = out[rows]
            target.copy_(self._added(target, x[rows]))
        else:
            out.index_copy_(0, rows, self._added(out.index_select(0, rows), x.index_select(0, rows)))

    def _added(self, out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        low = self._down(x.to(self._dtype))
        if out.dtype == self._dtype:
            return self._up.add_to(out, low)
        return (out + self._up.widened(low)).to(out.dtype)


Updates = Mapping[str, LowRankUpdate]  # of one adapter, by the name of the layer
RowUpdates = Sequence[tuple[Rows, Updates]]  # of one forward pass: no row is there twice


class ActiveUpdates:
    """What the adapted layers of one model apply now. One thread at a time runs a model."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: RowUpdates = ()

    @contextmanager
    def applying(self, rows: RowUpdates) -> Iterator[None]:
        self._rows = rows
        try:
            yield
        finally:
            self._rows = ()

    def of(self, layer: str) -> list[tuple[Rows, LowRankUpdate]]:
        return [(rows, updates[layer]) for rows, updates in self._rows if layer in updates]


class AdaptedLinear:
    """A packed linear layer that applies updates while there are some, and is the layer beneath it while there are none: a forward pass
    without adapters is recorded as if nothing were adapted."""

    __slots__ = ("_active", "_beneath", "_kernels", "_name")

    def __init__(self, beneath: PackedLinear, name: str, active: ActiveUpdates, kernels: Kernels):
        self._beneath = beneath
        self._name = name
        self._active = active
        self._kernels = kernels

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return self._updated(self._beneath(x), x)

    def widened(self, x: torch.Tensor) -> torch.Tensor:
        return self._updated(self._beneath.widened(x), x)

    def activated(self, x: torch.Tensor, activation: Activation) -> torch.Tensor:
        if not self._active.of(self._name):
            return self._beneath.activated(x, activation)
        return self._kernels.activations[activation](self.widened(x)).to(x.dtype)

    def add_to(self, residual: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return self._updated(self._beneath.add_to(residual, x), x)

    def _updated(self, out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        for rows, update in self._active.of(self._name):
            update.add_to(out, x, rows, self._kernels)
        return out
