"""The adapter form of a Decision 2.0 package: low-rank additions to a base model that lies elsewhere on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.resumable_download import file_sha256
from headway.errors import PackageError
from headway.runtime.loading.manifests import mismatch
from headway.runtime.readers.decision2.package import CONFIG, Decision2Package, base_fingerprint
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.transformers_backbone import LowRank
from headway.runtime.readers.unpublished import not_of_the_format

_SETTINGS = "adapter/adapter_config.json"
_WEIGHTS = "adapter/adapter_model.safetensors"
_STEM = "base_model.model."


def base_folder(found: Decision2Package, given: str | None) -> Path:
    """The folder of the base model, every file of it compared with the digests that the package was made for.

    Raises PackageError: `base_missing`, `hash_mismatch`.
    """
    base = found.manifest.get("base")
    named = f"{base.get('repo_id')}@{base.get('revision')}" if isinstance(base, dict) else "its base model"
    if given is None:
        raise PackageError(f"{found.folder} is an adapter and needs {named}", reason="base_missing", param="base_path",
                            fix="Download that revision and name its folder with --base-path.")  # fmt: skip
    folder = Path(given).expanduser()
    wanted = dict(base_fingerprint(found))
    if isinstance(base, dict) and isinstance(base.get("files_sha256"), dict):
        wanted.update(base["files_sha256"])
    if missing := sorted(name for name in wanted if not (folder / name).is_file()):
        raise PackageError(f"{folder} lacks {', '.join(missing[:5])} of {named}", reason="base_missing", param=str(folder),
                            fix="Name the folder of exactly that revision with --base-path.")  # fmt: skip
    if wrong := sorted(name for name, digest in wanted.items() if file_sha256(folder / name) != digest):
        raise mismatch(f"{CONFIG} for the base model {folder}", wrong)
    return folder


def read_low_rank(found: Decision2Package) -> LowRank:
    """The adapter, checked against the package's own description of it. Raises PackageError (`invalid_package`, ...)."""
    contract = found.config.get("lora")
    settings = read_json_object(found.folder / _SETTINGS)
    if not isinstance(contract, dict) or not isinstance(contract.get("target_dimensions"), dict):
        raise not_of_the_format(CONFIG, "lora with rank, alpha, target_modules and target_dimensions", contract)
    _check_settings(settings, contract)
    rank = contract["rank"]
    shapes: dict[str, tuple[int, ...]] = {}
    for name, sizes in contract["target_dimensions"].items():
        if not (isinstance(sizes, list) and len(sizes) == 2 and all(type(size) is int and size > 0 for size in sizes)):
            raise not_of_the_format(CONFIG, f"two sizes for {name!r:.80} in lora.target_dimensions", sizes)
        shapes[f"{name}.lora_A.weight"], shapes[f"{name}.lora_B.weight"] = (rank, sizes[0]), (sizes[1], rank)
    tensors = PackageTensors(found.folder, [_WEIGHTS])
    tensors.check(shapes, _STEM)
    values = tensors.read(torch.float32, _STEM)
    factors = {name: (values[f"{name}.lora_A.weight"], values[f"{name}.lora_B.weight"]) for name in contract["target_dimensions"]}
    return LowRank(factors, contract["alpha"] / rank)


def _check_settings(settings: Mapping[str, Any], contract: Mapping[str, Any]) -> None:
    targets = contract.get("target_modules")
    given = settings.get("target_modules")
    agree = (
        isinstance(targets, list) and isinstance(given, list) and type(contract.get("rank")) is int and contract["rank"] > 0
        and type(contract.get("alpha")) in (int, float) and settings.get("peft_type") == "LORA" and settings.get("bias") == "none"
        and settings.get("r") == contract["rank"] and settings.get("lora_alpha") == contract["alpha"]
        and set(given) in ({*targets}, {name.rsplit(".", 1)[-1] for name in targets}) and {*targets} == set(contract["target_dimensions"])
    )  # fmt: skip
    if not agree:
        raise not_of_the_format(_SETTINGS, f"a LoRA adapter as lora in {CONFIG} describes it", {key: settings.get(key) for key in ("peft_type", "r", "lora_alpha", "bias")})
    odd = [key for key in ("use_dora", "use_rslora", "lora_bias", "rank_pattern", "alpha_pattern", "modules_to_save", "fan_in_fan_out") if settings.get(key)]
    if odd:
        raise not_of_the_format(_SETTINGS, "a plain low-rank adapter", odd)
