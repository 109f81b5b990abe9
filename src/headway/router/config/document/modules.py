"""Settings of the built-in signals that models answer: `global.model_catalog.modules`.

Which model answers is said by `bindings`, how it reads by the deployment's `input`; keys that said so before are refused with that advice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator

from headway.router.config.document.model_signals import PrototypeScoring, Share, Text
from headway.router.config.document.node import Node, not_supported

Policy: TypeAlias = Literal["allow", "block"]
"""`block`: what is not known counts as a match; `allow`: it does not."""

_OWN_MODEL = "bind a deployment to it: global.model_catalog.bindings"
_PLACE = "set `device` on its deployment"
_LENGTH = "set `input` on its deployment: max_tokens, and overflow reject, truncate or window"
_MAPPING = "labels are those of the model's card"
_MODEL_KEYS: dict[str, str] = {"model_id": _OWN_MODEL, "backend": _OWN_MODEL, "use_cpu": _PLACE, "max_sequence_length": _LENGTH, "window": _LENGTH}


class _ModelModule(Node):
    """`model_ref` may say that the model is that of `global.model_catalog.system.<system_key>`, which is so anyway."""

    absent: ClassVar[Mapping[str, str]] = _MODEL_KEYS
    system_key: ClassVar[str]

    model_ref: Text | None = None

    @field_validator("model_ref")
    @classmethod
    def _own_model(cls, name: str | None) -> str | None:
        if name not in (None, cls.system_key):
            raise not_supported(f"model_ref {name}", f"this module's model is that of bindings.{cls.system_key}, or of system.{cls.system_key}")
        return name


class PromptGuardModule(_ModelModule):
    """`threshold` is that of rules' `classifier` method when a rule has none; `positive_labels` are the labels that mean an attack."""

    absent: ClassVar[Mapping[str, str]] = _MODEL_KEYS | {"jailbreak_mapping_path": _MAPPING}
    system_key: ClassVar[str] = "prompt_guard"

    enabled: bool = True
    threshold: Share | None = None
    positive_labels: list[Text] = []
    on_error: Policy | None = None
    on_unscanned: Policy | None = None


class CategoryModule(_ModelModule):
    """Below `threshold` the domain is `fallback_category`, if one is named, else unknown to everybody."""

    absent: ClassVar[Mapping[str, str]] = _MODEL_KEYS | {"category_mapping_path": _MAPPING}
    system_key: ClassVar[str] = "domain_classifier"

    enabled: bool = True
    threshold: Share | None = None
    fallback_category: str | None = None


class PIIModule(_ModelModule):
    absent: ClassVar[Mapping[str, str]] = _MODEL_KEYS | {"pii_mapping_path": _MAPPING}
    system_key: ClassVar[str] = "pii_classifier"

    enabled: bool = True
    threshold: Share | None = None
    on_error: Policy | None = None
    on_unscanned: Policy | None = None


class PreferenceModel(Node):
    """`use_contrastive`: compare with the examples of the rules instead of asking a model for one of them."""

    absent: ClassVar[Mapping[str, str]] = {"embedding_model": "bind `embedding` to a deployment"}

    use_contrastive: bool = False
    prototype_scoring: PrototypeScoring | None = None


class ClassifierModule(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "mcp": "classifiers behind MCP are not built; attach a model runtime by its endpoint",
    }

    domain: CategoryModule | None = None
    pii: PIIModule | None = None
    preference: PreferenceModel | None = None


class FactCheckModule(_ModelModule):
    system_key: ClassVar[str] = "fact_check_classifier"

    threshold: Share | None = None


class HallucinationDetector(_ModelModule):
    absent: ClassVar[Mapping[str, str]] = _MODEL_KEYS | {
        "include_explanation": "explanations by an NLI model are not built",
        "context_window_size": _LENGTH,
    }
    system_key: ClassVar[str] = "hallucination_detector"

    threshold: Share | None = None
    min_span_length: int | None = Field(default=None, ge=0)
    min_span_confidence: Share | None = None


class HallucinationModule(Node):
    """`enabled: false` switches the signal fact_check off; a plugin `hallucination` is then refused."""

    enabled: bool = True
    fact_check: FactCheckModule | None = None
    detector: HallucinationDetector | None = None


class FeedbackDetectorModule(_ModelModule):
    absent: ClassVar[Mapping[str, str]] = _MODEL_KEYS | {"feedback_mapping_path": _MAPPING}
    system_key: ClassVar[str] = "feedback_detector"

    enabled: bool = True
    threshold: Share | None = None


class ModalityDetector(Node):
    """`keyword` looks for words that ask for an image (`keywords`), or for an image with an explanation (`both_keywords`); `hybrid` asks the model
    where no word is found."""

    absent: ClassVar[Mapping[str, str]] = {
        "classifier": "bind a deployment: bindings.modality_detector",
        "lower_threshold_ratio": "the classifier is asked wherever no keyword is found",
    }

    enabled: bool = True
    method: Literal["classifier", "keyword", "hybrid"] = "classifier"
    keywords: list[Text] = []
    both_keywords: list[Text] = []
    confidence_threshold: Share | None = None


class ComplexityModel(Node):
    absent: ClassVar[Mapping[str, str]] = {"backend": "bind a deployment: bindings.complexity"}

    prototype_scoring: PrototypeScoring | None = None


class ModelModules(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "safety": "bind deployments: bindings.safety.<rule> and bindings.safety.<rule>.hazard",
        "prompt_compression": "the context_compression plugin shortens what is sent; signals read the whole input",
    }

    prompt_guard: PromptGuardModule | None = None
    classifier: ClassifierModule | None = None
    complexity: ComplexityModel | None = None
    hallucination_mitigation: HallucinationModule | None = None
    feedback_detector: FeedbackDetectorModule | None = None
    modality_detector: ModalityDetector | None = None
