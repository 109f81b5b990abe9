"""The backbone of a Kev package: its own or a base model's with the adapter added, on our decoder where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.artifacts.quantization_claim import claim_of_config
from headway.errors import PackageError
from headway.runtime.decoder import loading as native
from headway.runtime.decoder.loading import DTYPES
from headway.runtime.family import Placement
from headway.runtime.package import Package
from headway.runtime.readers.base_format import check_base
from headway.runtime.readers.endpoints.model import HiddenTrunk
from headway.runtime.readers.kev.package import ADAPTER, HEAD, is_adapter, read_low_rank
from headway.runtime.readers.native_trunk import NativeTrunk
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.part_card import card_of_part
from headway.runtime.readers.transformers_backbone import CAPABILITIES, LowRank, backbone_type, load_backbone
from headway.runtime.readers.transformers_trunk import TransformersTrunk
from headway.runtime.readers.unpublished import not_of_the_format

MAX_TOKENS: Final = 8192  # of state and question, as Kev's own server reads at most; no package was trained on more
_NATIVE: Final = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
_EMBEDDING: Final = "embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class Backbone:
    """A text decoder in a folder: `config` of the text model, `prefix` what the names of its tensors begin with."""

    folder: Path
    config: Mapping[str, Any]
    tensors: PackageTensors
    prefix: str

    @property
    def hidden_size(self) -> int:
        return int(self.config["hidden_size"])

    @property
    def kind(self) -> str:
        return str(self.config["model_type"])

    @property
    def max_tokens(self) -> int:
        stated = self.config.get("max_position_embeddings")
        return min(MAX_TOKENS, stated) if isinstance(stated, int) else MAX_TOKENS

    @property
    def capabilities(self) -> tuple[str, ...]:
        return CAPABILITIES[self.kind]


def find_backbone(package: Package, base_path: str | None) -> Backbone:
    """Headers and JSON only.

    Raises ArtifactError: `base_missing`, `unsupported_architecture`, `invalid_package`, `missing_file`.
    """
    if not is_adapter(package):
        return _in_folder(package.path)
    if base_path is None:
        named = (package.json(ADAPTER) or {}).get("base_model_name_or_path")
        raise PackageError(
            f"{package.path} is an adapter for {named!r:.120}, which lies elsewhere", reason="base_missing", param="base_path",
            fix="Download that model and name its folder with --base-path.",
        )  # fmt: skip
    return _in_folder(Path(base_path).expanduser())


def _in_folder(folder: Path) -> Backbone:
    source = f"{folder}/config.json"
    whole = read_json_object(folder / "config.json")
    text = whole.get("text_config", whole)
    backbone_type(text, source)
    if type(text.get("hidden_size")) is not int:
        raise not_of_the_format(source, "hidden_size", text.get("hidden_size"))
    names = sorted(path.name for path in folder.glob("*.safetensors") if path.name not in (HEAD, "adapter_model.safetensors"))
    if not names:
        raise PackageError(f"{folder} has no .safetensors file of a backbone", reason="missing_file", param=str(folder), fix="Download the model again.")
    tensors = PackageTensors(folder, names, claim_of_config(whole, source) or claim_of_config(text, source))
    prefixes = [name.removesuffix(_EMBEDDING) for name in tensors.infos if name == _EMBEDDING or name.endswith(f".{_EMBEDDING}")]
    if len(prefixes) != 1:
        raise not_of_the_format(", ".join(names), f"one tensor named {_EMBEDDING}", prefixes)
    return Backbone(folder, text, tensors, prefixes[0])


def load_trunk(package: Package, found: Backbone, placement: Placement, progress: Callable[[int, int], None]) -> HiddenTrunk:
    """Weights into memory. Raises what the loaders raise, and ArtifactError (`tensor_shape`) for an adapter of another model."""
    if not is_adapter(package) and found.kind in _NATIVE:
        config = {**found.config, "architectures": [_NATIVE[found.kind]]}
        files = [found.folder / name for name in found.tensors.files]
        card = card_of_part(package.reference, config, found.tensors.infos, files)
        return NativeTrunk(
            native.load_backbone(
                card, placement.dtype, share=placement.enable_shared_context, max_tokens=found.max_tokens, prefix=found.prefix, progress=progress
            )
        )
    low_rank = read_low_rank(package.path) if is_adapter(package) else None
    if low_rank is not None:
        check_base(found.tensors, placement.device)
        _check_fit(low_rank, found)
    model = load_backbone(
        found.config, found.tensors, found.prefix, dtype=DTYPES[placement.dtype], device=placement.device, source=f"{found.folder}/config.json",
        low_rank=low_rank, progress=progress,
    )  # fmt: skip
    return TransformersTrunk(model, max_tokens=found.max_tokens, share=placement.enable_shared_context)


def _check_fit(low_rank: LowRank, found: Backbone) -> None:
    """A factor that is left out or broadcast would change answers without a word."""
    shapes = found.tensors.shapes(found.prefix)
    for module, (down, up) in low_rank.factors.items():
        if shapes.get(f"{module}.weight") != (up.shape[0], down.shape[1]):
            raise PackageError(
                f"the adapter adds {[up.shape[0], down.shape[1]]} to {module}, which in {found.folder} is {shapes.get(f'{module}.weight')}",
                reason="tensor_shape", param=module, fix="Name the base model that the adapter was trained on with --base-path.",
            )  # fmt: skip
