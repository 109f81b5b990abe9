"""The model as its files, its configuration and its name describe it: how large, how quantised."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from headway.capacity.config_shape import config_shape
from headway.capacity.model_shape import ModelShape
from headway.doctor.evidence.context import Context
from headway.doctor.facts.fact import Fact
from headway.doctor.facts.launch import Launch
from headway.errors import CapacityError

_WEIGHT_FILES: Final = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
_TENSOR_BYTES: Final = {
    "F64": 8,
    "I64": 8,
    "F32": 4,
    "I32": 4,
    "F16": 2,
    "BF16": 2,
    "I16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I8": 1,
    "U8": 1,
    "BOOL": 1,
}
_DTYPE_BYTES: Final = {"float32": 4, "float": 4, "float16": 2, "half": 2, "bfloat16": 2}
_PACKED: Final = (".qweight", ".weight_packed", ".qzeros", ".lookup_table", ".weight_scale", ".absmax")
_NAMED: Final = re.compile(
    r"(?:^|[-_/. ])(?P<method>awq|gptq|int4|int8|w4a16|w8a16|w8a8|w4|4[-_]?bit|8[-_]?bit|bnb|fp8|nvfp4|mxfp4|gguf|sq|squeezellm|hqq|q[2-8]_[k0-9]\w*)(?=$|[-_/. ])", re.IGNORECASE
)  # fmt: skip
_BITS: Final = {"awq": 4, "gptq": 4, "int4": 4, "w4a16": 4, "w4": 4, "sq": 4, "squeezellm": 4, "bnb": 4, "nvfp4": 4, "mxfp4": 4, "hqq": 4, "gguf": 5,
                "int8": 8, "w8a16": 8, "w8a8": 8, "fp8": 8}  # fmt: skip
_EXPERTS: Final = re.compile(r"(?<![\w.])(\d+)x(\d+(?:\.\d+)?)B(?![a-z])", re.IGNORECASE)
_BILLIONS: Final = re.compile(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)[ _]?([BM])(?![a-z])", re.IGNORECASE)
_SHARED_OF_EXPERTS: Final = 0.83  # Mixtral: 8x7B has 46.7 billion, 8x22B has 141, attention being shared
_COMPLETE: Final = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")


@dataclass(frozen=True)
class Model:
    """`config`: config.json of the context, {} if not given. `tensors`: names. `stored`: GiB on disk or as given."""

    name: str
    config: Mapping[str, Any]
    tensors: tuple[str, ...]
    stored: Fact[float] | None
    dtype: str

    @property
    def claim(self) -> Mapping[str, Any]:
        """The quantisation section of config.json, {} when there is none."""
        for key in ("quantization_config", "compression_config"):
            section = self.config.get(key)
            if isinstance(section, Mapping):
                return section
        return {}

    @property
    def claimed(self) -> str:
        """The method that config.json states, "" when it states none."""
        return str(self.claim.get("quant_method") or "") if self.claim else ""

    @property
    def named(self) -> str:
        """The method that the name claims, in small letters, "" when it claims none."""
        found = _NAMED.search(self.name)
        return found["method"].lower() if found else ""

    @property
    def named_bits(self) -> int | None:
        """Bits per weight that the name claims."""
        return (_BITS.get(self.named) or int(re.sub(r"\D", "", self.named)[:1] or 0) or None) if self.named else None

    @property
    def packed(self) -> str:
        """The first tensor that only a quantised checkpoint has, "" when none."""
        return next((name for name in self.tensors if name.endswith(_PACKED)), "")

    @cached_property
    def shape(self) -> ModelShape | None:
        """From a configuration that has all deciding fields, else None."""
        fields = (
            {**self.config, **(self.config.get("text_config") or {})} if isinstance(self.config.get("text_config") or {}, Mapping) else self.config
        )
        if any(not isinstance(fields.get(name), int) for name in _COMPLETE):
            return None
        try:
            return config_shape(self.config, self.name)
        except CapacityError:
            return None

    @property
    def parameters(self) -> float | None:
        """Counted from a complete configuration, else read from the name (`14B`, `8x7B`); None when neither says it."""
        if self.shape is not None and isinstance(self.config.get("intermediate_size"), int):
            return float(self.shape.parameters)
        if found := _EXPERTS.search(self.name):
            return float(found[1]) * float(found[2]) * 1e9 * _SHARED_OF_EXPERTS
        found = _BILLIONS.search(self.name)
        return float(found[1]) * (1e9 if found[2].upper() == "B" else 1e6) if found else None

    def gib(self, bits: float | None = None) -> float | None:
        """Weights when every one takes `bits`, by default those of the dtype."""
        if self.parameters is None:
            return None
        return self.parameters * (bits if bits is not None else 8 * self.dtype_bytes) / 8 / 2**30

    @property
    def dtype_bytes(self) -> int:
        return _DTYPE_BYTES.get(self.dtype, 2)

    @property
    def stored_dtype(self) -> str:
        """The dtype that config.json states."""
        return str(self.config.get("torch_dtype") or self.config.get("dtype") or "").removeprefix("torch.")

    @property
    def heads(self) -> int | None:
        value = self.config.get("num_attention_heads")
        return value if isinstance(value, int) and value > 0 else None


def model_of(context: Context, launch: Launch) -> Model:
    """`dtype`: what the engine says, what was asked for, or what the files state."""
    config = context.members("model.config")
    tensors = [tensor.get("name") if isinstance(tensor, Mapping) else tensor for tensor in context.items("model.tensors")]
    given = launch.value("dtype").removeprefix("torch.")
    stated = context.text("model.dtype") or str(config.get("torch_dtype") or config.get("dtype") or "")
    return Model(
        name=launch.model or context.text("model.id") or context.text("model.path"),
        config=config,
        tensors=tuple(str(name) for name in tensors if name),
        stored=_stored(context),
        dtype=(given if given and given != "auto" else stated.removeprefix("torch.")),
    )


def _stored(context: Context) -> Fact[float] | None:
    """`model.weights_gib`, else the bytes of the tensors by shape and dtype, else those of the weight files."""
    given = context.number("model.weights_gib")
    if given is not None:
        return Fact(given, context.quote("model.weights_gib"))
    tensors = [_tensor_bytes(tensor) for tensor in context.items("model.tensors") if isinstance(tensor, Mapping)]
    if tensors and all(tensors):
        return Fact(sum(tensors) / 2**30, context.quote("model.tensors", f"{len(tensors)} tensors"))
    sizes = [
        int(row["bytes"])
        for row in context.items("model.files")
        if isinstance(row, Mapping) and str(row.get("name", "")).endswith(_WEIGHT_FILES) and isinstance(row.get("bytes"), int)
    ]
    return Fact(sum(sizes) / 2**30, context.quote("model.files", f"{len(sizes)} weight files, {sum(sizes)} bytes")) if sizes else None


def _tensor_bytes(tensor: Mapping[str, Any]) -> int:
    for key in ("nbytes", "bytes"):
        if isinstance(tensor.get(key), int):
            return int(tensor[key])
    shape, width = tensor.get("shape"), _TENSOR_BYTES.get(str(tensor.get("dtype")).upper(), 0)
    return math.prod(side for side in shape if isinstance(side, int)) * width if isinstance(shape, list) else 0
