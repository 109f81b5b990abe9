"""ModelFamily: the plug-in that recognises, describes and loads one kind of package."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from headway.errors import NotBuiltError
from headway.quantization.stored_as import PLAIN, StoredFormat
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.loading.manifests import Verified, digest_of_digests
from headway.runtime.package import Package

FAMILIES_GROUP = "headway.families"
Dtype = Literal["float32", "bfloat16", "int8"]
"""int8: products with weights are of integers, and bfloat16 lies between them."""


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a family finds out before weights are read.

    `files` are all files that will be loaded, relative to the package (their digests are the model's identity).
    `dtypes` are the arithmetics that it offers, best first. `capabilities` must be had by the device ("lapack", ...). `stored` is how the
    weights are stored; `parameters` counts them unpacked.
    """

    surfaces: tuple[Surface, ...]
    parameters: int
    files: tuple[str, ...]
    max_input_tokens: int
    dtypes: tuple[Dtype, ...] = ("float32",)
    capabilities: tuple[str, ...] = ()
    licence: str | None = None
    stored: StoredFormat = PLAIN


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and how a model runs. `options` are the family's own, from the models file."""

    device: str  # "cpu", "cuda:0", ...
    dtype: Dtype
    enable_shared_context: bool
    options: Mapping[str, Any] = field(default_factory=dict)


class ModelFamily(abc.ABC):
    """Found through the entry-point group `headway.families`; the built-ins are found the same way."""

    name: ClassVar[str]
    surfaces: ClassVar[tuple[Surface, ...]]
    option_names: ClassVar[frozenset[str]] = frozenset()  # keys that `options` of a models file may have
    accelerators: ClassVar[frozenset[str]] = frozenset({"cpu"})  # kinds of devices that `load` can place a model on

    shares_context: ClassVar[bool] = False  # whether `enable_shared_context` is on when nobody says

    @abc.abstractmethod
    def detect(self, package: Package) -> bool:
        """Whether this package is one of the family. Reads one small file; never raises for foreign packages."""

    @abc.abstractmethod
    def describe(self, package: Package) -> ModelSpec:
        """Raises ArtifactError for a package of this family that is damaged or of an unknown variant."""

    def verify(self, package: Package, digests: Mapping[str, str]) -> Verified:
        """Compare the digests of `ModelSpec.files` with what the package says of itself, and name the model.

        Raises ArtifactError (`hash_mismatch`, ...) where they differ. Families with no records of their own take this
        one: the identity is the digest of the digests.
        """
        return Verified(digest_of_digests(digests))

    @abc.abstractmethod
    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        """Weights into memory. `progress(done, total)` in bytes."""

    def fixture_variants(self) -> Sequence[str]:
        """Variants that `write_fixture` knows, the default first."""
        return ()

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        """A tiny seeded package with random weights, for tests and first tries."""
        raise NotBuiltError(f"the family {self.name} writes no fixtures")
