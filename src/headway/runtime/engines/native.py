"""The built-in engine: the family's own code on the kernels of this package."""

from __future__ import annotations

from collections.abc import Callable

from headway.runtime.engines.engine import Engine
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.package import Package


class NativeEngine(Engine):
    name = "native"
    auto_priority = 10

    def refuses(self, family: ModelFamily, spec: ModelSpec, accelerator: str) -> str | None:
        if accelerator in family.accelerators:
            return None
        return f"the family {family.name} runs on {' and '.join(sorted(family.accelerators))} only, not on {accelerator}"

    def load(
        self, family: ModelFamily, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]
    ) -> LoadedModel:
        return family.load(package, spec, placement, progress)
