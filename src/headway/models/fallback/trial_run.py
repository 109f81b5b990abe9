"""What a transformers model asks of attention, found by running it without weights (on torch's meta device)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from headway.errors import ArtifactError
from headway.kernels.paged_kv import KVShape
from headway.models.fallback.attention import MaskFunction, attending
from headway.models.fallback.refusal import first_line, refusal

_LENGTH: Final = 8  # tokens of the trial run
_LONGEST: Final = 1 << 20  # positions over which a mask is examined

# Keywords that say nothing about attention scores, whatever their value.
_NEUTRAL: Final = frozenset({
    "dropout", "position_ids", "cache_position", "use_cache", "output_attentions", "output_hidden_states",
    "output_router_logits", "return_dict", "deterministic", "layer_idx", "training",
})  # fmt: skip
_UNDERSTOOD: Final = frozenset({"scaling", "softcap", "sliding_window", "is_causal"})
_MEANINGS: Final = {
    "s_aux": "attention sinks", "sinks": "attention sinks", "position_bias": "a bias for each distance (ALiBi and its like)",
    "indices": "sparse attention", "block_indices": "sparse attention",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """One attention of a forward pass: query heads, key heads, sizes of a key and of a value, how scores are made."""

    heads: int
    kv_heads: int
    key_size: int
    value_size: int
    window: int | None
    scale: float
    softcap: float | None


@dataclass(frozen=True, slots=True)
class AttentionNeeds:
    """The masks and attentions of a forward pass, in the order in which the model asks for them."""

    windows: tuple[int | str | None, ...]  # of the masks; a text for one that is no window, and that no layer uses
    calls: tuple[AttentionCall, ...]

    @property
    def heads(self) -> int:
        return max(call.heads for call in self.calls)

    @property
    def kv_shape(self) -> KVShape:
        """One shape for all layers: narrower keys and values are filled up with zeros, fewer heads are repeated."""
        return KVShape(
            len(self.calls),
            max(call.kv_heads for call in self.calls),
            max(max(call.key_size, call.value_size) for call in self.calls),
        )

    @property
    def call_windows(self) -> frozenset[int | None]:
        return frozenset(call.window for call in self.calls)


def mark(window: int | str | None, device: torch.device | str = "cpu") -> torch.Tensor:
    """Stands for the mask of causal attention with this window; a text says why there is no such mask. A model that
    computes with it, other than taking slices, loses the mark."""
    made = torch.zeros(1, 1, 1, 1, device=device)
    made.window = window  # type: ignore[attr-defined]
    return made


def attention_needs(model: Any, decoder: Any, context_length: int) -> AttentionNeeds:
    """Run `decoder` of a model on the meta device. Raises ArtifactError (`unsupported_architecture`) when it asks for what
    paged attention does not have."""
    recorder = _Recorder(context_length, type(model).__name__)
    tokens = torch.ones(1, _LENGTH, dtype=torch.int64, device="meta")
    positions = torch.arange(_LENGTH, device="meta")[None]
    try:
        with torch.no_grad(), attending(recorder):
            decoder(input_ids=tokens, position_ids=positions, attention_mask=torch.ones_like(tokens), use_cache=False)
    except ArtifactError:
        raise
    except Exception as error:  # code of many authors: anything may be raised
        raise refusal(recorder.name, f"its trial run fails: {type(error).__name__}: {first_line(error)}") from error
    if not recorder.calls:
        raise refusal(recorder.name, "its code in transformers does not let its attention be exchanged")
    needs = AttentionNeeds(tuple(recorder.windows), tuple(recorder.calls))
    most = needs.kv_shape.num_kv_heads
    for call in needs.calls:
        if most % call.kv_heads or call.heads % most:
            raise refusal(recorder.name, f"its layers have {call.kv_heads} and {most} key heads, which share no cache layout")
    return needs


class _Recorder:
    """Answers a trial run and writes down what was asked."""

    def __init__(self, context_length: int, name: str):
        self.name = name
        self.windows: list[int | str | None] = []
        self.calls: list[AttentionCall] = []
        self._context = min(max(context_length, 2), _LONGEST)

    def mask(self, visible: MaskFunction) -> torch.Tensor:
        try:
            window = self._window(visible)
        except Exception as error:  # a mask that depends on more than indices
            window = f"its attention mask depends on more than positions ({type(error).__name__})"
        self.windows.append(window)
        return mark(window, "meta")

    def attend(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None, options: dict[str, Any]
    ) -> torch.Tensor:
        self._check_options(options)
        if query.dim() != 4 or query.shape[0] != 1 or key.shape[:3] != value.shape[:3] or key.shape[2] != query.shape[2]:
            raise refusal(self.name, "it attends to more than the tokens that it is given (a cache of its own, or another input)")
        root = mask if mask is None or mask._base is None else mask._base  # a slice of a mask is the mask of these tokens
        window = getattr(root, "window", "it changes the attention mask, or attends without one")
        if isinstance(window, str):  # masks that no layer uses may be anything
            raise refusal(self.name, window)
        heads, kv_heads = query.shape[1], key.shape[1]
        if heads % kv_heads or query.shape[3] != key.shape[3]:
            raise refusal(self.name, f"it has {heads} query heads of {query.shape[3]} and {kv_heads} key heads of {key.shape[3]}")
        scale = options.get("scaling")
        scale = query.shape[3] ** -0.5 if scale is None else float(scale)
        self.calls.append(
            AttentionCall(heads, kv_heads, key.shape[3], value.shape[3], window, scale, options.get("softcap"))
        )
        return query.new_empty(1, query.shape[2], heads, value.shape[3])

    def _check_options(self, options: Mapping[str, Any]) -> None:
        for name, value in options.items():
            if name in _NEUTRAL or value is None or (value is False and name != "is_causal"):
                continue
            if name not in _UNDERSTOOD:
                raise refusal(self.name, f"its attention needs {_MEANINGS.get(name, f'the option {name!r:.60}')}")
        if options.get("is_causal") is False:
            raise refusal(self.name, "its attention also looks ahead (is_causal is false)")

    def _window(self, visible: MaskFunction) -> int | str | None:
        """The window of a mask that shows positions p - window + 1 .. p, None when it shows all up to p, else what it is."""
        length = self._context
        keys = torch.arange(length)
        nothing = torch.zeros((), dtype=torch.int64)

        def row(query: int) -> torch.Tensor:
            return torch.as_tensor(visible(nothing, nothing, torch.tensor(query), keys)).expand(length)

        window = int(row(length - 1).sum())
        for query in sorted({0, 1, length // 7, length // 3, length // 2, length - 2, length - 1}):
            if not torch.equal(row(query), (keys <= query) & (keys > query - window)):
                return "its attention mask is neither causal nor a window over the last positions"
        return None if window == length else window
