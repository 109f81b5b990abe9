"""Which name was meant."""

from __future__ import annotations

import pytest

from headway.doctor.rules.loading.nearest_name import nearest_known, with_known_owner

CACHED = ["Qwen/Qwen2.5-7B-Instruct", "meta-llama/Llama-3.1-8B-Instruct", "BAAI/bge-m3"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("meta-lama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("qwen/qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("BAAI/bge-m3", ""),  # the name itself is no answer
        ("acme/something-else", ""),
    ],
)
def test_nearest_of_the_cache(name: str, meant: str) -> None:
    assert nearest_known(name, CACHED) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("mistalai/Mistral-7B-Instruct-v0.3", "mistralai/Mistral-7B-Instruct-v0.3"),
        ("deepseekai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3"),
        ("mistralai/Mistral-7B", ""),  # spelt right
        ("acme/Mistral-7B", ""),
        ("gpt2", ""),
    ],
)
def test_owner_that_is_nearly_a_known_one(name: str, meant: str) -> None:
    assert with_known_owner(name) == meant
