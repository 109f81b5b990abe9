"""VisionConfig: a SigLIP tower with its connector, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.kernels.interface import Activation
from headway.models.hf_fields import ACTIVATIONS, activation, bad_field, count, number

# What Idefics3VisionConfig and Idefics3Config of transformers 5.24 mean where config.json says nothing.
_DEFAULTS: Final = {
    "hidden_size": 1152, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 16, "num_channels": 3, "image_size": 224,
    "patch_size": 32,
}  # fmt: skip
_MOST_LAYERS: Final = 256
_LARGEST_SIDE: Final = 4096


@dataclass(frozen=True, slots=True)
class VisionConfig:
    """Sizes of one tower. Images are squares of `image_size` pixels, cut into squares of `patch_size`; `shuffle` x `shuffle` patches become
    one row of the decoder, whose hidden size is `output_size`."""

    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    image_size: int
    patch_size: int
    norm_epsilon: float
    activation: Activation
    shuffle: int
    output_size: int

    @property
    def side(self) -> int:
        """Patches along a side."""
        return self.image_size // self.patch_size

    @property
    def patches(self) -> int:
        """Of one image."""
        return self.side**2

    @property
    def rows(self) -> int:
        """Rows of the decoder that one image becomes (`image_seq_len` of transformers)."""
        return self.patches // self.shuffle**2

    @property
    def num_kv_heads(self) -> int:
        return self.num_heads

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_heads

    @property
    def wide_norms(self) -> bool:
        """Norm weights are float32 and multiplied before rounding."""
        return True

    @property
    def layer_sparse(self) -> tuple[bool, ...]:
        return (False,) * self.num_layers

    @property
    def dims(self) -> dict[str, int]:
        """Names that the weight table uses for sizes."""
        return {
            "hidden": self.hidden_size, "ffn": self.intermediate_size, "patches": self.patches, "channels": 3, "pixels": self.patch_size,
            "shuffled": self.hidden_size * self.shuffle**2, "output": self.output_size,
        }  # fmt: skip


def read_vision_config(config: Mapping[str, Any], output_size: int) -> VisionConfig:
    """`config` is that of the whole model. Raises ArtifactError (`invalid_model_config`), NotBuiltError for other activations."""
    given = config.get("vision_config")
    if not isinstance(given, Mapping):
        raise bad_field("vision_config", "an object", given)
    size = {name: count({name: _square(given.get(name))}, name, default) for name, default in _DEFAULTS.items()}
    found = VisionConfig(
        hidden_size=size["hidden_size"], intermediate_size=size["intermediate_size"], num_layers=size["num_hidden_layers"],
        num_heads=size["num_attention_heads"], image_size=size["image_size"], patch_size=size["patch_size"],
        norm_epsilon=number(given, "layer_norm_eps", 1e-6), activation=activation(given, "hidden_act", "gelu_pytorch_tanh", ACTIVATIONS),
        shuffle=count(config, "scale_factor", 2), output_size=output_size,
    )  # fmt: skip
    if size["num_channels"] != 3:
        raise bad_field("num_channels", "3", size["num_channels"])
    if found.num_layers > _MOST_LAYERS:
        raise bad_field("num_hidden_layers", f"at most {_MOST_LAYERS}", found.num_layers)
    if found.hidden_size % found.num_heads:
        raise bad_field("num_attention_heads", f"a divisor of hidden_size ({found.hidden_size})", found.num_heads)
    if found.image_size > _LARGEST_SIDE or found.image_size % found.patch_size:
        raise bad_field("image_size", f"a multiple of patch_size ({found.patch_size}), at most {_LARGEST_SIDE}", found.image_size)
    if found.side % found.shuffle:
        raise bad_field("scale_factor", f"a divisor of the {found.side} patches along a side", found.shuffle)
    return found


def _square(value: Any) -> Any:
    """Sizes of pixels may be a pair, of which both are equal here."""
    return value[0] if isinstance(value, list | tuple) and len(value) == 2 and value[0] == value[1] else value
