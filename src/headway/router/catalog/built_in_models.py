"""Models that a runtime loads without being told a revision: it knows their files by hash."""

from __future__ import annotations

BUILT_IN_MODELS = frozenset(
    {
        "Qwen/Qwen3-Embedding-0.6B",
        "vllm-sr/Decision-1.0-Eos-0.8B",
        "vllm-sr/Decision-1.0-Kai-0.6B",
        "vllm-sr/Decision-1.0-Lex-0.6B",
        "vllm-sr/Decision-1.0-Lux-9B",
        "vllm-sr/Decision-1.0-Nox-4B",
        "vllm-sr/Decision-1.0-Route-0.6B",
        "vllm-sr/Decision-1.0-Sol-2B",
        "vllm-sr/Decision-2.0-Eos-0.8B",
        "vllm-sr/Decision-2.0-Kai-0.6B",
        "vllm-sr/Decision-2.0-Lux-9B",
        "vllm-sr/Decision-2.0-Nox-4B",
        "vllm-sr/Decision-2.0-Sol-2B",
        "vllm-sr/Decision-2.0-Vega-27B",
        "vllm-sr/Vela-1.0-Encoder-307M-Domain",
        "vllm-sr/Vela-1.0-Encoder-307M-Embedding",
        "vllm-sr/Vela-1.0-Encoder-307M-FactCheck",
        "vllm-sr/Vela-1.0-Encoder-307M-Feedback",
        "vllm-sr/Vela-1.0-Encoder-307M-Guard",
        "vllm-sr/Vela-1.0-Encoder-307M-Halu",
        "vllm-sr/Vela-1.0-Encoder-307M-Hazard",
        "vllm-sr/Vela-1.0-Encoder-307M-Modality",
        "vllm-sr/Vela-1.0-Encoder-307M-PII",
        "vllm-sr/Vela-1.0-Encoder-307M-Reranker",
        "vllm-sr/Vela-1.0-Encoder-307M-Safety",
        "vllm-sr/Vela-1.0-Encoder-307M-Shield",
        "vllm-sr/Vela-1.0-Omni-Mini",
        "vllm-sr/Vela-1.0-Omni-Nano",
        "vllm-sr/Vela-2.0-0.3B",
        "vllm-sr/Vela-2.0-4B",
        "vllm-sr/Vela-2.0-9B",
    }
)
"""Hub repositories, as the Hub spells them. Hub names have no case."""

_LOWER = frozenset(map(str.lower, BUILT_IN_MODELS))


def is_built_in(artifact: str) -> bool:
    return artifact.lower() in _LOWER
