"""The family `refused_decision`: says what a package is and why it is not served, instead of "no family recognizes it"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final, NoReturn

from headway.errors import ArtifactError, PackageError
from headway.runtime.family import ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.package import Package
from headway.runtime.readers.unpublished import layout_not_published

_NIMBLE_TASK: Final = "schema_candidate_classification_v2"


@dataclass(frozen=True, slots=True)
class Layout:
    """`files` that must all be there; `holds` looks into them. `missing`: what nobody has published of it; None: it is
    published, and `instead` says what can be served."""

    name: str
    files: tuple[str, ...]
    holds: Callable[[Package], bool]
    missing: str | None = None
    instead: str = "Serve another decision model; docs/families.md lists those that are."


def _always(package: Package) -> bool:
    return True


def _is_nimble(package: Package) -> bool:
    return (package.json("schema_config.json") or {}).get("task") == _NIMBLE_TASK


def _is_pplx(package: Package) -> bool:
    """Decision 3.0 has the same files, and names its format."""
    return "format_id" not in (package.json("decision_config.json") or {})


def _is_liquid(package: Package) -> bool:
    return str(package.config.get("model_type", "")).startswith(("lfm2", "lfm3"))


LAYOUTS: Final = (
    Layout("Bespoke Nimble", ("adapter_config.json", "schema_config.json"), _is_nimble,
           instead="Merge the adapter into its base and convert it to GGUF: kind nimble is served on the architectures that are."),
    Layout("Clef", ("joint_head_config.json", "joint_head.safetensors"), _always,
           instead="Its joint head over all questions of a request is not built."),
    Layout("Lev", ("adapter_config.json", "lev_release.json"), _always,
           instead="Merge the adapter into its base and convert it to GGUF: kind lev is served on the architectures that are."),
    Layout("pplx-decider", ("decision_config.json", "readout.safetensors"), _is_pplx,
           instead="Its prompt is not built; Decision 3.0 packages, which have the same readout, are served."),
    Layout("Liquid d1", ("calibration.json",), _is_liquid, missing="how prompts and readout rows of LFM2 and LFM3 are laid out"),
)  # fmt: skip


class RefusedDecisionFamily(ModelFamily):
    name: ClassVar[str] = "refused_decision"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)

    def detect(self, package: Package) -> bool:
        return _layout(package) is not None

    def describe(self, package: Package) -> ModelSpec:
        """Raises PackageError: `layout_not_published`, `unsupported_layout`."""
        _refuse(package)

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        _refuse(package)


def _layout(package: Package) -> Layout | None:
    try:
        return next((each for each in LAYOUTS if all(package.has(name) for name in each.files) and each.holds(package)), None)
    except ArtifactError:  # a file of that name that is no JSON object
        return None


def _refuse(package: Package) -> NoReturn:
    layout = _layout(package)
    if layout is None:
        raise PackageError(f"{package.path} is none of the packages that are recognised and refused", reason="invalid_package")
    if layout.missing is not None:
        raise layout_not_published(f"{layout.missing} ({layout.name} package {package.path})", layout.files[0])
    raise PackageError(f"{package.path} is a {layout.name} package, whose Hugging Face layout is not served",
                       reason="unsupported_layout", param=layout.files[0], fix=layout.instead)  # fmt: skip
