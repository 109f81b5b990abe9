"""While a program is recorded nothing may compute but native kernels: what torch computes then is computed once and never again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_VIEWS: Final = frozenset(
    f"aten::{name}" for name in (
        "alias", "as_strided", "chunk", "detach", "expand", "flatten", "narrow", "permute", "reshape", "select", "slice", "split",
        "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unflatten", "unsqueeze", "view", "_unsafe_view",
    )
)  # fmt: skip


class NotRecordable(Exception):
    """The forward pass computes something that is no native kernel."""


class ViewsOnly(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, an operator of torch that is no view raises NotRecordable."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nobody compiles what is in here. Torch would import its compiler only to keep it out: 63 MB, and seconds of every start."""
        return False

    def __torch_dispatch__(self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        call: Callable[..., Any] = func
        if func.name().partition(".")[0] not in _VIEWS:
            raise NotRecordable(func.name())
        result = call(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() != args[0].untyped_storage().data_ptr():
            raise NotRecordable(f"{func.name()} that copies")  # reshape and flatten of what is strided
        return result
