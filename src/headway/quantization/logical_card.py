"""logical_card: a checkpoint as a model sees it, every packed weight one tensor [out, in] again, whatever it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from headway.artifacts.card import ModelCard, TensorInfo
from headway.artifacts.quantization_claim import METHOD_NAMES, refuse_mismatch
from headway.errors import ArtifactError, NotBuiltError
from headway.quantization.awq import awq
from headway.quantization.bitsandbytes import bitsandbytes
from headway.quantization.checkpoint_format import CheckpointFormat
from headway.quantization.claim_fields import Claim
from headway.quantization.compressed_tensors.checkpoint import compressed_tensors
from headway.quantization.fp8 import fp8
from headway.quantization.gptq import gptq
from headway.quantization.modelopt import modelopt
from headway.quantization.packed_weight import PackedTensor, packed_tensor
from headway.quantization.quark import quark
from headway.quantization.squeezellm import squeezellm

FORMATS: Final[Mapping[str, Callable[[Claim], CheckpointFormat]]] = {
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "compressed-tensors": compressed_tensors,
    "fp8": fp8,
    "gptq": gptq,
    "modelopt": modelopt,
    "quark": quark,
    "squeezellm": squeezellm,
}
_MOST_DIM: Final = 1 << 28


def logical_card(card: ModelCard) -> ModelCard:
    """`card` with a PackedTensor in place of the tensors of each packed weight, all of them checked; itself when it has none.

    Raises what `logical_tensors` raises.
    """
    if card.format == "gguf":
        return card
    tensors = logical_tensors(card.tensors, card.quantization, str(card.path))
    return card if tensors is card.tensors else replace(card, tensors=tensors, parameters=sum(each.elements for each in tensors.values()))


def logical_tensors(tensors: Mapping[str, TensorInfo], claim: Claim | None, where: str) -> Mapping[str, TensorInfo]:
    """`tensors` with a PackedTensor in place of the tensors of each packed weight; `tensors` itself when there is none, or they are so
    already. `claim` is the quantization section of the checkpoint, `where` names it.

    Raises NotBuiltError (`quantization_not_built`); ArtifactError (`quantization_mismatch`, `invalid_quantization`,
    `packed_part_missing`, `packed_dtype`, `packed_shape`, `packed_values`).
    """
    if any(isinstance(each, PackedTensor) for each in tensors.values()):
        return tensors
    form = None if claim is None else _format_of(claim, where)
    refuse_mismatch(claim, tensors, where)
    return tensors if form is None else _logical(tensors, form)


def packed_weights(card: ModelCard) -> list[PackedTensor]:
    """Of a logical card."""
    return [tensor for tensor in card.tensors.values() if isinstance(tensor, PackedTensor)]


def _format_of(claim: Claim, where: str) -> CheckpointFormat:
    method = str(claim.get("quant_method"))
    make = FORMATS.get(METHOD_NAMES.get(method, method))
    if make is None:
        raise NotBuiltError(
            f"{where} is quantized with {method!r:.60}; this version reads {', '.join(sorted(FORMATS))}, GGUF and unquantized"
            " safetensors", reason="quantization_not_built", param="quantization",
            fix="Use the model's unquantized safetensors, or one of these formats.",
        )  # fmt: skip
    return make(claim)


def _logical(tensors: Mapping[str, TensorInfo], form: CheckpointFormat) -> dict[str, TensorInfo]:
    modules: dict[str, dict[str, TensorInfo]] = {}
    plain: dict[str, TensorInfo] = {}
    for name, tensor in tensors.items():
        module, ending = _split(name, form.endings | form.unused)
        if ending in form.endings:
            modules.setdefault(module, {})[ending] = tensor
        elif ending is None:
            plain[name] = tensor
    for module, stored in modules.items():
        packed = form.layout_of(module, stored)
        if packed is None:
            plain |= {f"{module}.{ending}": tensor for ending, tensor in stored.items()}
            continue
        layout, shape = packed
        if not all(0 < size <= _MOST_DIM for size in shape):
            raise ArtifactError(
                f"{module}: its tensors have shapes {', '.join(f'{ending} {list(each.shape)}' for ending, each in stored.items())},"
                f" which make no weight stored as {layout.title}", reason="packed_shape", param=module,
                fix="Download the file again, or use the quantization settings that belong to these weights.",
            )  # fmt: skip
        found = packed_tensor(module, stored, layout, shape)
        plain[found.name] = found
    return plain


def _split(name: str, endings: frozenset[str]) -> tuple[str, str | None]:
    """Module and ending, the longest that is known; None for other names."""
    at = name.find(".")
    while at >= 0:
        if name[at + 1 :] in endings:
            return name[:at], name[at + 1 :]
        at = name.find(".", at + 1)
    return name, None
