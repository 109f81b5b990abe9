"""The family `label_logits`: any language model that `models` can run, in a folder or a GGUF file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from headway.artifacts.card import ModelCard
from headway.artifacts.gguf_architectures import ARCHITECTURES as GGUF_ARCHITECTURES
from headway.artifacts.gguf_header import read_gguf_header
from headway.artifacts.model_cards import card_of_path, gguf_of_folder
from headway.artifacts.quantization_claim import SIDE_FILES
from headway.artifacts.tokenizer import load_tokenizer
from headway.decisions.label_logits.reader import LabelLogitsOptions, LabelLogitsReader, default_labels
from headway.errors import ConfigError, HeadwayError
from headway.models.registry import ARCHITECTURES
from headway.quantization.logical_card import logical_card
from headway.quantization.stored_format import stored_format
from headway.runtime.decisions.label_logits.fixture import VARIANTS, write_language_model
from headway.runtime.decisions.label_logits.model import LabelLogitsModel
from headway.runtime.decoder.loading import load_trunk
from headway.runtime.family import Dtype, ModelFamily, ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.decision_limits import decision_limits

_UNSTATED_CONTEXT: Final = 2048
# Parameters up to which float32 is the better choice, since answers then hardly depend on the batch.
_SMALL: Final = 1_000_000_000
_OTHER_FAMILIES: Final = (
    "decision_config.json", "modules.json", "adapter_config.json", "MODEL_MANIFEST.json", "joint_head_config.json", "head.safetensors", "head.pt",
)  # fmt: skip
_TEXT_FILES: Final = (
    "config.json", *SIDE_FILES, "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt", "chat_template.jinja", "chat_template.json",
)  # fmt: skip


class LabelLogitsFamily(ModelFamily):
    name: ClassVar[str] = "label_logits"
    surfaces: ClassVar[tuple[Surface, ...]] = ("decisions",)
    shares_context: ClassVar[bool] = True
    option_names: ClassVar[frozenset[str]] = frozenset({"rotations", "comfortable_options", "labels", "max_input_tokens"})

    def detect(self, package: Package) -> bool:
        if any(package.has(name) for name in _OTHER_FAMILIES) or "decision_format" in package.config:
            return False
        architectures = package.config.get("architectures")
        if isinstance(architectures, list) and architectures and isinstance(architectures[0], str):
            return architectures[0] in ARCHITECTURES or architectures[0].endswith(("ForCausalLM", "LMHeadModel"))
        return _is_gguf_language_model(package)

    def describe(self, package: Package) -> ModelSpec:
        card = logical_card(card_of_path(package.path, package.reference, revision=package.revision, licence=package.licence))
        root = package.path if package.is_folder else package.path.parent
        weights = [path.relative_to(root).as_posix() for path in card.files]
        texts = [] if card.format == "gguf" else [name for name in _TEXT_FILES if package.has(name)]
        index = [path.name for path in root.glob("*.safetensors.index.json")] if card.format != "gguf" else []
        dtypes: tuple[Dtype, ...] = ("float32", "bfloat16")
        return ModelSpec(
            self.surfaces, card.parameters, tuple(dict.fromkeys((*texts, *sorted(index), *weights))), card.context_length or _UNSTATED_CONTEXT,
            dtypes=dtypes if card.parameters <= _SMALL else dtypes[::-1], licence=card.licence, stored=stored_format(card.tensors.values()),
        )  # fmt: skip

    def load(self, package: Package, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]) -> LoadedModel:
        card = logical_card(card_of_path(package.path, package.reference, revision=package.revision, licence=package.licence))
        options, limit = _options(placement.options, card.parameters)
        tokenizer = load_tokenizer(card)
        trunk = load_trunk(
            card, placement.dtype, share=placement.enable_shared_context, max_tokens=limit, known_tokens=tokenizer.vocab_size, progress=progress
        )
        reader = LabelLogitsReader(tokenizer, trunk.max_tokens, options)
        facts = ModelFacts(
            spec.parameters, placement.dtype, decision_limits(trunk.max_tokens), question_types=tuple(sorted(reader.question_types)),
            notes=_notes(card, options),
            extra={"label_codes": len(reader.alphabet.options), "comfortable_options": reader.comfortable_options, "rotations": options.rotations, "labels": options.labels},
        )  # fmt: skip
        return LabelLogitsModel(facts, reader, trunk, tokenizer, [code.token_id for code in reader.alphabet.options[:4]])

    def fixture_variants(self) -> Sequence[str]:
        return tuple(VARIANTS)

    def write_fixture(self, folder: Path, variant: str, seed: int) -> None:
        write_language_model(folder, variant, seed)


def _is_gguf_language_model(package: Package) -> bool:
    """Not one with a decision head of its own: those are other families."""
    try:
        path = gguf_of_folder(package.path) if package.is_folder else package.path
        if path is None or path.suffix != ".gguf":
            return False
        metadata = read_gguf_header(path).metadata
    except (HeadwayError, OSError):
        return False
    kind = metadata.get("general.architecture")
    return kind in GGUF_ARCHITECTURES and f"{kind}.decision.type" not in metadata


def _options(given: Mapping[str, Any], parameters: int) -> tuple[LabelLogitsOptions, int | None]:
    """The reader's options, and the longest prompt. Raises ConfigError (`invalid_option`)."""
    rotations = _whole(given, "rotations", 1, 16)
    comfortable = _whole(given, "comfortable_options", 2, 255)
    labels = given.get("labels", default_labels(parameters))
    if labels not in ("codes", "words"):
        raise ConfigError(f"the option labels must be codes or words, got {labels!r:.60}", reason="invalid_option", param="labels")
    defaults = LabelLogitsOptions()
    options = LabelLogitsOptions(rotations or defaults.rotations, comfortable or defaults.comfortable_options, labels)
    return options, _whole(given, "max_input_tokens", 64, 1 << 24)


def _whole(given: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(f"the option {name} must be an integer from {low} to {high}, got {value!r:.60}", reason="invalid_option", param=name)
    return value


def _notes(card: ModelCard, options: LabelLogitsOptions) -> tuple[str, ...]:
    if options.labels == "words":
        return ("choices are answered with the names of options; their descriptions are not read (option labels: codes changes that)",)
    if card.chat_template:
        return ()
    return ("no chat template: questions are put as plain text, which suits models that were not tuned for chats",)
