"""Names that earlier versions gave to models -> the Hub repository of the model that answers the same question with the same labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_VELA: Final = "vllm-sr/Vela-1.0-Encoder-307M-"

_NAMES: Mapping[str, tuple[str, ...]] = {
    _VELA + "Domain": (
        "category-classifier",
        "category_classifier_modernbert-base_model",
        "domain-classifier",
        "intent-classifier",
        "intent-classifier-32k",
        "intent-classifier-32k-merged",
        "lora_intent_classifier_bert-base-uncased_model",
        "mmbert-32k-intent",
        "mmbert32k-intent",
        "mmbert32k-intent-classifier-lora",
        "mmbert32k-intent-classifier-merged",
        "mmbert32k-intent-merged",
        "mom-domain-classifier",
    ),
    _VELA + "PII": (
        "lora_pii_detector_bert-base-uncased_model",
        "mmbert-32k-pii",
        "mmbert-pii-detector",
        "mmbert-pii-detector-merged",
        "mmbert32k-pii",
        "mmbert32k-pii-detector-lora",
        "mmbert32k-pii-detector-merged",
        "mmbert32k-pii-merged",
        "mom-mmbert-pii-detector",
        "mom-pii-classifier",
        "pii-classifier",
        "pii-detector",
        "pii-detector-32k",
        "pii-detector-32k-merged",
        "pii_classifier_modernbert-base_model",
        "pii_classifier_modernbert-base_presidio_token_model",
        "pii_classifier_modernbert_ai4privacy_token_model",
        "pii_classifier_modernbert_model",
        "privacy-guard",
    ),
    _VELA + "Guard": (
        "jailbreak-detector",
        "jailbreak-detector-32k",
        "jailbreak-detector-32k-merged",
        "jailbreak_classifier_modernbert-base_model",
        "jailbreak_classifier_modernbert_model",
        "lora_jailbreak_classifier_bert-base-uncased_model",
        "mmbert-32k-jailbreak",
        "mmbert32k-jailbreak",
        "mmbert32k-jailbreak-detector-lora",
        "mmbert32k-jailbreak-detector-merged",
        "mmbert32k-jailbreak-merged",
        "mom-jailbreak-classifier",
        "prompt-guard",
        "prompt-guard-32k",
        "safety-classifier",
    ),
    _VELA + "FactCheck": (
        "fact-check-32k",
        "factcheck-classifier-32k",
        "factcheck-classifier-32k-merged",
        "hallucination-sentinel",
        "halugate-sentinel",
        "mmbert-32k-factcheck",
        "mmbert32k-factcheck",
        "mmbert32k-factcheck-classifier-lora",
        "mmbert32k-factcheck-classifier-merged",
        "mmbert32k-factcheck-merged",
        "mom-halugate-sentinel",
    ),
    _VELA + "Halu": (
        "KRLabsOrg/lettucedect-base-modernbert-en-v1",
        "KRLabsOrg/lettucedect-v2-mmbert-base",
        "hallucination-detector",
        "hallucination-detector-multilingual",
        "halugate-detector",
        "lettucedect",
        "lettucedect-v2-mmbert",
        "lettucedect-v2-mmbert-base",
        "mom-halugate-detector",
    ),
    _VELA + "Feedback": (
        "feedback-detector",
        "feedback-detector-32k",
        "feedback-detector-32k-merged",
        "mmbert-32k-feedback",
        "mmbert32k-feedback",
        "mmbert32k-feedback-detector-lora",
        "mmbert32k-feedback-detector-merged",
        "mmbert32k-feedback-merged",
        "mom-feedback-detector",
        "user-feedback-classifier",
    ),
    _VELA + "Modality": (
        "mmbert32k-modality-router",
        "mmbert32k-modality-router-merged",
        "modality-classifier",
        "modality-router",
    ),
    _VELA + "Embedding": (
        "all-MiniLM-L12-v2",
        "bert-light",
        "embedding-flash",
        "embedding-light",
        "embedding-mmbert",
        "embedding-ultra",
        "embeddinggemma-300m",
        "google/embeddinggemma-300m",
        "mmbert-embed-32k-2d-matryoshka",
        "mmbert-embedding",
        "mom-embedding-flash",
        "mom-embedding-light",
        "mom-embedding-ultra",
        "sentence-transformers/all-MiniLM-L12-v2",
    ),
    "vllm-sr/Vela-1.0-Omni-Nano": (
        "/opt/router-model-artifacts/vela-1.0-omni-nano",
        "embedding-multimodal",
        "mom-embedding-multimodal",
        "multi-modal-embed-large",
        "multi-modal-embed-small",
        "multimodal-embedding",
        "vela-1.0-omni-nano",
        "vllm-sr/multi-modal-embed-large",
        "vllm-sr/multi-modal-embed-small",
    ),
    "vllm-sr/Vela-1.0-Omni-Mini": (
        "/opt/router-model-artifacts/vela-1.0-omni-mini",
        "vela-1.0-omni-mini",
    ),
    "Qwen/Qwen3-Embedding-0.6B": (
        "mom-embedding-pro",
    ),
}

_RETIRED: Final = frozenset(
    {
        "hallucination-explainer",
        "halugate-explainer",
        "mom-halugate-explainer",
        "nli-explainer",
        "tasksource/ModernBERT-base-nli",
    }
)

_REPOSITORIES: Final = {name: repository for repository, names in _NAMES.items() for name in names}
_PREFIX: Final = "models/"


def repository_of(name: Any) -> str | None:
    """The Hub repository that replaces an earlier name or path of a model; None for a name that is no earlier one."""
    if not isinstance(name, str):
        return None
    key = name.strip().rstrip("/").removeprefix(_PREFIX)
    if key.startswith(("Vela-1.0-", "Vela-2.0-")):
        return f"vllm-sr/{key}"
    return _REPOSITORIES.get(key)


def is_retired(name: Any) -> bool:
    """Whether it is a model of natural language inference, which nothing asks any more."""
    return isinstance(name, str) and name.strip().rstrip("/").removeprefix(_PREFIX) in _RETIRED
