"""What heads must know of each backbone: names of the tensors of its head, and what the head does.

Source: the classes `<Backbone>ForSequenceClassification` and `<Backbone>ForTokenClassification` of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

Activation = Literal["tanh", "relu", "gelu", "silu"]


@dataclass(frozen=True, slots=True)
class HeadNames:
    """Names without `.weight` and `.bias`; {prefix} is what the names of the encoder begin with. A head is dense, activation,
    norm, out; what is None is not there. `activation` is used unless the config has `activation_field`."""

    out: str
    dense: str | None = None
    norm: str | None = None
    activation: Activation | None = None
    activation_field: str | None = None

    def tensors(self, prefix: str) -> tuple[str, ...]:
        """What is before `.weight` and `.bias` in the names of all tensors."""
        return tuple(name.format(prefix=prefix) for name in (self.dense, self.norm, self.out) if name is not None)


@dataclass(frozen=True, slots=True)
class Backbone:
    """`token_types`: how many the config means when it names none; None: the encoder knows none."""

    sequence: HeadNames
    token: HeadNames
    token_types: int | None = None


_PLAIN: Final = HeadNames("classifier")
_POOLER: Final = HeadNames("classifier", dense="{prefix}pooler.dense", activation="tanh")
_TWO_LAYERS: Final = HeadNames("classifier.out_proj", dense="classifier.dense", activation="tanh")
_MODERNBERT: Final = HeadNames("classifier", dense="head.dense", norm="head.norm", activation="gelu", activation_field="classifier_activation")
_DEBERTA: Final = HeadNames("classifier", dense="pooler.dense", activation="gelu", activation_field="pooler_hidden_act")

BACKBONES: Final[Mapping[str, Backbone]] = {
    "bert": Backbone(_POOLER, _PLAIN, token_types=2),
    "roberta": Backbone(_TWO_LAYERS, _PLAIN),
    "xlm-roberta": Backbone(_TWO_LAYERS, _PLAIN),
    "camembert": Backbone(_TWO_LAYERS, _PLAIN),
    "distilbert": Backbone(HeadNames("classifier", dense="pre_classifier", activation="relu"), _PLAIN),
    "deberta-v2": Backbone(_DEBERTA, _PLAIN, token_types=0),
    "modernbert": Backbone(_MODERNBERT, _MODERNBERT),
    "mpnet": Backbone(_TWO_LAYERS, _PLAIN),
    "electra": Backbone(HeadNames("classifier.out_proj", dense="classifier.dense", activation="gelu"), _PLAIN, token_types=2),
}  # fmt: skip


def tells_texts_apart(config: Mapping[str, Any]) -> bool:
    """Whether tokens of a second text are of another type. RoBERTa's tokenizers give all tokens type 0."""
    backbone = BACKBONES.get(str(config.get("model_type")))
    if backbone is None or backbone.token_types is None:
        return False
    stated = config.get("type_vocab_size", backbone.token_types)
    return isinstance(stated, int) and stated > 1
