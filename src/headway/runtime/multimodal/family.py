"""The family `multimodal_embedding`: texts and images in one space, and sounds where the package has a tower for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.multimodal.dual_encoder import is_dual_encoder, load_dual_encoder, open_dual_encoder
from headway.runtime.multimodal.omni import load_omni
from headway.runtime.multimodal.omni_package import is_omni, open_omni
from headway.runtime.package import Package


class MultimodalEmbedding(ModelFamily):
    name: ClassVar[str] = "multimodal_embedding"
    surfaces: ClassVar[tuple[Surface, ...]] = ("embeddings",)

    def detect(self, package: Package) -> bool:
        return is_dual_encoder(package) or is_omni(package)

    def describe(self, package: Package) -> ModelSpec:
        return open_omni(package).spec() if is_omni(package) else open_dual_encoder(package).spec()

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        if is_omni(package):
            return load_omni(open_omni(package), placement, progress)
        return load_dual_encoder(open_dual_encoder(package), placement, progress)

    def fixture_variants(self) -> Sequence[str]:
        from headway.runtime.multimodal.fixtures import VARIANTS
        from headway.runtime.multimodal.omni_fixture import OMNI_VARIANTS

        return (*VARIANTS, *OMNI_VARIANTS)

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        from headway.runtime.multimodal.fixtures import write_multimodal_package
        from headway.runtime.multimodal.omni_fixture import OMNI_VARIANTS, write_omni_package

        write = write_omni_package if variant in OMNI_VARIANTS else write_multimodal_package
        write(folder, variant, seed)
