"""The attention and mask functions that models of transformers are given: they hand over to whoever runs the model.

transformers lets a model's attention be exchanged by name. Under our name no mask is built: the mask function gives out a
mark in place of each mask, and the attention function finds on the mark which mask it would have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol

import torch

NAME: Final = "headway_paged"
MaskFunction = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


class Attending(Protocol):
    """Answers the calls of one forward pass, in their order."""

    def mask(self, visible: MaskFunction) -> torch.Tensor:
        """The mark for a mask. `visible(batch, head, query, key)` tells what the mask would show, on index tensors."""

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, options: dict[str, Any]
    ) -> torch.Tensor:
        """query [1, H, T, D], key [1, K, T, D], value [1, K, T, V] -> [1, T, H, V]. `options` are the keywords that the
        model passes."""


_current: ContextVar[Attending] = ContextVar("attending")


@contextmanager
def attending(runner: Attending) -> Iterator[None]:
    """Within, calls of this thread's models go to `runner`."""
    token = _current.set(runner)
    try:
        yield
    finally:
        _current.reset(token)


def register() -> None:
    """Make the functions known to transformers. Again does no harm."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, _mask)


def _attention(
    module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    attention_mask: torch.Tensor | None, **options: Any,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    return _current.get().attend(query, key, value, attention_mask, options), None


def _mask(*, mask_function: MaskFunction, **_: Any) -> torch.Tensor:
    return _current.get().mask(mask_function)
