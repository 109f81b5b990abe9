"""Omni packages: a text encoder, a SigLIP vision tower, a Whisper encoder and a CLAP audio tower in one file of weights.

Source: VSR `families/multimodal_embedding/package.py` (7169977), `readout.py` (7033093); see docs/families.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import claim_of_config
from headway.errors import PackageError
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes, some
from headway.models.encoders.plan import EncoderPlan, plan_encoder
from headway.quantization.stored_format import stored_format
from headway.runtime.family import ModelSpec
from headway.runtime.multimodal.image_layout import ImageLayout, read_image_layout
from headway.runtime.multimodal.omni_variants import VARIANTS, OmniVariant
from headway.runtime.multimodal.tower import TowerPlan, plan_tower
from headway.runtime.package import Package
from headway.runtime.readers.package_tensors import PackageTensors
from headway.runtime.readers.part_card import card_of_part

WEIGHTS: Final = "model.safetensors"
TEXT, IMAGE, SPEECH, CLAP = (f"components/{name}" for name in ("text", "image", "audio", "audio_clap"))
FILES: Final = (
    "config.json", WEIGHTS, f"{TEXT}/config.json", f"{TEXT}/tokenizer.json",
    *(f"{part}/{name}" for part in (IMAGE, SPEECH, CLAP) for name in ("config.json", "preprocessor_config.json")),
)  # fmt: skip
_CLAP_MODEL: Final = "audio_residual.clap.audio_model."
_CLAP_PROJECTION: Final = "audio_residual.clap.audio_projection."
_RESIDUAL: Final = "audio_residual."


@dataclass(frozen=True, slots=True)
class OmniPackage:
    """`readouts`: the name that the readouts give a tensor -> its name in the checkpoint."""

    package: Package
    variant: OmniVariant
    text: EncoderPlan | TowerPlan
    image: TowerPlan
    speech: TowerPlan
    clap: TowerPlan
    layout: ImageLayout
    readouts: Mapping[str, str]

    @property
    def card(self) -> ModelCard:
        return self.image.card

    @property
    def dimension(self) -> int:
        return int(self.package.config["embedding_dim"])

    @property
    def limit(self) -> int:
        return int(self.package.config["max_text_length"])

    @property
    def parameters(self) -> int:
        towers = self.text.parameters + self.image.parameters + self.speech.parameters + self.clap.parameters
        return towers + sum(self.card.tensors[name].elements for name in self.readouts.values())

    def spec(self) -> ModelSpec:
        return ModelSpec(("embeddings",), self.parameters, FILES, self.limit, licence=self.package.licence, stored=stored_format(self.card.tensors.values()))


def is_omni(package: Package) -> bool:
    return package.config.get("architectures") == ["VelaOmni"]


def open_omni(package: Package) -> OmniPackage:
    """Raises ArtifactError: `missing_file`, `unsupported_layout`, `invalid_package`, those of `plan_tower`, `plan_encoder`."""
    for name in FILES:
        if not package.has(name):
            raise PackageError(f"{package.path} lacks {name}", reason="missing_file", param=name, fix="Download the package again.")
    variant = _variant(package)
    tensors = PackageTensors(package.path, [WEIGHTS], claim_of_config(package.config)).infos

    def card(part: str, section: str | None = None, **fields: str) -> ModelCard:
        config = package.json(f"{part}/config.json") or {}
        chosen = config if section is None else config.get(section)
        if not isinstance(chosen, dict):
            raise _invalid(f"{part}/config.json has no {section}")
        return card_of_part(package.reference, {**chosen, **fields}, tensors, [package.path / WEIGHTS])

    text_card = card(TEXT)
    if text_card.model_type != variant.text_type:
        raise _invalid(f"{TEXT}/config.json: the text encoder of this variant is of model_type {variant.text_type}, found {text_card.model_type!r:.40}")
    text: EncoderPlan | TowerPlan = plan_encoder(text_card, variant.text) if variant.text_type == "bert" else plan_tower(
        text_card, _class("Qwen3Model"), variant.text)  # fmt: skip
    image = plan_tower(card(IMAGE, "vision_config", model_type="siglip_vision_model"), _class("SiglipVisionModel"), variant.image)
    speech = plan_tower(card(SPEECH), _whisper_encoder, variant.speech)
    clap = plan_tower(card(CLAP, "audio_config", model_type="clap_audio_model"), _class("ClapAudioModel"), _CLAP_MODEL)
    if clap.config.enable_fusion:
        raise _invalid(f"{CLAP}/config.json: enable_fusion: CLAP towers that fuse windows are not built")
    preprocessor = package.json(f"{IMAGE}/preprocessor_config.json") or {}
    layout = read_image_layout(preprocessor, "siglip", int(image.config.image_size))
    found = OmniPackage(package, variant, text, image, speech, clap, layout, _readout_names(variant))
    _check_readouts(found)
    _refuse_left_over(found)
    return found


def _variant(package: Package) -> OmniVariant:
    config = package.config
    variant = VARIANTS.get(str(config.get("variant")))
    if variant is None:
        raise PackageError(f"config.json names the variant {config.get('variant')!r:.40}; known: {', '.join(VARIANTS)}", reason="unsupported_layout",
                           param="config.json", fix="Serve one of these.")  # fmt: skip
    different = [f"{key} is {config.get(key)!r:.40} and not {value!r}" for key, value in variant.config.items() if config.get(key) != value]
    if different:
        raise PackageError(f"layout not published: {'; '.join(different)[:400]} (config.json)", reason="layout_not_published",
                           param="config.json", fix="Serve the published package.")  # fmt: skip
    for key in ("embedding_dim", "max_text_length"):
        value = config.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 1 << 20:
            raise _invalid(f"config.json: {key} must be a number from 1 to {1 << 20}, found {value!r:.40}")
    return variant


def _readout_names(variant: OmniVariant) -> dict[str, str]:
    linear = {"image": variant.image_projection, "speech": variant.speech_projection, "clap.linear1": f"{_CLAP_PROJECTION}linear1.",
              "clap.linear2": f"{_CLAP_PROJECTION}linear2."}  # fmt: skip
    names = {f"{name}.{part}": f"{prefix}{part}" for name, prefix in linear.items() for part in ("weight", "bias")}
    return names | {f"residual.{part}": f"{_RESIDUAL}{part}" for part in ("weight", "mean", "scale")}


def _check_readouts(found: OmniPackage) -> None:
    """Raises ArtifactError: `missing_tensor`, `tensor_shape`."""
    width, image, speech = found.dimension, int(found.image.config.hidden_size), int(found.speech.config.d_model)
    clap, heard = int(found.clap.config.projection_dim), int(found.clap.config.hidden_size)
    shapes = {
        "image.weight": (width, image), "image.bias": (width,), "speech.weight": (width, speech), "speech.bias": (width,),
        "clap.linear1.weight": (clap, heard), "clap.linear1.bias": (clap,), "clap.linear2.weight": (clap, clap), "clap.linear2.bias": (clap,),
        "residual.weight": (width, clap), "residual.mean": (clap,), "residual.scale": (clap,),
    }  # fmt: skip
    tensors = found.card.tensors
    refuse_missing(found.card, [name for name in found.readouts.values() if name not in tensors])
    refuse_shapes(found.card, [(source, tensors[source].shape, shapes[name]) for name, source in found.readouts.items()
                               if tensors[source].shape != shapes[name]])  # fmt: skip


def _refuse_left_over(found: OmniPackage) -> None:
    """Towers look after what begins with their prefix; nothing else may be there."""
    variant = found.variant
    owned = (variant.text, variant.image, variant.speech, _CLAP_MODEL)
    extra = [name for name in found.card.tensors if name not in found.readouts.values() and not name.startswith(owned)]
    if extra:
        raise PackageError(f"{WEIGHTS} has {len(extra)} tensors that no part of the model reads: {some(extra)}", reason="unexpected_tensor",
                           param=extra[0], fix="Download the package again.")  # fmt: skip


def _class(name: str) -> Callable[[], Any]:
    def find() -> Any:
        import transformers  # seconds; other families never need it

        return getattr(transformers, name)

    return find


def _whisper_encoder() -> Any:
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return WhisperEncoder


def _invalid(what: str) -> PackageError:
    return PackageError(what, reason="invalid_package", param="config.json", fix="Download the package again.")
