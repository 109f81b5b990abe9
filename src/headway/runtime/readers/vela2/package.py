"""What a Vela 2.0 package says of itself, before a weight is read. Format: docs/families.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.artifacts.quantization_claim import claim_of_config
from headway.errors import ArtifactError
from headway.runtime.loading.manifests import Verified, digest_of_digests, read_file_list, read_sums
from headway.runtime.package import Package
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.unpublished import layout_not_published, not_of_the_format
from headway.runtime.readers.vela2.calibration import CALIBRATION, Calibration, read_calibration
from headway.runtime.readers.vela2.marker_readout import READOUTS
from headway.runtime.readers.weight_files import INDEX, weight_files

ENCODER: Final = "vela2-unified"
DECODER: Final = "vela2-decoder"
BROAD_HEAD: Final = "broad_head.safetensors"
SUMS: Final = "SHA256SUMS"
MANIFEST: Final = "MODEL_MANIFEST.json"
_LEAST_INPUT: Final = 64


@dataclass(frozen=True, slots=True)
class Vela2Package:
    """`member` is ENCODER or DECODER; `weights` the safetensors files, the broad span head apart."""

    folder: Path
    member: str
    config: Mapping[str, Any]
    calibration: Calibration
    weights: tuple[str, ...]
    has_broad_head: bool

    @property
    def max_tokens(self) -> int:
        return int(self.config["max_length"])

    @property
    def backbone_config(self) -> dict[str, Any]:
        return dict(self.config["encoder_config" if self.member == ENCODER else "backbone_config"])

    def tensors(self) -> PackageTensors:
        """Of the weight files but the broad head; headers only."""
        return PackageTensors(self.folder, self.weights, claim_of_config(self.config) or claim_of_config(self.backbone_config))

    @property
    def loaded_files(self) -> tuple[str, ...]:
        extras = (INDEX, BROAD_HEAD) if self.member == DECODER else (INDEX,)
        there = (name for name in (*extras, MANIFEST, SUMS) if (self.folder / name).is_file())
        return ("config.json", CALIBRATION, "tokenizer.json", *self.weights, *there)


def is_vela2(package: Package) -> bool:
    """Reads config.json alone. Versions that are not known are recognised too, and refused by `read_package`."""
    try:
        return str(package.config.get("model_type")) in (ENCODER, DECODER)
    except ArtifactError:
        return False


def read_package(package: Package) -> Vela2Package:
    """Raises PackageError: `invalid_package`, `layout_not_published`, `no_weights`, `invalid_json`."""
    config, folder = package.config, package.path
    member = str(config.get("model_type"))
    if config.get("format_version") != 1:
        raise layout_not_published(f"{member} packages of format version {config.get('format_version')!r:.20} (known: 1)", "config.json")
    _check_config(member, config)
    return Vela2Package(folder, member, config, read_calibration(folder), weight_files(folder), member == DECODER and (folder / BROAD_HEAD).is_file())


def _check_config(member: str, config: Mapping[str, Any]) -> None:
    limit = config.get("max_length")
    if type(limit) is not int or limit < _LEAST_INPUT:
        raise not_of_the_format("config.json", f"max_length, an integer of at least {_LEAST_INPUT}", limit)
    wanted = {"proj_dim": int, "window_overlap": int} if member == ENCODER else {"head_dim": int}
    for name, kind in wanted.items():
        if type(config.get(name)) is not kind or config[name] < (0 if name == "window_overlap" else 1):
            raise not_of_the_format("config.json", f"{name}, a positive integer", config.get(name))
    backbone = "encoder_config" if member == ENCODER else "backbone_config"
    if not isinstance(config.get(backbone), dict):
        raise not_of_the_format("config.json", f"{backbone}, an object", config.get(backbone))
    if member == ENCODER and config.get("readout") not in READOUTS:
        raise layout_not_published(f"readouts of kind {config.get('readout')!r:.60} (known: {', '.join(READOUTS)})", "config.json")


def verify_package(package: Package, digests: Mapping[str, str]) -> Verified:
    """SHA256SUMS and MODEL_MANIFEST.json are optional and need not list every file. Raises PackageError (`hash_mismatch`,
    `manifest_invalid`)."""
    found = read_package(package)
    if (sums := read_sums(found.folder)) is not None:
        sums.check(digests, complete=False)
    if MANIFEST in digests:
        read_file_list(found.folder, MANIFEST)[0].check({name: digests[name] for name in found.weights}, complete=False)
    named = [*found.weights, *([BROAD_HEAD] if found.has_broad_head else [])]
    return Verified(digest_of_digests({name: digests[name] for name in named}), digests.get(MANIFEST, ""))
