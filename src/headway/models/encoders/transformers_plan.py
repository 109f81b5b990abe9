"""Encoders without a table of their own here: the model class of transformers with the checkpoint's weights in it.

Slower than a native encoder: weights are not packed. Code of model repositories is never run. Before it is given out, an
encoder is tried: what fails, cuts its input, or does not see in both directions is refused with the reason.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from headway.artifacts.card import ModelCard
from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.interface import Kernels
from headway.kernels.invariant_backend import INVARIANT
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes
from headway.models.encoders.encoder import Encoder
from headway.models.encoders.transformers_encoder import TransformersEncoder
from headway.models.fallback.refusal import first_line, refusal
from headway.models.fallback.transformers_class import transformers_config
from headway.models.fallback.weights import heard_progress
from headway.models.fill import Progress
from headway.models.unpacking_log import log_unpacked
from headway.quantization.logical_card import packed_weights
from headway.quantization.supported import check_types
from headway.quantization.weight_reader import WeightReader
from headway.quantization.zero_biases import without_zero_biases

_log = logging.getLogger(__name__)
_TRIAL: Final = 8  # tokens
_SIZES: Final = ("hidden_size", "num_hidden_layers", "max_position_embeddings", "vocab_size")


@dataclass(frozen=True, slots=True)
class TransformersEncoderPlan:
    """`weights`: the name that the model is given -> tensor of the checkpoint. The two differ by a prefix that was asked for;
    other differences are known to transformers."""

    card: ModelCard
    prefix: str
    model_class: Any
    config: Any
    weights: dict[str, str]
    hidden_size: int
    num_layers: int
    max_positions: int

    @property
    def parameters(self) -> int:
        return sum(self.card.tensors[name].elements for name in self.weights.values())

    @property
    def remaining(self) -> tuple[str, ...]:
        taken = set(self.weights.values())
        return tuple(name for name in self.card.tensors if name not in taken)

    def in_int8(self) -> TransformersEncoderPlan:
        raise NotBuiltError(
            f"int8 of {_name(self.card)}, whose layers are those of transformers (the fallback)", param="dtype",
            fix="Use float32 or bfloat16, or a model that Headway runs natively.",
        )  # fmt: skip

    def load(self, dtype: torch.dtype, kernels: Kernels, progress: Progress) -> Encoder:
        """Raises ArtifactError (`unsupported_architecture`, `weights_unreadable`), NotBuiltError for kernels that promise what
        layers of transformers cannot keep."""
        name = _name(self.card)
        if kernels is INVARIANT:
            raise NotBuiltError(
                f"batch invariance of {name}, whose layers are those of transformers (the fallback)", param="batch_invariant",
                fix="Leave it out, or use a model that Headway runs natively.",
            )  # fmt: skip
        _log.warning("%s is run by transformers (the fallback), which is slower than a native implementation", name)
        log_unpacked(packed_weights(self.card), dtype)
        with WeightReader(self.card) as reader:
            tensors = {each: reader.tensor(source, dtype) for each, source in self.weights.items()}
        model, _ = model_with_weights(self.card, self.model_class, self.config, tensors, dtype, progress)
        _try(name, model, self.hidden_size, int(self.config.vocab_size))
        return TransformersEncoder(
            model, dtype, hidden_size=self.hidden_size, num_layers=self.num_layers, max_positions=self.max_positions
        )


def plan_transformers_encoder(card: ModelCard, prefix: str | None) -> TransformersEncoderPlan:
    """Raises ArtifactError (`unsupported_architecture`, `remote_code`, `invalid_model_config`, `missing_tensor`, `tensor_shape`)."""
    if card.format == "gguf":
        raise NotBuiltError("encoders from GGUF files", param="model", fix="Use the safetensors checkpoint of the model.")
    config = transformers_config(card)
    model_class = _model_class(_name(card), config)
    weights = {name.removeprefix(prefix or ""): name for name in card.tensors if name.startswith(prefix or "")}
    # A model without memory of its own, from tensors of one number each: which names it takes, and in which shapes.
    nothing = torch.zeros(1, dtype=torch.bfloat16)
    imagined = {name: nothing.expand(card.tensors[source].shape) for name, source in weights.items()}
    model, found = model_with_weights(card, model_class, config, imagined, torch.bfloat16, lambda done, total: None, device_map="meta")
    # Poolers belong to tasks: their tensors stay where heads are.
    refuse_missing(card, sorted(name for name in found["missing_keys"] if not name.startswith("pooler.")))
    refuse_shapes(card, [(name, tuple(stored), tuple(wanted)) for name, stored, wanted in sorted(found["mismatched_keys"])])
    left = found["unexpected_keys"]
    weights = {name: source for name, source in weights.items() if name not in left and "pooler." not in name}
    card = without_zero_biases(card, set(weights.values()))
    check_types(card.tensors[source] for source in weights.values())
    if prefix is None:
        usual = f"{model.base_model_prefix}."
        prefix = usual if any(name.startswith(usual) for name in weights) else ""
    return TransformersEncoderPlan(card, prefix, model_class, config, weights, *_sizes(_name(card), config, model))


def _name(card: ModelCard) -> str:
    return card.architecture or card.model_type


def _model_class(name: str, config: Any) -> Any:
    import transformers  # seconds; models that run natively never need it

    model_class = transformers.AutoModel._model_mapping.get(type(config), None)
    if isinstance(model_class, tuple):
        model_class = model_class[0]
    if model_class is None:
        raise refusal(name, "transformers has no model without a head for it")
    if getattr(config, "is_encoder_decoder", False):
        raise refusal(name, "it is an encoder-decoder model")
    return model_class


def model_with_weights(
    card: ModelCard, model_class: Any, config: Any, tensors: Mapping[str, torch.Tensor], dtype: torch.dtype, progress: Progress,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """The model, and transformers' report of names. Raises ArtifactError (`weights_unreadable`)."""
    noise = logging.getLogger("transformers.modeling_utils")
    before, noise.disabled = noise.disabled, True  # the report comes back, and is read
    try:
        with heard_progress(progress, card.weight_bytes):
            model, found = model_class.from_pretrained(
                None, config=copy.deepcopy(config), state_dict=dict(tensors), dtype=dtype, output_loading_info=True,
                ignore_mismatched_sizes=True, trust_remote_code=False, **options,
            )  # fmt: skip
    except Exception as error:  # code of many authors: anything may be raised
        raise ArtifactError(
            f"transformers cannot load {_name(card)} from {card.path}: {first_line(error)}", reason="weights_unreadable",
            param=str(card.path), fix="Download the model again, or check that config.json belongs to these weights.",
        ) from error  # fmt: skip
    finally:
        noise.disabled = before
    return model.eval(), found


def _sizes(name: str, config: Any, model: Any) -> tuple[int, int, int]:
    """Hidden size, layers, positions."""
    hidden, layers, positions, _ = (_size(name, config, field) for field in _SIZES)
    tables = [
        module for path, module in model.named_modules()
        if isinstance(module, torch.nn.Embedding) and "position" in path and module.num_embeddings == positions
    ]  # fmt: skip
    # A table with a row for padding counts from the row after it (RoBERTa).
    taken = max((0 if table.padding_idx is None else table.padding_idx + 1 for table in tables), default=0)
    return hidden, layers, positions - taken


def _size(name: str, config: Any, field: str) -> int:
    value = getattr(config, field, None)
    if not isinstance(value, int) or value <= 0:
        raise refusal(name, f"its config has no {field}")
    return value


@torch.inference_mode()
def _try(name: str, model: Any, hidden_size: int, vocabulary: int) -> None:
    """Whether all tokens have hidden states, and the first one sees the last. Raises ArtifactError
    (`unsupported_architecture`)."""
    tokens = torch.arange(_TRIAL).remainder(vocabulary)[None].repeat(2, 1)
    tokens[1, -1] = (tokens[1, -1] + 1) % vocabulary
    try:
        states = model(input_ids=tokens, attention_mask=torch.ones_like(tokens)).last_hidden_state
    except Exception as error:  # code of many authors: anything may be raised
        raise refusal(name, f"a trial run failed: {first_line(error)}") from error
    if states.shape != (2, _TRIAL, hidden_size):
        raise refusal(name, f"a trial run gave hidden states of shape {list(states.shape)}, expected {[2, _TRIAL, hidden_size]}")
    if torch.equal(states[0, 0], states[1, 0]):
        raise refusal(name, "its first token does not see the last: it is no bidirectional encoder")
