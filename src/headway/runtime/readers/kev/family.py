"""The family `kev`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from headway.artifacts.tokenizer import tokenizer_at
from headway.quantization.stored_format import stored_format
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.endpoints.model import EndpointModel
from headway.runtime.readers.kev.backbone import MAX_TOKENS, find_backbone, load_trunk
from headway.runtime.readers.kev.fixture import VARIANTS, write_kev
from headway.runtime.readers.kev.package import (
    ADAPTER,
    ADAPTER_WEIGHTS,
    TRAINING,
    head_file,
    is_adapter,
    is_kev,
    read_head,
    read_low_rank,
)
from headway.runtime.readers.kev.reader import TYPES, KevReader
from headway.runtime.readers.package_tensors import PackageTensors

_TEXTS = ("config.json", TRAINING, "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


class KevFamily(ModelFamily):
    """Option `base_path`: the folder of an adapter's base model."""

    name: ClassVar[str] = "kev"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)
    option_names: ClassVar[frozenset[str]] = frozenset({"base_path"})

    def detect(self, package: Package) -> bool:
        return is_kev(package)

    def describe(self, package: Package) -> ModelSpec:
        if is_adapter(package):
            read_low_rank(package.path)
            stored = PackageTensors(package.path, [ADAPTER_WEIGHTS])
            weights, limit = [ADAPTER, ADAPTER_WEIGHTS], MAX_TOKENS
            capabilities: tuple[str, ...] = ()  # those of the base, which is looked for when the model is loaded
        else:
            found = find_backbone(package, None)
            read_head(package, found.hidden_size)
            stored, limit, capabilities = found.tensors, found.max_tokens, found.capabilities
            weights = list(stored.files)
        files = (*(name for name in _TEXTS if package.has(name)), *weights, head_file(package))
        return ModelSpec(
            self.surfaces, stored.parameters, files, limit, ("float32", "bfloat16"), capabilities, package.licence,
            stored_format(stored.infos.values()),
        )

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        found = find_backbone(package, placement.options.get("base_path"))
        head = read_head(package, found.hidden_size)
        trunk = load_trunk(package, found, placement, progress)
        tokenizer = tokenizer_at(package.path if package.has("tokenizer.json") else found.folder)
        reader = KevReader(tokenizer, found.max_tokens, head.temperature)
        facts = ModelFacts(spec.parameters, placement.dtype, decision_limits(found.max_tokens), question_types=TYPES, extra=_about(head.base, head.base_revision))
        return EndpointModel(facts, reader, trunk, head.pointer)

    def fixture_variants(self) -> Sequence[str]:
        return VARIANTS

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_kev(folder, variant, seed)


def _about(base: str | None, revision: str | None) -> dict[str, str]:
    return {name: value for name, value in (("base", base), ("base_revision", revision)) if value is not None}
