"""Names of the tensors in an adapter's file: which two belong to which matrix of the model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headway.errors import AdapterError
from headway.models.lora.targets import Targets

_PREFIX: Final = "base_model.model."
_FACTOR: Final = re.compile(r"(?P<module>.+)\.lora_(?P<factor>[AB])\.weight")
_FEATURES: Final[Mapping[str, str]] = {
    "lora_magnitude_vector": "DoRA",
    "lora_embedding_": "an adapter of an embedding",
    "lora_B.bias": "a bias",
    "modules_to_save": "a whole module",
    "base_layer": "a weight of the base model",
    "token_adapter": "trained rows of the embedding",
}
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class FactorNames:
    """The two tensors of one matrix: A [rank, inputs] and B [outputs, rank]."""

    down: str
    up: str


def factor_names(names: Iterable[str], targets: Targets, base_model: str) -> Mapping[str, FactorNames]:
    """By module of the checkpoint. Raises AdapterError: `adapter_feature`, `adapter_tensor`, `adapter_target`."""
    found: dict[str, dict[str, str]] = {}
    for name in names:
        shown = name[:200]
        feature = next((what for part, what in _FEATURES.items() if part in name), None)
        if feature is not None:
            raise AdapterError(
                f"tensor {shown} is {feature}, which is not built", reason="adapter_feature", param=shown,
                fix="Merge the adapter into its base model with PEFT (merge_and_unload) and serve that.",
            )  # fmt: skip
        parts = _FACTOR.fullmatch(name)
        if parts is None:
            raise AdapterError(
                f"tensor {shown} is no part of a LoRA adapter: names end in .lora_A.weight and .lora_B.weight", reason="adapter_tensor", param=shown
            )
        found.setdefault(parts["module"].removeprefix(_PREFIX), {})[parts["factor"]] = name
    if not found:
        raise AdapterError("the adapter has no tensors", reason="adapter_tensor")
    _check_targets(found, targets, base_model)
    for module, each in found.items():
        if len(each) != 2:
            have, lacks = ("A", "B") if "A" in each else ("B", "A")
            raise AdapterError(f"the adapter has lora_{have} and no lora_{lacks} for {module[:200]}", reason="adapter_tensor", param=module[:200])
    return {module: FactorNames(each["A"], each["B"]) for module, each in found.items()}


def _check_targets(modules: Iterable[str], targets: Targets, base_model: str) -> None:
    wrong = [module for module in modules if module not in targets.adapted]
    if not wrong:
        return
    some = ", ".join(name[:120] for name in sorted(wrong)[:_SHOWN]) + (f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else "")
    inside = [name for name in wrong if name in targets.others or ".experts" in name or name.endswith(("lm_head", "embed_tokens"))]
    if inside:
        raise AdapterError(
            f"the adapter changes {some}; adapters of embeddings, output heads and experts are not built, only of {', '.join(targets.kinds)}",
            reason="adapter_target", param=inside[0][:200], fix="Train it on those, or merge it into its base model with PEFT.",
        )  # fmt: skip
    made_for = f" It was made for {base_model!r}." if base_model else ""
    raise AdapterError(
        f"the adapter changes modules that this model does not have: {some}. It has {', '.join(targets.kinds)} in {len(targets.modules)} places.{made_for}",
        reason="adapter_target", param=wrong[0][:200], fix="Use an adapter that was made for this very model.",
    )  # fmt: skip
