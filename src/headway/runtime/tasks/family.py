"""The family `task_heads`: classifiers, embedders and rerankers on text encoders, as transformers and sentence-transformers
save them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

from headway.models.encoders.plan import NativeEncoderPlan
from headway.runtime.family import Dtype, ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.package import Package
from headway.runtime.tasks.classifier import classifier_surfaces, load_classifier
from headway.runtime.tasks.decoder_embedder import describe_decoder, is_decoder, load_decoder
from headway.runtime.tasks.loaded_parts import Progress
from headway.runtime.tasks.task_package import Task, TaskPackage, open_task, task_of
from headway.runtime.tasks.vector_models import load_embedder, load_relevance

_LOADERS: Final[Mapping[Task, Callable[[TaskPackage, Placement, Progress], LoadedModel]]] = {
    "sequence": load_classifier, "token": load_classifier, "embedding": load_embedder, "relevance": load_relevance,
}  # fmt: skip


class TaskHeads(ModelFamily):
    name: ClassVar[str] = "task_heads"
    surfaces: ClassVar[tuple[Surface, ...]] = ("classify", "embeddings", "rerank", "decisions")
    option_names: ClassVar[frozenset[str]] = frozenset({"max_scan_tokens", "layers", "pair_scorer", "pair_scorers", "word_strategy"})

    def detect(self, package: Package) -> bool:
        return task_of(package) is not None

    def describe(self, package: Package) -> ModelSpec:
        if is_decoder(package):
            return describe_decoder(package)
        found = open_task(package)
        return ModelSpec(
            _surfaces(found), found.parameters, found.files, found.limit, dtypes=_dtypes(found), licence=package.licence,
            stored=found.stored,
        )

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        if is_decoder(package):
            return load_decoder(package, spec, placement, progress)
        found = open_task(package)
        return _LOADERS[found.task](found, placement, progress)

    def fixture_variants(self) -> Sequence[str]:
        from headway.runtime.tasks.fixtures import VARIANTS

        return tuple(VARIANTS)

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        from headway.runtime.tasks.fixtures import write_task_package

        write_task_package(folder, variant, seed)


def _dtypes(found: TaskPackage) -> tuple[Dtype, ...]:
    """Layers of transformers compute with floats only."""
    return ("float32", "bfloat16", "int8") if isinstance(found.plan, NativeEncoderPlan) else ("float32", "bfloat16")


def _surfaces(found: TaskPackage) -> tuple[Surface, ...]:
    if found.task == "embedding":
        return ("embeddings", "classify") if found.scorers is not None else ("embeddings",)
    return ("rerank",) if found.task == "relevance" else classifier_surfaces(found)
