"""Loading the weights of a transformers model from local safetensors files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from headway.artifacts.card import ModelCard, TensorInfo
from headway.errors import ArtifactError
from headway.models.checkpoint_tensors import IGNORABLE, refuse_missing, refuse_shapes, refuse_unexpected
from headway.models.fallback.attention import NAME
from headway.models.fallback.refusal import first_line
from headway.models.fallback.transformers_class import FallbackClass
from headway.models.fill import Progress
from headway.models.unpacking_log import log_unpacked
from headway.quantization.logical_card import packed_weights
from headway.quantization.packed_weight import PackedTensor
from headway.quantization.supported import READABLE
from headway.quantization.weight_reader import WeightReader
from headway.quantization.zero_biases import without_zero_biases

_FIX: Final = "Download the model again, or check that config.json belongs to these weights."


def load_weights(card: ModelCard, chosen: FallbackClass, dtype: torch.dtype, progress: Progress) -> Any:
    """The model with its weights in `dtype`. `card` is a logical card; its packed weights are unpacked here, and transformers sees plain
    ones. `progress` gets checkpoint bytes, in proportion to the parameters loaded.

    Raises ArtifactError: `missing_tensor`, `tensor_shape`, `unexpected_tensor`, `weights_unreadable`, those of WeightReader.
    """
    unpacked = _unpacked(card, dtype)
    with heard_progress(progress, card.weight_bytes):
        try:
            model, found = chosen.model_class.from_pretrained(
                str(card.path) if unpacked is None else None, config=chosen.config, state_dict=unpacked, dtype=dtype,
                attn_implementation=NAME, local_files_only=True, use_safetensors=True, trust_remote_code=False, output_loading_info=True,
                ignore_mismatched_sizes=True,
            )  # fmt: skip
        except Exception as error:  # code of many authors: anything may be raised
            raise ArtifactError(
                f"transformers cannot load {chosen.architecture} from {card.path}: {first_line(error)}", reason="weights_unreadable",
                param=str(card.path), fix=_FIX,
            ) from error  # fmt: skip
    _check(card, found)
    return model.eval()


def _unpacked(card: ModelCard, dtype: torch.dtype) -> dict[str, torch.Tensor] | None:
    """All weights, where some are packed; None where transformers can read the files itself."""
    packed = packed_weights(card)
    if not packed:
        return None
    log_unpacked(packed, dtype)
    with WeightReader(card) as reader:
        return {name: reader.tensor(name, dtype) for name, each in card.tensors.items() if not _is_unneeded(each)}


def _is_unneeded(tensor: TensorInfo) -> bool:
    """Numbers of positions and the like, in types that no weight has."""
    readable = tensor.dtype in READABLE or isinstance(tensor, PackedTensor)
    return not readable and any(pattern.search(tensor.name) for pattern, _ in IGNORABLE)


def _check(card: ModelCard, found: dict[str, Any]) -> None:
    """transformers fills what is missing with random numbers and goes on; here it is an error."""
    extra = set(found["unexpected_keys"])
    without = without_zero_biases(card, card.tensors.keys() - extra)
    refuse_missing(card, sorted(found["missing_keys"]))
    refuse_shapes(card, [(name, tuple(stored), tuple(wanted)) for name, stored, wanted in sorted(found["mismatched_keys"])])
    refuse_unexpected(card, sorted(extra - (card.tensors.keys() - without.tensors.keys())))


@contextmanager
def heard_progress(progress: Progress, total: int) -> Iterator[None]:
    """Hear of transformers' progress bars while weights are loaded, instead of showing them."""
    from transformers.utils import logging as hf_logging

    def bar(_: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        items = arguments[0] if arguments else options.get("iterable")
        return items if items is None or not hasattr(items, "__len__") else _Counted(items, progress, total)

    previous = hf_logging.set_tqdm_hook(bar)
    try:
        yield
    finally:
        hf_logging.set_tqdm_hook(previous)
    progress(total, total)


class _Counted:
    """An iterable that tells how far it has come."""

    def __init__(self, items: Any, progress: Progress, total: int):
        self._items, self._progress, self._total = items, progress, total

    def __iter__(self) -> Iterator[Any]:
        for done, item in enumerate(self._items):
            yield item
            self._progress(self._total * (done + 1) // len(self._items), self._total)

    def __len__(self) -> int:
        return len(self._items)

    def __getattr__(self, name: str) -> Callable[..., Iterable[Any] | None]:
        return lambda *_, **__: None  # set_postfix and the like
