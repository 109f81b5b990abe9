"""Which matrices of a native model an adapter may change, by the names that PEFT knows them by: those of transformers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headway.models.decoder_config import DecoderConfig
from headway.models.module_paths import ATTENTION_OUTPUT, MLP_DOWN, MLP_GATE_UP, MLP_UP, QKV
from headway.models.registry import architecture
from headway.models.weight_rules import place, spelled
from headway.models.weight_transforms import Transform

_ADAPTED: Final = frozenset({QKV, ATTENTION_OUTPUT, MLP_GATE_UP, MLP_UP, MLP_DOWN})


@dataclass(frozen=True, slots=True)
class Target:
    """One matrix of a checkpoint, [outputs, inputs]: in the decoder it makes the columns of `module` that begin at `begin`. `transform`
    says how the rows of the checkpoint become these columns."""

    module: str
    begin: int
    outputs: int
    inputs: int
    transform: Transform | None


@dataclass(frozen=True, slots=True)
class Targets:
    """`adapted`: by name of the checkpoint's module. `others` are modules that the model has and that take no adapter here: embeddings, the
    head, norms, experts. `widths`: columns of what each adapted module of the decoder returns."""

    adapted: Mapping[str, Target]
    others: frozenset[str]
    widths: Mapping[str, int]
    config: DecoderConfig

    @property
    def modules(self) -> list[str]:
        """Paths of the decoder's modules that can be adapted."""
        return list(self.widths)

    @property
    def kinds(self) -> list[str]:
        """Last names of what can be adapted: q_proj, ..."""
        return list(dict.fromkeys(name.rpartition(".")[2] for name in self.adapted))

    def held_numbers(self, rank: int) -> int:
        """What an adapter of that rank on every target is in memory (`low_rank.LowRankUpdate`)."""
        return sum(rank * (target.inputs + self.widths[target.module]) for target in self.adapted.values())

    def numbers(self, rank: int) -> int:
        """What it is in a file."""
        return sum(rank * (target.inputs + target.outputs) for target in self.adapted.values())


def adapter_targets(architecture_name: str, config: DecoderConfig) -> Targets:
    """From the table of safetensors names, also for models that were read from another kind of file: adapters are made with transformers.

    Raises ArtifactError (`unsupported_architecture`) for models without a table.
    """
    adapted: dict[str, Target] = {}
    others: set[str] = set()
    rows: dict[str, int] = {}
    for weight in place(spelled(architecture(architecture_name).safetensors, ()), config):
        name = weight.source.removesuffix(".weight")
        if weight.rule.kind != "weight":
            continue
        if weight.rule.module not in _ADAPTED:
            others.add(name)
            continue
        outputs, inputs = weight.loaded_shape
        # PEFT's matrices read and write what the module does, whichever way its weight is stored.
        transform = None if weight.rule.transform == "transposed" else weight.rule.transform
        begin = rows.get(weight.module, 0)
        adapted[name] = Target(weight.module, begin, outputs, inputs, transform)
        rows[weight.module] = begin + outputs
    return Targets(adapted, frozenset(others), rows, config)
