"""The family `sparrow`: `.sparrow` files, or folders that hold one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from headway.errors import PackageError
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.package import Package
from headway.runtime.readers.sparrow.archive import read_archive, sparrow_file
from headway.runtime.readers.sparrow.fixture import VARIANTS, write_sparrow
from headway.runtime.readers.sparrow.model import SparrowModel
from headway.runtime.readers.sparrow.scorer import stored_parameters


class SparrowFamily(ModelFamily):
    name: ClassVar[str] = "sparrow"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)

    def detect(self, package: Package) -> bool:
        return sparrow_file(package.path) is not None

    def describe(self, package: Package) -> ModelSpec:
        path = _file(package)
        archive = read_archive(path)
        return ModelSpec(
            self.surfaces, stored_parameters(archive.arrays), (path.name,), archive.config.max_tokens, licence=package.licence
        )

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        path = _file(package)
        size = path.stat().st_size
        archive = read_archive(path)
        progress(size, size)
        try:
            return SparrowModel(archive)
        except ValueError as error:
            raise PackageError(f"{path.name}: {error}", reason="invalid_package", param=str(path), fix="Download it again.") from error

    def fixture_variants(self) -> Sequence[str]:
        return VARIANTS

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_sparrow(folder, variant, seed)


def _file(package: Package) -> Path:
    path = sparrow_file(package.path)
    if path is None:
        raise PackageError(f"{package.path} is no .sparrow file and holds none", reason="invalid_package", param=str(package.path))
    return path
